"""`tf.contrib.framework`: argument scopes, nested structures and tensors of known shapes."""

from __future__ import annotations

from opdock.contrib.framework import nest
from opdock.contrib.framework.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
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
from opdock.contrib.framework.prettyprint_ops import print_op
from opdock.contrib.framework.tensor_util import (
    assert_scalar_int,
    get_graph_from_inputs,
    get_name_scope,
    reduce_sum_n,
    remove_squeezable_dimensions,
    with_same_shape,
    with_shape,
)
from opdock.contrib.framework.variables import zero_initializer
from opdock.train.remapped_matrices import (
    load_and_remap_matrix_initializer,
    load_embedding_initializer,
)

__all__ = [
    "add_arg_scope", "arg_scope", "arg_scoped_arguments", "assert_scalar_int",
    "convolutional_delta_orthogonal", "convolutional_orthogonal_1d", "convolutional_orthogonal_2d",
    "convolutional_orthogonal_3d", "current_arg_scope",
    "get_graph_from_inputs", "get_name_scope", "has_arg_scope",
    "load_and_remap_matrix_initializer", "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer", "load_variable_slot_initializer", "nest",
    "print_op", "reduce_sum_n",
    "remove_squeezable_dimensions", "with_same_shape", "with_shape", "zero_initializer",
]  # fmt: skip
