"""`map_fn` over ragged tensors: rows of any length go in, and come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    match_row_splits_dtypes,
)
from opdock.ops.composed.tensor_array import TensorArray
from opdock.util import nest

# Not public in TF 1.15: programs import it from TF's module.
__all__: list[str] = []


class RaggedTensorType:
    """What `map_fn` is to make of the results of its function.

    Args:
        dtype: of the values.
        ragged_rank: how many dimensions are ragged.
        row_splits_dtype: int32 or int64.
    """

    def __init__(self, dtype: Any, ragged_rank: int, row_splits_dtype: Any = dtypes.int64) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._ragged_rank = ragged_rank
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the values."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> dtypes.DType:
        """The type of the row splits."""
        return self._row_splits_dtype


class _Dense(NamedTuple):
    """Results that are stacked."""

    dtype: dtypes.DType

    @property
    def kinds(self) -> list[dtypes.DType]:
        return [self.dtype]

    def parts(self, value: Any) -> list[Any]:
        return [value]

    def joined(self, arrays: list[TensorArray]) -> Any:
        return arrays[0].stack()


class _Ragged(NamedTuple):
    """Results that are rows of a ragged tensor: their values and lengths are put together."""

    type: RaggedTensorType

    @property
    def kinds(self) -> list[dtypes.DType]:
        return [self.type.dtype, *[self.type.row_splits_dtype] * self.type.ragged_rank]

    def parts(self, value: Any) -> list[Any]:
        found = getattr(value, "ragged_rank", 0) + 1
        if found != self.type.ragged_rank:
            raise ValueError(
                f"The declared ragged rank ({self.type.ragged_rank}) mismatches the result "
                f"({found})"
            )
        splits = self.type.row_splits_dtype
        if not isinstance(value, RaggedTensor):
            return [value, expand_dims(cast(shape(value)[0], splits), 0)]
        value = value.with_row_splits_dtype(splits)
        return [value.flat_values, expand_dims(value.nrows(), 0), *value.nested_row_lengths()]

    def joined(self, arrays: list[TensorArray]) -> Any:
        values, *lengths = (array.concat() for array in arrays)
        for length in reversed(lengths):
            values = RaggedTensor.from_row_lengths(values, length, validate=False)
        return values


def map_fn(
    fn: Callable[[Any], Any], elems: Any, dtype: Any = None,
    parallel_iterations: int | None = None, back_prop: bool = True, swap_memory: bool = False,
    infer_shape: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """`fn` of each row of tensors, which may be ragged.

    Args:
        fn: takes the rows in the structure of `elems`; returns the structure of `dtype`.
        elems: a tensor, a ragged tensor, or nested ones, with equal first dimensions.
        dtype: the types that `fn` returns, where they are not those of `elems`; a
            `RaggedTensorType` where the results are to be rows of a ragged tensor.
        parallel_iterations, swap_memory: accepted for TF's signature.
        back_prop: whether gradients flow through the loop.
        infer_shape: check that all results have one shape.
        name: the name scope, "map" by default.

    Returns:
        Tensors and ragged tensors in the structure of `dtype`.

    Raises:
        TypeError: `fn` is not callable, or an element is sparse.
        ValueError: an element is a scalar, or a result has another ragged rank than declared.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    if isinstance(elems, SparseTensor):
        raise TypeError(
            "To perform a map on the values of a sparse tensor use either "
            "SparseTensor(input.indices, fn(input.values), input.dense_shape) or "
            "SparseTensor(input.indices, map_fn(fn, input.values), input.dense_shape)"
        )
    with name_scope(name, "map"):
        rows = [convert_to_tensor_or_ragged_tensor(e, name="elem") for e in nest.flatten(elems)]
        match_row_splits_dtypes(*rows)
        if dtype is None:
            dtype = nest.pack_sequence_as(elems, [r.dtype for r in rows])
        wanted = [_Ragged(d) if isinstance(d, RaggedTensorType) else _Dense(dtypes.as_dtype(d))
                  for d in nest.flatten(dtype)]  # fmt: skip
        count = _count(rows)
        arrays = [
            [TensorArray(kind, count, infer_shape=infer_shape) for kind in w.kinds] for w in wanted
        ]

        def turn(i: Any, arrays: Any) -> Any:
            result = nest.flatten(fn(nest.pack_sequence_as(elems, [r[i] for r in rows])))
            parts = [w.parts(value) for w, value in zip(wanted, result, strict=True)]
            return i + 1, nest.map_structure(lambda a, part: a.write(i, part), arrays, parts)

        _, arrays = while_loop(
            lambda i, _: i < count, turn, (0, arrays), back_prop=back_prop,
            maximum_iterations=count,
        )  # fmt: skip
        joined = [w.joined(a) for w, a in zip(wanted, arrays, strict=True)]
        return nest.pack_sequence_as(dtype, joined)


def _count(rows: list[Any]) -> Tensor:
    first = rows[0]
    if isinstance(first, RaggedTensor):
        return first.nrows(out_type=dtypes.int32)
    if first.shape.ndims == 0:
        raise ValueError(
            "elems must be a 1+ dimensional Tensor, not a scalar"
            if len(rows) == 1
            else "elements in elems must be 1+ dimensional Tensors, not scalars"
        )
    return shape(first)[0]
