"""Names that modules of TensorFlow lost to other modules; `compat_moved` says more."""

from __future__ import annotations

from pipeline.compat_moved import INSIDE, Names, inside, names
from pipeline.compat_moved_training import DATA_AND_TRAINING

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
    inside(
        "feature_column.feature_column_v2",
        "2.14",
        "feature_column.feature_column_v2_types",
        "FeatureColumn",
    ),
    inside("framework.common_shapes", "2.2", "framework.tensor_shape", "unknown_shape"),
    inside(
        "framework.graph_util",
        "2.13",
        "framework.convert_to_constants",
        "convert_variables_to_constants",
    ),
    inside(
        "framework.graph_util_impl",
        "2.13",
        "framework.convert_to_constants",
        "convert_variables_to_constants",
    ),
    inside(
        "framework.ops",
        "2.13",
        "framework.indexed_slices",
        "IndexedSlices IndexedSlicesValue "
        "internal_convert_to_tensor_or_indexed_slices "
        "convert_to_tensor_or_indexed_slices "
        "internal_convert_n_to_tensor_or_indexed_slices "
        "convert_n_to_tensor_or_indexed_slices",
    ),
    inside("framework.ops", "2.13", "framework.stack", "default_session"),
    inside(
        "framework.ops",
        "2.14",
        "framework.tensor",
        "enable_tensor_equality disable_tensor_equality",
    ),
    inside("framework.ops", "2.15", "framework.tensor", "Tensor"),
    inside(
        "framework.ops",
        "2.13",
        "framework.tensor_conversion",
        "convert_to_tensor_v2 convert_to_tensor_v1 "
        "convert_to_tensor_v1_with_dispatch "
        "convert_to_tensor_v2_with_dispatch",
    ),
    inside(
        "framework.ops",
        "2.13",
        "framework.tensor_conversion_registry",
        "register_tensor_conversion_function",
    ),
    inside("framework.tensor_spec", "2.14", "framework.tensor", "sanitize_spec_name"),
    inside(
        "framework.tensor_util",
        "2.13",
        "ops.shape_util",
        "shape_tensor maybe_set_static_shape",
    ),
    inside(
        "framework.type_spec",
        "2.13",
        "framework.type_spec_registry",
        "register get_name lookup",
    ),
    inside("ops.array_ops", "2.13", "ops.array_ops_stack", "stack unstack"),
    inside(
        "ops.bincount_ops",
        "2.14",
        "ops.ragged.ragged_bincount_ops",
        "validate_ragged_weights",
    ),
    inside("ops.bincount_ops", "2.14", "ops.sparse_ops", "validate_sparse_weights"),
    inside("ops.control_flow_ops", "2.14", "ops.cond", "cond cond_for_tf_v2"),
    inside("ops.control_flow_ops", "2.14", "ops.control_flow_assert", "Assert"),
    inside("ops.control_flow_ops", "2.14", "ops.control_flow_case", "case case_v2"),
    inside(
        "ops.control_flow_ops",
        "2.13",
        "ops.control_flow_switch_case",
        "switch_case execute_fn_for_device",
    ),
    inside(
        "ops.control_flow_ops",
        "2.14",
        "ops.while_loop",
        "while_loop while_loop_v2",
    ),
    inside("ops.custom_gradient", "2.6", "ops.handle_data_util", "copy_handle_data"),
    inside("ops.functional_ops", "2.13", "ops.gen_functional_ops", "partitioned_call"),
    inside(
        "ops.gen_math_ops",
        "2.3",
        "ops.gen_special_math_ops",
        "bessel_i0e bessel_i1e",
    ),
    inside("ops.gradients_util", "2.2", "eager.backprop_util", "IsTrainable"),
    inside(
        "ops.lookup_ops",
        "2.6",
        "data.experimental.ops.lookup_ops",
        "DatasetInitializer",
    ),
    inside(
        "ops.math_ops",
        "2.16",
        "framework.override_binary_operator",
        "maybe_promote_tensors",
    ),
    inside("ops.math_ops", "2.3", "ops.bincount_ops", "bincount bincount_v1"),
    inside("ops.math_ops", "2.5", "ops.gen_math_ops", "logical_and"),
    inside(
        "ops.nn_impl",
        "2.15",
        "ops.nn_impl_distribute",
        "compute_average_loss scale_regularization_loss",
    ),
    inside(
        "ops.random_ops",
        "2.14",
        "ops.random_crop_ops",
        "random_crop stateless_random_crop",
    ),
    inside("ops.stateful_random_ops", "2.14", "ops.random_ops_util", "Algorithm"),
    inside(
        "ops.stateless_random_ops",
        "2.14",
        "ops.random_ops_util",
        "Algorithm convert_alg_to_int",
    ),
    inside(
        "ops.variable_scope",
        "2.14",
        "ops.ref_variable",
        "default_variable_creator",
    ),
    inside(
        "ops.variable_scope",
        "2.13",
        "ops.resource_variable_ops",
        "default_variable_creator_v2",
    ),
    inside(
        "ops.variable_scope",
        "2.16",
        "ops.resource_variables_toggle",
        "enable_resource_variables resource_variables_enabled "
        "disable_resource_variables",
    ),
    inside("ops.variable_scope", "2.14", "ops.variable_v1", "variable=VariableV1"),
    inside("ops.variables", "2.13", "ops.ref_variable", "RefVariable"),
    inside(
        "ops.variables",
        "2.13",
        "ops.variable_v1",
        "VariableV1 is_variable_initialized",
    ),
    inside("util.nest", "2.13", "util.nest", "is_sequence=is_nested"),
    inside("util.compat_internal", "2.13", "util.compat", "path_to_str"),
    names(
        INSIDE + "util.tf_export",
        "2.12",
        "tensorflow_estimator.python.estimator.estimator_export",
        "estimator_export",
    ),
    *_KERAS,
    *DATA_AND_TRAINING,
    *(
        names(
            module,
            "2.16",
            "pipeline.compat_input_hook",
            "CheckpointInputPipelineHook",
        )
        for module in (
            "tensorflow.data.experimental",
            "tensorflow.compat.v1.data.experimental",
            "tensorflow.python.data.experimental.ops.iterator_ops",
        )
    ),
    *(
        names(
            module,
            "2.9",
            "pipeline.compat_boosted_trees",
            "BoostedTreesClassifier BoostedTreesEstimator BoostedTreesRegressor",
        )
        for module in (
            "tensorflow_estimator.python.estimator.api._v1.estimator",
            "tensorflow_estimator.python.estimator.api._v2.estimator",
            # In 2.15 an import of these makes modules of their own.
            "tensorflow.estimator",
            "tensorflow.compat.v1.estimator",
            "tensorflow.compat.v2.estimator",
        )
    ),
)
