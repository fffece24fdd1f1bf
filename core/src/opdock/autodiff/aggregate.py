"""Adding up the gradients that reach one tensor by several ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from opdock.dtypes import int64
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import name_scope


class AggregationMethod:
    """How contributions are added.

    Every method gives the same sum; the names exist because programs pass them.
    """

    ADD_N: Final = 0
    DEFAULT: Final = 0
    EXPERIMENTAL_TREE: Final = 1
    EXPERIMENTAL_ACCUMULATE_N: Final = 2


def add_up(tensor: Tensor, parts: list[Any], method: int | None) -> Any:
    """The sum of gradient contributions: sparse only if all of them are.

    Raises:
        ValueError: `method` is unknown.
    """
    if method not in (
        None,
        AggregationMethod.ADD_N,
        AggregationMethod.EXPERIMENTAL_TREE,
        AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ):
        raise ValueError(f"Invalid aggregation_method specified {method}.")
    if all(isinstance(p, IndexedSlices) for p in parts):
        return _concatenate(parts)
    dense = [convert_to_tensor(p) for p in parts]
    if method == AggregationMethod.EXPERIMENTAL_TREE:
        with name_scope(tensor.op.name + "_gradient_sum"):
            total = dense[0]
            for part in dense[1:]:
                total = get("AddV2")(total, part)
            return total
    return _add_by_device(dense)


def _add_by_device(parts: list[Tensor]) -> Tensor:
    """The sum; what is on one device is added there, beside the first of them."""
    by_device: dict[str, list[Tensor]] = {}
    for part in parts:
        by_device.setdefault(part.device, []).append(part)
    sums = []
    for device in sorted(by_device):
        here = by_device[device]
        with get_default_graph().colocate_with(here[0].op, ignore_existing=True):
            sums.append(get("AddN")(here) if len(here) > 1 else here[0])
    return get("AddN")(sums) if len(sums) > 1 else sums[0]


def as_slices(inputs: Sequence[Any], optimize: bool = True) -> list[IndexedSlices]:
    """Tensors and slices, all as slices with indices of one type: int64 if that of any is.

    Args:
        inputs: tensors and `IndexedSlices`.
        optimize: whether a shape that is known is a constant.

    Raises:
        TypeError: they are no list, or one is something else.
    """
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Expected a list or tuple, not a {type(inputs)}")
    parts = [_slices(x, optimize) for x in inputs]
    if len({p.indices.dtype for p in parts}) < 2:
        return parts
    cast = get("Cast")
    return [
        p if p.indices.dtype is int64
        else IndexedSlices(p.values, cast(p.indices, DstT=int64), p.dense_shape)
        for p in parts
    ]  # fmt: skip


def _slices(x: Any, optimize: bool) -> IndexedSlices:
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, Tensor):
        raise TypeError(f"Not a Tensor or IndexedSlices: {type(x)}")
    known = x.raw_shape if optimize else None
    size = get("Shape")(x) if known is None or None in known else convert_to_tensor(known)
    return IndexedSlices(x, get("Range")(0, size[0], 1), size)


def _concatenate(parts: list[IndexedSlices]) -> IndexedSlices:
    """Sparse gradients of one tensor side by side; repeated indices add up by definition."""
    concat = get("ConcatV2")
    parts = as_slices(parts)
    values = concat([p.values for p in parts], 0)
    indices = concat([p.indices for p in parts], 0)
    return IndexedSlices(values, indices, parts[0].dense_shape)
