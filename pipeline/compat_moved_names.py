"""Names that modules of TensorFlow lost to other modules; `compat_moved` says more."""

from __future__ import annotations

from pipeline.compat_moved import INSIDE, Names, names


def _names(module: str, gone: str, target: str, words: str) -> Names:
    return names(INSIDE + module, gone, INSIDE + target, words)


# TensorFlow's own copy of Keras lost these; where it is used piece by piece, as in a
# model_fn, those of Keras 2 are the same.
_KERAS = (
    names(
        INSIDE + "keras.layers",
        "2.8",
        "tensorflow.keras.layers",
        "BatchNormalization Bidirectional LayerNormalization TimeDistributed Wrapper",
    ),
    names(
        INSIDE + "keras.layers",
        "2.10",
        "tensorflow.keras.layers",
        "AlphaDropout GaussianDropout GaussianNoise MultiHeadAttention",
    ),
    names(
        INSIDE + "keras.layers",
        "2.13",
        "tensorflow.keras.layers",
        "GRU GRUCell LSTM LSTMCell",
    ),
)

NAMES: tuple[Names, ...] = (
    # As tensorflow.python.estimator, which is this package now, had it.
    names(
        "tensorflow_estimator.python.estimator",
        "2.16",
        "tensorflow_estimator.python.estimator",
        "keras=keras_lib",
    ),
    names(
        "tensorflow",
        "2.16",
        "tensorflow_estimator.python.estimator.api._v2",
        "estimator",
    ),
    names(
        "tensorflow.compat.v2",
        "2.16",
        "tensorflow_estimator.python.estimator.api._v2",
        "estimator",
    ),
    names(
        "tensorflow.compat.v1",
        "2.16",
        "tensorflow_estimator.python.estimator.api._v1",
        "estimator",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.batch_op",
        "ParallelBatchDataset=_ParallelBatchDataset",
    ),
    _names("data.ops.dataset_ops", "2.12", "data.ops.cache_op", "CacheDataset"),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.concatenate_op",
        "ConcatenateDataset=_ConcatenateDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.debug_mode",
        "enable_debug_mode toggle_debug_mode",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.11",
        "data.ops.filter_op",
        "FilterDataset=_FilterDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.flat_map_op",
        "FlatMapDataset=_FlatMapDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.11",
        "data.ops.from_tensor_slices_op",
        "TensorSliceDataset=_TensorSliceDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.from_tensors_op",
        "TensorDataset=_TensorDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.interleave_op",
        "InterleaveDataset=_InterleaveDataset "
        "ParallelInterleaveDataset=_ParallelInterleaveDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.map_op",
        "MapDataset=_MapDataset ParallelMapDataset=_ParallelMapDataset",
    ),
    _names("data.ops.dataset_ops", "2.2", "data.ops.options", "AutotuneAlgorithm"),
    _names("data.ops.dataset_ops", "2.7", "data.ops.options", "Options"),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.padded_batch_op",
        "PaddedBatchDataset=_PaddedBatchDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.range_op",
        "RangeDataset=_RangeDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.shard_op",
        "ShardDataset=_ShardDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.skip_op",
        "SkipDataset=_SkipDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.take_op",
        "TakeDataset=_TakeDataset",
    ),
    _names(
        "data.ops.dataset_ops",
        "2.12",
        "data.ops.window_op",
        "WindowDataset=_WindowDataset",
    ),
    _names("data.ops.dataset_ops", "2.12", "data.ops.zip_op", "ZipDataset=_ZipDataset"),
    _names("data.util.nest", "2.8", "data.util.nest", "is_sequence=is_nested"),
    _names(
        "distribute.distribute_lib",
        "2.13",
        "distribute.distribute_utils",
        "get_loss_reduction",
    ),
    _names(
        "distribute.distribute_lib",
        "2.2",
        "distribute.distribute_utils",
        "create_mirrored_variable",
    ),
    _names(
        "distribute.input_lib",
        "2.8",
        "distribute.input_util",
        "get_distributed_dataset get_distributed_datasets_from_function",
    ),
    _names(
        "distribute.input_lib",
        "2.8",
        "distribute.v1.input_lib",
        "DistributedIteratorV1 DistributedDatasetV1 "
        "DistributedDatasetsFromFunctionV1 InputFunctionIterator "
        "DatasetIterator",
    ),
    _names(
        "distribute.input_lib",
        "2.13",
        "types.distribute",
        "DistributedIteratorInterface DistributedDatasetInterface",
    ),
    _names(
        "distribute.values",
        "2.3",
        "distribute.distribute_utils",
        "regroup select_replica update_regroup value_container "
        "is_distributed_variable validate_colocate",
    ),
    _names("distribute.values", "2.3", "distribute.ps_values", "AggregatingVariable"),
    _names(
        "distribute.values",
        "2.2",
        "distribute.tpu_values",
        "TPUMirroredVariable TPUSyncOnReadVariable",
    ),
    _names(
        "eager.function",
        "2.14",
        "eager.polymorphic_function.polymorphic_function",
        "Function",
    ),
    _names(
        "feature_column.feature_column_v2",
        "2.14",
        "feature_column.feature_column_v2_types",
        "FeatureColumn",
    ),
    _names("framework.common_shapes", "2.2", "framework.tensor_shape", "unknown_shape"),
    _names(
        "framework.graph_util",
        "2.13",
        "framework.convert_to_constants",
        "convert_variables_to_constants",
    ),
    _names(
        "framework.graph_util_impl",
        "2.13",
        "framework.convert_to_constants",
        "convert_variables_to_constants",
    ),
    _names(
        "framework.ops",
        "2.13",
        "framework.indexed_slices",
        "IndexedSlices IndexedSlicesValue "
        "internal_convert_to_tensor_or_indexed_slices "
        "convert_to_tensor_or_indexed_slices "
        "internal_convert_n_to_tensor_or_indexed_slices "
        "convert_n_to_tensor_or_indexed_slices",
    ),
    _names("framework.ops", "2.13", "framework.stack", "default_session"),
    _names(
        "framework.ops",
        "2.14",
        "framework.tensor",
        "enable_tensor_equality disable_tensor_equality",
    ),
    _names("framework.ops", "2.15", "framework.tensor", "Tensor"),
    _names(
        "framework.ops",
        "2.13",
        "framework.tensor_conversion",
        "convert_to_tensor_v2 convert_to_tensor_v1 "
        "convert_to_tensor_v1_with_dispatch "
        "convert_to_tensor_v2_with_dispatch",
    ),
    _names(
        "framework.ops",
        "2.13",
        "framework.tensor_conversion_registry",
        "register_tensor_conversion_function",
    ),
    _names("framework.tensor_spec", "2.14", "framework.tensor", "sanitize_spec_name"),
    _names(
        "framework.tensor_util",
        "2.13",
        "ops.shape_util",
        "shape_tensor maybe_set_static_shape",
    ),
    _names(
        "framework.type_spec",
        "2.13",
        "framework.type_spec_registry",
        "register get_name lookup",
    ),
    _names("ops.array_ops", "2.13", "ops.array_ops_stack", "stack unstack"),
    _names(
        "ops.bincount_ops",
        "2.14",
        "ops.ragged.ragged_bincount_ops",
        "validate_ragged_weights",
    ),
    _names("ops.bincount_ops", "2.14", "ops.sparse_ops", "validate_sparse_weights"),
    _names("ops.control_flow_ops", "2.14", "ops.cond", "cond cond_for_tf_v2"),
    _names("ops.control_flow_ops", "2.14", "ops.control_flow_assert", "Assert"),
    _names("ops.control_flow_ops", "2.14", "ops.control_flow_case", "case case_v2"),
    _names(
        "ops.control_flow_ops",
        "2.13",
        "ops.control_flow_switch_case",
        "switch_case execute_fn_for_device",
    ),
    _names(
        "ops.control_flow_ops",
        "2.14",
        "ops.while_loop",
        "while_loop while_loop_v2",
    ),
    _names("ops.custom_gradient", "2.6", "ops.handle_data_util", "copy_handle_data"),
    _names("ops.functional_ops", "2.13", "ops.gen_functional_ops", "partitioned_call"),
    _names(
        "ops.gen_math_ops",
        "2.3",
        "ops.gen_special_math_ops",
        "bessel_i0e bessel_i1e",
    ),
    _names("ops.gradients_util", "2.2", "eager.backprop_util", "IsTrainable"),
    _names(
        "ops.lookup_ops",
        "2.6",
        "data.experimental.ops.lookup_ops",
        "DatasetInitializer",
    ),
    _names(
        "ops.math_ops",
        "2.16",
        "framework.override_binary_operator",
        "maybe_promote_tensors",
    ),
    _names("ops.math_ops", "2.3", "ops.bincount_ops", "bincount bincount_v1"),
    _names("ops.math_ops", "2.5", "ops.gen_math_ops", "logical_and"),
    _names(
        "ops.nn_impl",
        "2.15",
        "ops.nn_impl_distribute",
        "compute_average_loss scale_regularization_loss",
    ),
    _names(
        "ops.random_ops",
        "2.14",
        "ops.random_crop_ops",
        "random_crop stateless_random_crop",
    ),
    _names("ops.stateful_random_ops", "2.14", "ops.random_ops_util", "Algorithm"),
    _names(
        "ops.stateless_random_ops",
        "2.14",
        "ops.random_ops_util",
        "Algorithm convert_alg_to_int",
    ),
    _names(
        "ops.variable_scope",
        "2.14",
        "ops.ref_variable",
        "default_variable_creator",
    ),
    _names(
        "ops.variable_scope",
        "2.13",
        "ops.resource_variable_ops",
        "default_variable_creator_v2",
    ),
    _names(
        "ops.variable_scope",
        "2.16",
        "ops.resource_variables_toggle",
        "enable_resource_variables resource_variables_enabled "
        "disable_resource_variables",
    ),
    _names("ops.variable_scope", "2.14", "ops.variable_v1", "variable=VariableV1"),
    _names("ops.variables", "2.13", "ops.ref_variable", "RefVariable"),
    _names(
        "ops.variables",
        "2.13",
        "ops.variable_v1",
        "VariableV1 is_variable_initialized",
    ),
    _names(
        "saved_model.utils_impl",
        "2.13",
        "framework.byte_swap_tensor",
        "byte_swap_tensor_content",
    ),
    _names(
        "saved_model.utils_impl",
        "2.12",
        "saved_model.path_helpers",
        "get_or_create_variables_dir get_variables_dir get_variables_path "
        "get_or_create_assets_dir get_assets_dir get_or_create_debug_dir "
        "get_saved_model_pbtxt_path get_saved_model_pb_path get_debug_dir",
    ),
    _names(
        "tpu.tpu",
        "2.13",
        "tpu.tpu_replication",
        "TPUReplicateContext outside_compilation is_tpu_strategy "
        "OutsideCompilationV2Context _TPU_REPLICATE_ATTR",
    ),
    _names(
        "tpu.tpu_strategy_util",
        "2.14",
        "distribute.cluster_resolver.tpu.tpu_cluster_resolver",
        "initialize_tpu_system shutdown_tpu_system",
    ),
    _names(
        "tpu.tpu_system_metadata",
        "2.3",
        "tpu.tpu_system_metadata",
        "_TPUSystemMetadata=TPUSystemMetadata",
    ),
    _names(
        "training.checkpoint_management",
        "2.10",
        "checkpoint.checkpoint_management",
        "generate_checkpoint_state_proto update_checkpoint_state "
        "update_checkpoint_state_internal get_checkpoint_state "
        "latest_checkpoint checkpoint_exists_internal checkpoint_exists "
        "get_checkpoint_mtimes remove_checkpoint meta_graph_filename "
        "CheckpointManager",
    ),
    _names("util.nest", "2.13", "util.nest", "is_sequence=is_nested"),
    _names("training.tracking.tracking", "2.14", "trackable.asset", "Asset"),
    _names(
        "training.tracking.tracking",
        "2.14",
        "trackable.autotrackable",
        "AutoTrackable",
    ),
    _names(
        "training.tracking.tracking",
        "2.14",
        "trackable.resource",
        "ResourceTracker resource_tracker_scope CapturableResource TrackableResource",
    ),
    _names("util.compat_internal", "2.13", "util.compat", "path_to_str"),
    names(
        INSIDE + "util.tf_export",
        "2.15",
        "tensorflow_estimator.python.estimator.estimator_export",
        "estimator_export",
    ),
    *_KERAS,
)
