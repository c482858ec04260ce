"""Where the parts of tf.contrib are that have an exact successor.

TensorFlow 2.0 removed tf.contrib. Data only, like `compat_moved`; a part is here only
where today's has the same arguments and results.
"""

from __future__ import annotations

from pipeline.compat_moved import Module, Names, Removed, names

_GONE = "2.0"
_V1 = "tensorflow.compat.v1"
_ESTIMATOR = "tensorflow_estimator.python.estimator"


def _names(module: str, target: str, words: str) -> Names:
    return names(f"tensorflow.contrib.{module}", _GONE, target, words)


def _module(module: str, target: str) -> Module:
    return Module(f"tensorflow.contrib.{module}", _GONE, target)


def _removed(module: str, instead: str) -> Removed:
    return Removed(f"tensorflow.contrib.{module}", _GONE, instead)


MODULES: tuple[Module, ...] = (
    _module("framework.nest", "tensorflow.python.util.nest"),
    # What slim is today: a package of its own.
    _module("slim.python.slim", "tf_slim"),
    _module("slim", "tf_slim"),
    _module("layers.python.layers", "tf_slim.layers"),
    _module("layers", "tf_slim.layers"),
    _module("framework.python.ops.arg_scope", "tf_slim.ops.arg_scope"),
    _module("framework.python.ops.variables", "tf_slim.ops.variables"),
    _module("signal", "tensorflow.signal"),
    _module("summary", "tensorflow.python.ops.summary_ops_v2"),
    _module("tensorboard.plugins.projector", "tensorboard.plugins.projector"),
    _module("tpu.python.tpu.tpu_config", f"{_ESTIMATOR}.tpu.tpu_config"),
    _module("tpu.python.tpu.tpu_context", f"{_ESTIMATOR}.tpu.tpu_context"),
    _module("tpu.python.tpu.tpu_estimator", f"{_ESTIMATOR}.tpu.tpu_estimator"),
)

