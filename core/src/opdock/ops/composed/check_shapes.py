"""`tf.debugging.assert_shapes`: the shapes of several tensors, and the sizes that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import Assert
from opdock.ops.composed.check_static import assert_rank, assert_rank_at_least, assert_rank_in
from opdock.ops.control import group
from opdock.ops.registry import get

__all__ = ["assert_shapes"]

_ANY: Final = (None, ".")
_ANY_OUTER: Final = (Ellipsis, "*")


@extensible
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Asserts the shapes of several tensors and the sizes that they share.

    Args:
        shapes: pairs of a tensor and its shape, or a dict of them; a shape that is None asks
            nothing. An entry of a shape is a size, None or "." for any, or a symbol: equal symbols
            stand for equal sizes. `...` or "*" in front stands for any number of dimensions. A
            string is a shape of one entry a letter. A scalar counts as a vector of one element.
        data: what to print where a check fails, in place of what was expected and found.
        summarize: print so many elements of each tensor.
        message: put in front of the printed text.
        name: a name for the operation.

    Returns:
        An operation that checks what is not known yet.

    Raises:
        ValueError: the static shapes contradict, or a shape is none.
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    message = message or ""
    with name_scope(name, "assert_shapes", [x for x, _ in pairs]):
        wanted = [_wanted(convert_to_tensor(x), s, message) for x, s in pairs if s is not None]
        ranks = [c for w in wanted if (c := w.check_rank(data, summarize, message)) is not None]
        sizes = list(_check_sizes(wanted, data, summarize, message))
        with control_dependencies(ranks):
            return group(*sizes)


@dataclass(frozen=True)
class _Wanted:
    """What is asked of a tensor: its sizes, of the last dimensions alone if `inner` is set."""

    x: Tensor
    sizes: tuple[Any, ...]
    inner: bool

    def check_rank(self, data: Any, summarize: Any, message: str) -> Operation | None:
        """An operation that checks the rank; None where any will do."""
        rank = len(self.sizes)
        if self.inner:
            if rank <= 1:
                return None
            return assert_rank_at_least(self.x, rank, data, summarize, message)
        if rank <= 1:
            return assert_rank_in(self.x, [0, 1], data, summarize, message)
        return assert_rank(self.x, rank, data, summarize, message)

    def entries(self) -> Iterator[tuple[int, Any]]:
        """The dimensions of which something is asked, and what."""
        sizes = self.sizes
        # No entry at all means a scalar, or a vector of one element.
        if not sizes and not self.inner:
            sizes = (1,)
        for i, size in enumerate(sizes):
            if not any(size is a or (a is not None and size == a) for a in _ANY):
                yield (i - len(sizes) if self.inner else i), size

    def size(self, axis: int) -> Any:
        """The size of a dimension: a number, or a tensor where it is not known yet."""
        known = self.x.raw_shape
        if known == ():
            return 1
        if known is not None and known[axis] is not None:
            return known[axis]
        dims = get("Shape")(self.x)
        if known is None and len(self.sizes) <= 1:
            # It may be a scalar.
            dims = get("ConcatV2")([[1], dims], 0)
            axis = -1
        end = 0 if axis == -1 else axis + 1
        return get("StridedSlice")(
            dims, [axis], [end], [1], shrink_axis_mask=1, end_mask=int(axis == -1)
        )


def _wanted(x: Tensor, shape: Any, message: str) -> _Wanted:
    if not (hasattr(shape, "__iter__") or hasattr(shape, "__getitem__")):
        raise ValueError(
            f"{message}.  Tensor {x.name}.  Specified shape must be an iterable.  An iterable has "
            f"the attribute `__iter__` or `__getitem__`.  Received specified shape: {shape}"
        )
    entries = tuple(shape)
    for i, entry in enumerate(entries):
        if i > 0 and entry in _ANY_OUTER:
            raise ValueError(
                f"{message}.  Tensor {x.name} specified shape index {i}.  Symbol `...` or `*` for "
                "a variable number of unspecified dimensions is only allowed as the first entry"
            )
    inner = bool(entries) and entries[0] in _ANY_OUTER
    return _Wanted(x, entries[1:] if inner else entries, inner)


def _check_sizes(
    wanted: list[_Wanted], data: Any, summarize: Any, message: str
) -> Iterator[Operation]:
    symbols: dict[Any, tuple[Any, str]] = {}
    for one in wanted:
        for axis, entry in one.entries():
            size = one.size(axis)
            if _number(entry) is not None:
                expected, by = _number(entry), "Specified explicitly"
            elif entry in symbols:
                expected, by = symbols[entry]
            else:
                symbols[entry] = size, f"Specified by tensor {one.x.name} dimension {axis}"
                continue
            if not isinstance(size, Tensor) and not isinstance(expected, Tensor):
                if size != expected:
                    raise ValueError(
                        f"{message}.  {by}.  Tensor {one.x.name} dimension {axis} must have size "
                        f"{expected}.  Received size {size}, shape {one.x.shape}"
                    )
                continue
            shown = data
            if data is None:
                shown = [
                    message, by, f"Tensor {one.x.name} dimension", axis, "must have size",
                    expected, "Received shape: ", get("Shape")(one.x),
                ]  # fmt: skip
            yield Assert(get("Equal")(size, expected), shown, summarize=summarize)


def _number(entry: Any) -> int | None:
    """The size that an entry names; None for a symbol."""
    try:
        return int(entry)
    except (TypeError, ValueError):
        return None
