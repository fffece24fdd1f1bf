"""Where names of TensorFlow's internal modules of ops are in opdock, as data; see `tables`."""

from __future__ import annotations

from typing import Final

_RESIZING: Final = "opdock.ops.composed.image_resizing_v2"
_ALGEBRA: Final = "opdock.linear.algebra"
_INITIALIZERS: Final = "opdock.graph.variables.initializers"
_SUMS: Final = ("Diag", "Matrix", "ScaledIdentity", "TriL")
_FUNCTIONAL: Final = "opdock.ops.composed.functional_control"

# Internal module -> opdock's modules.
OPS_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.ops.spectral_ops_test_util": ("opdock.util.for_tests",),
    "python.framework.op_def_library": ("opdock.util.op_def_library",),
    "python.framework.test_ops": (),
    "core.kernels.boosted_trees.boosted_trees_pb2": ("opdock.io.tree_messages",),
    "python.ops.init_ops": (_INITIALIZERS, "opdock.contrib.framework.conv_orthogonal"),
    "python.ops.init_ops_v2": (f"{_INITIALIZERS}_v2",),
    "python.ops.boosted_trees_ops": ("opdock.train.boosted_trees",),
    "python.ops.functional_ops": (_FUNCTIONAL,),
    "python.util.protobuf.compare": ("opdock.util.proto_compare",),
    "python.ops.parallel_for.control_flow_ops": ("opdock.ops.composed.vectorized_map",),
    "python.ops.parallel_for.test_util": ("opdock.util.for_pfor_tests",),
    "python.ops.parallel_for.gradients": ("opdock.autodiff.jacobians",),
    "python.ops.ragged.ragged_util": ("opdock.ops.support.ragged_rows",),
    "python.ops.ragged.ragged_map_ops": ("opdock.ops.composed.ragged_map",),
    "python.ops.linalg.linear_operator_addition": ("opdock.linear.addition",),
    "python.ops.linalg.linear_operator_algebra": ("opdock.linear.algebra",),
    "python.ops.op_selector": (
        "opdock.contrib.graph_editor.select",
        "opdock.contrib.graph_editor.util",
    ),
    "python.ops.linalg.linear_operator_util": ("opdock.linear.helpers",),
}

