"""Identity matrices: a diagonal of ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.diag import matrix_diag, matrix_set_diag
from opdock.ops.fill import ones, zeros
from opdock.ops.joining import concat
from opdock.ops.registry import get

__all__ = ["eye"]


@extensible
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """An identity matrix, or a batch of them.

    Args:
        num_rows: a non-negative integer or scalar int32 tensor.
        num_columns: the same; `num_rows` by default.
        batch_shape: a list of integers or a 1-D tensor of leading dimensions.
        dtype: the type of the elements.
        name: a name for the operation.

    Returns:
        A tensor of shape `batch_shape + [num_rows, num_columns]`.

    Raises:
        TypeError: the sizes are neither integers nor tensors.
    """
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        square = num_columns is None
        num_columns = num_rows if square else num_columns
        batch = [] if batch_shape is None else batch_shape
        if isinstance(num_rows, Tensor) or isinstance(num_columns, Tensor):
            n = get("Minimum")(num_rows, num_columns)
        else:
            if not all(isinstance(v, (int, np.integer)) for v in (num_rows, num_columns)):
                raise TypeError("num_rows and num_columns must be positive integer values.")
            square = num_rows == num_columns
            n = min(num_rows, num_columns)
        diag_shape: Any
        full_shape: Any
        if isinstance(batch, Tensor) or isinstance(n, Tensor):
            batch = convert_to_tensor(batch, name="shape", dtype=dtypes.int32)
            diag_shape = concat((batch, [n]), axis=0)
            full_shape = None if square else concat((batch, [num_rows, num_columns]), axis=0)
        else:
            leading = tuple(shapes.as_shape(batch) or ())
            diag_shape, full_shape = (*leading, n), (*leading, num_rows, num_columns)
        diagonal = ones(diag_shape, dtype)
        if square:
            return matrix_diag(diagonal)
        return matrix_set_diag(zeros(full_shape, dtype), diagonal)
