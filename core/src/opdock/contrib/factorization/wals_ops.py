"""What weighted alternating least squares (WALS) needs of sparse matrices, made of other ops."""

from __future__ import annotations

from typing import Any

import opdock as tf
from opdock.util.graph_helpers import smart_cond

__all__ = ["masked_matmul", "wals_compute_partial_lhs_and_rhs"]


def masked_matmul(
    a: Any, b: Any, mask_indices: Any, transpose_a: Any, transpose_b: Any, name: str | None = None
) -> Any:
    """The cells of a product of two matrices that a mask names, without the others.

    Args:
        a: a matrix.
        b: a matrix.
        mask_indices: the row and column of each cell, [cells, 2].
        transpose_a: whether `a` is transposed first.
        transpose_b: whether `b` is.
        name: a name for the operations.

    Returns:
        The values [cells].
    """
    with tf.name_scope(name, "MaskedMatmul", [a, b, mask_indices]):
        a, b = (tf.convert_to_tensor(matrix, tf.float32) for matrix in (a, b))
        rows = smart_cond(transpose_a, lambda: tf.transpose(a), lambda: a)
        columns = smart_cond(transpose_b, lambda: b, lambda: tf.transpose(b))
        row, column = tf.unstack(tf.convert_to_tensor(mask_indices, tf.int64), 2, axis=1)
        return tf.reduce_sum(tf.gather(rows, row) * tf.gather(columns, column), 1)


def wals_compute_partial_lhs_and_rhs(
    factors: Any, factor_weights: Any, unobserved_weights: Any, input_weights: Any,
    input_indices: Any, input_values: Any, entry_weights: Any, input_block_size: Any,
    input_is_transpose: Any, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """What observed entries add to the two sides of each row's normal equations.

    An entry weighs what `entry_weights` says, or else the product of its row's and its factor's
    weight.

    Args:
        factors: the factors that are fixed, [columns, size].
        factor_weights: their weights [columns], or nothing.
        unobserved_weights: the weight of an entry that is not observed, a scalar.
        input_weights: the weights of the rows, or nothing.
        input_indices: row and column of each observed entry, [entries, 2].
        input_values: their values.
        entry_weights: their weights, or nothing where the two others are given.
        input_block_size: the number of rows.
        input_is_transpose: whether entries name their column first.
        name: a name for the operations.

    Returns:
        Matrices [rows, size, size] and vectors [rows, size].

    Raises:
        InvalidArgumentError: when it runs, weights are given in both ways or in neither.
    """
    with tf.name_scope(name, "WALSComputePartialLhsAndRhs", [factors, input_values]):
        factors, factor_weights, unobserved, input_weights, values, entry_weights = (
            tf.convert_to_tensor(value, tf.float32)
            for value in (
                factors, factor_weights, unobserved_weights, input_weights, input_values,
                entry_weights,
            )
        )  # fmt: skip
        indices = tf.convert_to_tensor(input_indices, tf.int64)
        given = tf.size(entry_weights) > 0
        counts = tf.size(entry_weights), tf.size(factor_weights), tf.size(input_weights)
        by_entry = tf.reduce_all(tf.equal(counts, [tf.size(values), 0, 0]))
        by_row = (
            tf.equal(counts[0], 0) & tf.equal(counts[1], tf.shape(factors)[0]) & (counts[2] > 0)
        )
        message = (
            "To specify the weights for observed entries, either (1) entry_weights must be set "
            "or (2) input_weights and factor_weights must be set, but not both."
        )
        with tf.control_dependencies([tf.Assert(by_entry | by_row, [message])]):
            indices = tf.identity(indices)
        first, second = tf.unstack(indices, 2, axis=1)
        row, column = smart_cond(
            input_is_transpose, lambda: (second, first), lambda: (first, second)
        )
        weights = smart_cond(
            given, lambda: entry_weights,
            lambda: tf.gather(input_weights, row) * tf.gather(factor_weights, column),
        )  # fmt: skip
        cells = tf.stack([row, column], 1)
        block = tf.cast(input_block_size, tf.int64)
        shape = tf.stack([block, tf.shape(factors, out_type=tf.int64)[0]])

        def summed(of_entries: Any, of_factors: Any) -> Any:
            sparse = tf.SparseTensor(cells, of_entries, shape)
            return tf.sparse_tensor_dense_matmul(sparse, of_factors)

        # Each factor's square is made once, not once for each entry that it is in.
        size = tf.shape(factors)[1]
        squares = tf.reshape(factors[:, :, None] * factors[:, None, :], [-1, size * size])
        lhs = tf.reshape(summed(weights, squares), tf.stack([tf.cast(block, tf.int32), size, size]))
        return lhs, summed(values * (unobserved + weights), factors)