# Internal module -> name -> "module:name" of opdock.
OPS_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.ops.state_ops": {
        "init_variable": "opdock.util.variable_helpers:init_variable",
        "variable_op": "opdock.util.variable_helpers:variable_op",
        "variable_op_v2": "opdock.util.variable_helpers:variable_op_v2",
    },
    "python.ops.summary_op_util": {"skip_summary": "opdock.util.graph_helpers:skip_summary"},
    "python.ops.variable_scope": {
        "EagerVariableStore": "opdock.graph.variables.eager_store:EagerVariableStore",
        "_PartitionInfo": "opdock.graph.variables.partitioned:PartitionInfo",
        "_pure_variable_scope": "opdock.util.variable_helpers:pure_variable_scope",
        "_get_default_variable_store": "opdock.graph.variables.variable_scope:variable_store",
        "variable": "opdock:Variable",
    },
    "python.ops.array_ops": {
        "_SLICE_TYPE_ERROR": "opdock.ops.composed.subscripts:SLICE_TYPE_ERROR",
        "_SliceHelperVar": "opdock.ops.composed.subscripts:slice_helper_var",
        "_slice_helper": "opdock.ops.composed.subscripts:slice_helper",
        "batch_gather_nd": "opdock.ops.gather:batch_gather_nd",
        "shape_internal": "opdock.ops.array:shape_internal",
    },
    "python.ops.sparse_ops": {
        "_DEFAULT_HASH_KEY": "opdock.ops.sparse_cross:HASH_KEY",
        **{
            name: f"opdock.ops.composed.sparse_values:{name.removeprefix('_')}"
            for name in (
                "_add_many_sparse_to_tensors_map",
                "_add_sparse_to_tensors_map",
                "_take_many_sparse_from_tensors_map",
                "deserialize_sparse",
                "sparse_dense_cwise_add",
            )
        },
    },
    # Modules of ragged tensors have the plain functions of these names as well.
    "python.ops.ragged.ragged_concat_ops": {
        name: f"opdock.ops.composed.ragged_rows:{name}" for name in ("concat", "stack")
    },
    "python.ops.gradients_impl": {
        "_hessian_vector_product": "opdock.autodiff.jacobians:hessian_vector_product",
    },
    "python.ops.functional_ops": {
        "symbolic_gradient": "opdock.ops.composed.defined_function:symbolic_gradient",
    },
    "python.framework.test_ops": {"_op_def_lib": "opdock.util.op_def_library:LIBRARY"},
    "python.ops.gradient_checker_v2": {
        "compute_gradient": "opdock.autodiff.checker:compute_gradient_of",
        "max_error": "opdock.autodiff.checker:max_error",
        "_to_numpy": "opdock.autodiff.checker:to_numpy",
    },
    "python.ops.custom_gradient": {"_graph_mode_decorator": "opdock.autodiff.custom:fenced_call"},
    "python.ops.control_flow_util": {
        **dict.fromkeys(
            ("GetContainingWhileContext", "GetContainingXLAContext"),
            "opdock.util.graph_helpers:containing_context",
        ),
        "GraphOrParentsInXlaContext": "opdock.util.graph_helpers:in_xla_context",
        "ENABLE_CONTROL_FLOW_V2": "opdock.ops.support.control_mode:ENABLE_CONTROL_FLOW_V2",
        "EnableControlFlowV2": "opdock.util.node_kinds:has_second_control",
        "enable_control_flow_v2": "opdock:enable_control_flow_v2",
        "InXlaContext": "opdock.util.graph_helpers:in_xla_context",
        "IsInXLAContext": "opdock.util.graph_helpers:in_xla_context",
        "IsLoopConstantEnter": "opdock.util.node_kinds:is_loop_constant_enter",
        "IsLoopEnter": "opdock.util.node_kinds:is_loop_enter",
        "IsLoopExit": "opdock.util.node_kinds:is_loop_exit",
        "IsMerge": "opdock.util.node_kinds:is_merge",
        "IsSwitch": "opdock.util.node_kinds:is_switch",
    },
    "python.ops.math_ops": {
        "_as_indexed_slices_list": "opdock.autodiff.aggregate:as_slices",
        "reduced_shape": "opdock.ops.reduce:reduced_shape",
    },
    "python.ops.linalg_ops_impl": {"eye": "opdock:eye"},
    "python.ops.cond_v2": {
        "cond_v2": "opdock.ops.composed.second_control:cond_v2",
        "get_func_graphs": "opdock.ops.composed.second_control:branches_of",
    },
    "python.ops.while_v2": {
        "_get_graph": "opdock.ops.composed.second_control:function_of",
        "while_loop": "opdock.ops.composed.second_control:while_loop",
    },
    "python.ops.image_ops_impl": {
        "_verify_compatible_image_shapes": "opdock.ops.composed.image_measures:_comparable",
        "ResizeMethod": f"{_RESIZING}:ResizeMethod",
        "ResizeMethodV1": "opdock:image.ResizeMethod",
        "extract_glimpse_v2": "opdock.ops.image_crop:extract_glimpse_v2",
        "resize_image_with_pad_v2": f"{_RESIZING}:resize_image_with_pad_v2",
        "resize_images_v2": f"{_RESIZING}:resize_images_v2",
    },
    "python.ops.string_ops": {
        "string_split": "opdock:string_split",
        "string_split_v2": "opdock:strings.split",
    },
    "python.ops.ragged.ragged_util": {
        "repeat": "opdock.ops.tiling:repeat",
    },
    "python.ops.ragged.ragged_array_ops": {"tile": "opdock:tile"},
    "python.ops.ragged.ragged_string_ops": {
        "reduce_join": "opdock.ops.composed.ragged_math:reduce_join",
        "string_split_v2": "opdock.ops.strings:split_v2",
        "strings_split_v1": "opdock:strings.split",
    },
    "python.ops.ragged.ragged_tensor": {
        "RaggedTensorType": "opdock.ops.composed.ragged_map:RaggedTensorType",
    },
    **{
        f"python.ops.linalg.linear_operator_{kind}": {
            "_to_complex": "opdock.linear.helpers:to_complex"
        }
        for kind in ("circulant", "toeplitz")
    },
    "python.ops.linalg.linear_operator_addition": {
        f"_{name}": f"opdock.linear.addition:{name}"
        for name in ("Adder", "Hints", *(f"AddAndReturn{kind}" for kind in _SUMS))
    },
    "python.ops.linalg.linear_operator_algebra": {
        name: f"{_ALGEBRA}:{rules}.{part}"
        for rules, registry, registered in (
            ("adjoint", "_ADJOINTS", "Adjoint"),
            ("cholesky", "_CHOLESKY_DECOMPS", "Cholesky"),
            ("inverse", "_INVERSES", "Inverse"),
            ("matmul", "_MATMUL", "Matmul"),
            ("solve", "_SOLVE", "Solve"),
        )
        for name, part in (
            (registry, "table"),
            (f"Register{registered}", "register"),
            (f"_registered_{rules}", "find"),
        )
    },
    "python.ops.init_ops": {"_compute_fans": f"{_INITIALIZERS}:_fans"},
    "python.ops.init_ops_v2": {"_compute_fans": f"{_INITIALIZERS}:_fans"},
    "python.ops.nn_impl": {
        "_compute_sampled_logits": "opdock.ops.composed.sampled_losses:compute_sampled_logits",
    },
}

# Public path of TF 2's interface -> "module:name" of opdock, where it is another than TF 1's.
OPS_V2: Final[dict[str, str]] = {
    **{
        f"initializers.{name}": f"{_INITIALIZERS}_v2:{name}"
        for name in (
            *("constant", "glorot_normal", "glorot_uniform", "identity", "ones", "orthogonal"),
            *("Constant", "GlorotNormal", "GlorotUniform", "Identity", "Initializer", "Ones"),
            *("Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal"),
            *("VarianceScaling", "Zeros"),
            *("zeros", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform"),
        )
    },
    **{
        f"{name}_initializer": f"{_INITIALIZERS}_v2:{name}_initializer"
        for name in ("constant", "ones", "random_normal", "random_uniform", "zeros")
    },
    "image.ResizeMethod": f"{_RESIZING}:ResizeMethod",
    "image.extract_glimpse": "opdock.ops.image_crop:extract_glimpse_v2",
    "image.resize": f"{_RESIZING}:resize_images_v2",
    "feature_column.shared_embeddings": "opdock.feature_column.make:shared_embeddings",
    "image.resize_with_crop_or_pad": "opdock:image.resize_with_crop_or_pad",
    **{
        f"nn.RNNCell{name}Wrapper": f"opdock:nn.rnn_cell.{name}Wrapper"
        for name in ("Device", "Dropout", "Residual")
    },
    "image.resize_with_pad": f"{_RESIZING}:resize_image_with_pad_v2",
    "strings.split": "opdock.ops.strings:split_v2",
    "test.assert_equal_graph_def": "opdock:test.assert_equal_graph_def",
    "test.compute_gradient": "opdock.autodiff.checker:compute_gradient_of",
}
