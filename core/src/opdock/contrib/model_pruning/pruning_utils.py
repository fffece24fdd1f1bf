"""Blocks of matrices: one number for each, and each number for a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import opdock as tf

__all__ = ["expand_tensor", "factorized_pool", "kronecker_product"]


def kronecker_product(mat1: Any, mat2: Any) -> Any:
    """The matrix of the products of each number of `mat1` with all of `mat2`.

    Args:
        mat1: a matrix of known shape [m, n].
        mat2: a matrix of known shape [p, q].

    Returns:
        A matrix [m * p, n * q].
    """
    (m, n), (p, q) = mat1.shape.as_list(), mat2.shape.as_list()
    product = mat1[:, None, :, None] * mat2[None, :, None, :]
    return tf.reshape(product, [m * p, n * q])


def expand_tensor(tensor: Any, block_dims: Sequence[int]) -> Any:
    """A matrix with a block of equal numbers for each of another's.

    Args:
        tensor: a matrix of known shape.
        block_dims: the height and the width of a block.

    Raises:
        ValueError: `tensor` is no matrix, or `block_dims` are not two.
    """
    if tensor.shape.ndims != 2:
        raise ValueError("Input tensor must be rank 2")
    if len(block_dims) != 2:
        raise ValueError("block_dims must have 2 elements")
    return kronecker_product(tensor, tf.ones(list(block_dims), tensor.dtype))


def factorized_pool(
    input_tensor: Any, window_shape: Sequence[int], pooling_type: str, strides: Sequence[int],
    padding: str, name: str | None = None,
) -> Any:  # fmt: skip
    """A pool of a matrix, first along its columns and then along its rows.

    Args:
        input_tensor: the matrix.
        window_shape: the height and the width of a window.
        pooling_type: "MAX" or "AVG".
        strides: the steps of the window.
        padding: "SAME" or "VALID".
        name: a name for the operations.

    Raises:
        ValueError: `input_tensor` is no matrix.
    """
    if input_tensor.shape.ndims != 2:
        raise ValueError("factorized_pool() accepts tensors of rank 2 only")

    def pooled(image: Any, window: list[int], step: list[int]) -> Any:
        return tf.nn.pool(image, window, pooling_type, padding, strides=step)

    with tf.name_scope(name, "factorized_pool", [input_tensor]):
        image = input_tensor[None, :, :, None]
        high = pooled(image, [window_shape[0], 1], [strides[0], 1])
        return tf.squeeze(pooled(high, [1, window_shape[1]], [1, strides[1]]), [0, 3])