NAMES: tuple[Names, ...] = (
    names("tensorflow", _GONE, "tensorflow", "contrib"),
    names(_V1, _GONE, "tensorflow", "contrib"),
    _names(
        "cluster_resolver",
        "tensorflow.distribute.cluster_resolver",
        "ClusterResolver SimpleClusterResolver UnionClusterResolver=UnionResolver"
        " GCEClusterResolver KubernetesClusterResolver SlurmClusterResolver"
        " TFConfigClusterResolver TPUClusterResolver",
    ),
    _names(
        "data",
        "tensorflow.data.experimental",
        "AUTOTUNE Counter CsvDataset Optional"
        " RandomDataset Reducer SqlDataset TFRecordWriter bucket_by_sequence_length"
        " choose_from_datasets copy_to_device dense_to_ragged_batch"
        " dense_to_sparse_batch enumerate_dataset get_next_as_optional"
        " get_single_element group_by_reducer group_by_window ignore_errors"
        " make_batched_features_dataset make_csv_dataset make_saveable_from_iterator"
        " map_and_batch parallel_interleave parse_example_dataset prefetch_to_device"
        " rejection_resample sample_from_datasets scan shuffle_and_repeat unbatch"
        " unique",
    ),
    _names("data", "tensorflow.data.experimental", "CheckpointInputPipelineHook"),
    _names(
        "distribute",
        "tensorflow.python.distribute.distribute_config",
        "DistributeConfig",
    ),
    _names(
        "distributions",
        f"{_V1}.distributions",
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution"
        " Exponential Gamma Laplace Multinomial Normal RegisterKL ReparameterizationType"
        " StudentT Uniform kl_divergence",
    ),
    _names(
        "estimator",
        f"{_V1}.estimator",
        "BaselineEstimator DNNEstimator DNNLinearCombinedEstimator LinearEstimator"
        " add_metrics",
    ),
    _names(
        "estimator",
        f"{_V1}.estimator.experimental",
        "InMemoryEvaluatorHook build_raw_supervised_input_receiver_fn call_logit_fn"
        " dnn_logit_fn_builder linear_logit_fn_builder make_early_stopping_hook"
        " make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook"
        " stop_if_no_decrease_hook stop_if_no_increase_hook",
    ),
    _names(
        "estimator",
        f"{_ESTIMATOR}.canned.saved_model_estimator",
        "SavedModelEstimator",
    ),
    _names(
        "feature_column",
        "tensorflow.feature_column",
        "sequence_categorical_column_with_hash_bucket"
        " sequence_categorical_column_with_identity"
        " sequence_categorical_column_with_vocabulary_file"
        " sequence_categorical_column_with_vocabulary_list sequence_numeric_column",
    ),
    _names(
        "framework",
        f"{_V1}.train",
        "assert_global_step create_global_step get_global_step"
        " get_or_create_global_step init_from_checkpoint list_variables"
        " load_checkpoint load_variable",
    ),
    _names("framework", "tensorflow", "TensorSpec argsort is_tensor sort"),
    _names(
        "framework",
        "tf_slim.ops.arg_scope",
        "add_arg_scope arg_scope arg_scoped_arguments has_arg_scope",
    ),
    _names(
        "framework",
        "tf_slim.ops.variables",
        "add_model_variable assert_or_get_global_step assign_from_checkpoint"
        " assign_from_checkpoint_fn assign_from_values assign_from_values_fn"
        " filter_variables get_local_variables get_model_variables"
        " get_trainable_variables get_unique_variable get_variable_full_name"
        " get_variables get_variables_by_name get_variables_by_suffix"
        " get_variables_to_restore global_variable local_variable model_variable"
        " variable",
    ),
    _names("hooks", f"{_V1}.train", "ProfilerHook"),
    _names(
        "linalg",
        "tensorflow.linalg",
        "LinearOperator LinearOperatorBlockDiag LinearOperatorCirculant"
        " LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix"
        " LinearOperatorIdentity LinearOperatorKronecker LinearOperatorLowRankUpdate"
        " LinearOperatorScaledIdentity LinearOperatorZeros"
        " LinearOperatorTriL=LinearOperatorLowerTriangular",
    ),
    _names(
        "lookup",
        "tensorflow.python.ops.lookup_ops",
        "HashTable IdTableWithHashBuckets InitializableLookupTableBase"
        " KeyValueTensorInitializer LookupInterface TableInitializerBase"
        " TextFileIdTableInitializer TextFileIndex TextFileInitializer"
        " TextFileStringTableInitializer index_table_from_file index_table_from_tensor"
        " index_to_string_table_from_file index_to_string_table_from_tensor"
        " MutableDenseHashTable=DenseHashTable MutableHashTable",
    ),
    _names(
        "rnn",
        f"{_V1}.nn.rnn_cell",
        "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell"
        " LSTMStateTuple MultiRNNCell RNNCell ResidualWrapper",
    ),
    _names(
        "rnn",
        f"{_V1}.nn",
        "static_bidirectional_rnn static_rnn static_state_saving_rnn",
    ),
    _names(
        "stateless",
        "tensorflow.compat.v1.random",
        "stateless_multinomial stateless_random_normal=stateless_normal"
        " stateless_random_uniform=stateless_uniform"
        " stateless_truncated_normal",
    ),
    _names(
        "tpu",
        f"{_V1}.estimator.tpu",
        "InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec",
    ),
    _names(
        "tpu",
        f"{_V1}.tpu",
        "CrossShardOptimizer bfloat16_scope batch_parallel cross_replica_sum"
        " initialize_system outside_compilation replicate rewrite shard"
        " shutdown_system",
    ),
    _names("training", f"{_V1}.train", "checkpoints_iterator"),
    _names(
        "util",
        "tensorflow",
        "make_ndarray make_tensor_proto",
    ),
    _names("util", "tensorflow.python.framework.tensor_util", "constant_value"),
)

REMOVED: tuple[Removed, ...] = (
    _removed("boosted_trees", "use tf.estimator.BoostedTreesClassifier"),
    _removed("crf", "write the layer anew, or keep TensorFlow 1.15 for it"),
    _removed("distribute", "use tf.distribute and RunConfig(train_distribute=...)"),
    _removed("estimator", "use the heads and Estimators of tf.estimator"),
    _removed("factorization", "use tf.compat.v1.estimator.experimental.KMeans"),
    _removed("learn", "use tf.estimator"),
    _removed("metrics", "use tf.compat.v1.metrics"),
    _removed("opt", "use tf.compat.v1.train or tf.keras.optimizers"),
    _removed("predictor", "use tf.saved_model.load(DIR).signatures[NAME]"),
    _removed("seq2seq", "write the decoder anew, or keep TensorFlow 1.15 for it"),
    _removed("training", "use tf.train, or a dict of your own for HParams"),
    _removed("tpu", "train on CPU or GPU"),
    Removed("tensorflow.contrib", _GONE, "use what TensorFlow 2 has, or tf-slim"),
)
