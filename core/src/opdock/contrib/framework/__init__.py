"""`tf.contrib.framework`: argument scopes, variables, structures, tensors of known shapes."""

from __future__ import annotations

from opdock.contrib.framework import nest
from opdock.contrib.framework.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from opdock.contrib.framework.assigning import (
    assign_from_checkpoint,
    assign_from_checkpoint_fn,
    assign_from_values,
    assign_from_values_fn,
)
from opdock.contrib.framework.checkpoint_ops import (
    load_linear_multiclass_bias_initializer,
    load_variable_slot_initializer,
)
from opdock.contrib.framework.conv_orthogonal import (
    convolutional_delta_orthogonal,
    convolutional_orthogonal_1d,
    convolutional_orthogonal_2d,
    convolutional_orthogonal_3d,
)
from opdock.contrib.framework.graph_util import fuse_op, get_placeholders
from opdock.contrib.framework.prettyprint_ops import print_op
from opdock.contrib.framework.script_ops import py_func
from opdock.contrib.framework.tensor_util import (
    assert_scalar_int,
    get_graph_from_inputs,
    get_name_scope,
    reduce_sum_n,
    remove_squeezable_dimensions,
    with_same_shape,
    with_shape,
)
from opdock.contrib.framework.variables import (
    VariableDeviceChooser,
    add_model_variable,
    assert_or_get_global_step,
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variable_full_name,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    global_variable,
    local_variable,
    model_variable,
    variable,
    zero_initializer,
)
from opdock.train.remapped_matrices import (
    load_and_remap_matrix_initializer,
    load_embedding_initializer,
)

__all__ = [
    "VariableDeviceChooser", "add_arg_scope", "add_model_variable", "arg_scope",
    "arg_scoped_arguments", "assert_or_get_global_step", "assert_scalar_int",
    "assign_from_checkpoint", "assign_from_checkpoint_fn", "assign_from_values",
    "assign_from_values_fn", "convolutional_delta_orthogonal", "convolutional_orthogonal_1d",
    "convolutional_orthogonal_2d", "convolutional_orthogonal_3d", "current_arg_scope",
    "filter_variables", "fuse_op", "get_graph_from_inputs", "get_local_variables",
    "get_model_variables", "get_name_scope", "get_placeholders", "get_trainable_variables",
    "get_unique_variable", "get_variable_full_name", "get_variables", "get_variables_by_name",
    "get_variables_by_suffix", "get_variables_to_restore", "global_variable", "has_arg_scope",
    "load_and_remap_matrix_initializer", "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer", "load_variable_slot_initializer",
    "local_variable", "model_variable", "nest", "print_op", "py_func", "reduce_sum_n",
    "remove_squeezable_dimensions", "variable", "with_same_shape", "with_shape",
    "zero_initializer",
]  # fmt: skip
