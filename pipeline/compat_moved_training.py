"""What `compat_moved_names` is for tf.data, distribution, training and SavedModels."""

from __future__ import annotations

from pipeline.compat_moved import Names, inside

DATA_AND_TRAINING: tuple[Names, ...] = (
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.batch_op",
        "ParallelBatchDataset=_ParallelBatchDataset",
    ),
    inside("data.ops.dataset_ops", "2.12", "data.ops.cache_op", "CacheDataset"),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.concatenate_op",
        "ConcatenateDataset=_ConcatenateDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.debug_mode",
        "enable_debug_mode toggle_debug_mode",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.11",
        "data.ops.filter_op",
        "FilterDataset=_FilterDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.flat_map_op",
        "FlatMapDataset=_FlatMapDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.11",
        "data.ops.from_tensor_slices_op",
        "TensorSliceDataset=_TensorSliceDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.from_tensors_op",
        "TensorDataset=_TensorDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.interleave_op",
        "InterleaveDataset=_InterleaveDataset "
        "ParallelInterleaveDataset=_ParallelInterleaveDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.map_op",
        "MapDataset=_MapDataset ParallelMapDataset=_ParallelMapDataset",
    ),
    inside("data.ops.dataset_ops", "2.2", "data.ops.options", "AutotuneAlgorithm"),
    inside("data.ops.dataset_ops", "2.7", "data.ops.options", "Options"),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.padded_batch_op",
        "PaddedBatchDataset=_PaddedBatchDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.range_op",
        "RangeDataset=_RangeDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.shard_op",
        "ShardDataset=_ShardDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.skip_op",
        "SkipDataset=_SkipDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.take_op",
        "TakeDataset=_TakeDataset",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.window_op",
        "WindowDataset=_WindowDataset",
    ),
    inside("data.ops.dataset_ops", "2.12", "data.ops.zip_op", "ZipDataset=_ZipDataset"),
    inside("data.util.nest", "2.8", "data.util.nest", "is_sequence=is_nested"),
    inside(
        "distribute.distribute_lib",
        "2.13",
        "distribute.distribute_utils",
        "get_loss_reduction",
    ),
    inside(
        "distribute.distribute_lib",
        "2.2",
        "distribute.distribute_utils",
        "create_mirrored_variable",
    ),
    inside(
        "distribute.input_lib",
        "2.8",
        "distribute.input_util",
        "get_distributed_dataset get_distributed_datasets_from_function",
    ),
    inside(
        "distribute.input_lib",
        "2.8",
        "distribute.v1.input_lib",
        "DistributedIteratorV1 DistributedDatasetV1 "
        "DistributedDatasetsFromFunctionV1 InputFunctionIterator "
        "DatasetIterator",
    ),
    inside(
        "distribute.input_lib",
        "2.13",
        "types.distribute",
        "DistributedIteratorInterface DistributedDatasetInterface",
    ),
    inside(
        "distribute.values",
        "2.3",
        "distribute.distribute_utils",
        "regroup select_replica update_regroup value_container "
        "is_distributed_variable validate_colocate",
    ),
    inside("distribute.values", "2.3", "distribute.ps_values", "AggregatingVariable"),
    inside(
        "distribute.values",
        "2.2",
        "distribute.tpu_values",
        "TPUMirroredVariable TPUSyncOnReadVariable",
    ),
    inside(
        "eager.function",
        "2.14",
        "eager.polymorphic_function.polymorphic_function",
        "Function",
    ),
    inside(
        "saved_model.utils_impl",
        "2.13",
        "framework.byte_swap_tensor",
        "byte_swap_tensor_content",
    ),
    inside(
        "saved_model.utils_impl",
        "2.12",
        "saved_model.path_helpers",
        "get_or_create_variables_dir get_variables_dir get_variables_path "
        "get_or_create_assets_dir get_assets_dir get_or_create_debug_dir "
        "get_saved_model_pbtxt_path get_saved_model_pb_path get_debug_dir",
    ),
    inside(
        "tpu.tpu",
        "2.13",
        "tpu.tpu_replication",
        "TPUReplicateContext outside_compilation is_tpu_strategy "
        "OutsideCompilationV2Context _TPU_REPLICATE_ATTR",
    ),
    inside(
        "tpu.tpu_strategy_util",
        "2.14",
        "distribute.cluster_resolver.tpu.tpu_cluster_resolver",
        "initialize_tpu_system shutdown_tpu_system",
    ),
    inside(
        "tpu.tpu_system_metadata",
        "2.3",
        "tpu.tpu_system_metadata",
        "_TPUSystemMetadata=TPUSystemMetadata",
    ),
    inside(
        "training.checkpoint_management",
        "2.10",
        "checkpoint.checkpoint_management",
        "generate_checkpoint_state_proto update_checkpoint_state "
        "update_checkpoint_state_internal get_checkpoint_state "
        "latest_checkpoint checkpoint_exists_internal checkpoint_exists "
        "get_checkpoint_mtimes remove_checkpoint meta_graph_filename "
        "CheckpointManager",
    ),
    inside("training.tracking.tracking", "2.14", "trackable.asset", "Asset"),
    inside(
        "training.tracking.tracking",
        "2.14",
        "trackable.autotrackable",
        "AutoTrackable",
    ),
    inside(
        "training.tracking.tracking",
        "2.14",
        "trackable.resource",
        "ResourceTracker resource_tracker_scope CapturableResource TrackableResource",
    ),
    inside(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.from_generator_op",
        "_GeneratorDataset",
    ),
    inside(
        "training.checkpoint_management",
        "2.10",
        "checkpoint.checkpoint_management",
        "_GetCheckpointFilename _prefix_to_checkpoint_path",
    ),
)
