"""What a strided slice selects: masks and Python-style bounds, resolved against a shape.

Shape functions and kernels resolve the same specification, so both read it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opdock.shapes import Shape

Index = tuple[Any, ...]
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Resolved(NamedTuple):
    """The static result shape, and the index tuple where every bound is known."""

    shape: tuple[int | None, ...]
    subscript: Index | None


class _Entry(NamedTuple):
    """One subscript: of an input dimension, or a new axis (`dim` is None)."""

    dim: int | None
    begin: int | None = None
    end: int | None = None
    stride: int = 1
    begin_masked: bool = True
    end_masked: bool = True
    shrink: bool = False


def resolve(
    shape: tuple[int | None, ...],
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int],
    attrs: Mapping[str, Any],
) -> Resolved:
    """Resolves a specification.

    Args:
        shape: the input's shape; dimensions may be unknown.
        begin: the first bounds, None when they are not known.
        end: the last bounds, None when they are not known.
        strides: the steps.
        attrs: the five mask attributes of StridedSlice.

    Raises:
        ValueError: the specification does not fit the shape.
    """
    out: list[int | None] = []
    index: list[Any] = []
    known = True
    for entry in _entries(len(shape), begin, end, strides, attrs):
        if entry.dim is None:
            out.append(1)
            index.append(None)
            continue
        selected, length = _select(entry, shape[entry.dim])
        known = known and selected is not None
        index.append(selected)
        if not entry.shrink:
            out.append(length)
    return Resolved(tuple(out), tuple(index) if known else None)


def _entries(
    rank: int,
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int],
    attrs: Mapping[str, Any],
) -> list[_Entry]:
    """One entry per subscript, the ellipsis spelled out."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask = (attrs[m] for m in _MASKS)
    if ellipsis_mask & (ellipsis_mask - 1):
        raise ValueError("Multiple ellipses in slice spec not allowed")
    n = len(strides)
    entries: list[_Entry] = []
    dim, seen = 0, False
    for i in range(n + 1):
        bit = 1 << i
        if (ellipsis_mask & bit) or (i == n and not seen):
            after = [j for j in range(i + 1, n) if not new_axis_mask & (1 << j)]
            while dim < rank - len(after):
                entries.append(_Entry(dim))
                dim += 1
            seen = True
        elif i == n:
            break
        elif new_axis_mask & bit:
            entries.append(_Entry(None))
        else:
            if dim >= rank:
                raise ValueError(
                    f"Index out of range using input dim {dim}; input has only {rank} dims"
                )
            entries.append(
                _Entry(
                    dim,
                    None if begin is None else begin[i],
                    None if end is None else end[i],
                    strides[i],
                    bool(begin_mask & bit),
                    bool(end_mask & bit),
                    bool(shrink_mask & bit),
                )
            )
            dim += 1
    return entries


def _select(entry: _Entry, size: int | None) -> tuple[Any, int | None]:
    """The Python subscript of one dimension and the length that it selects (None: not known)."""
    stride = entry.stride
    if stride == 0:
        raise ValueError(f"strides[{entry.dim}] must be non-zero")
    if entry.shrink:
        if stride < 0:
            raise ValueError("only stride 1 allowed on non-range indexing.")
        return _pick(entry, size), 1
    both_masked = entry.begin_masked and entry.end_masked
    if size is None:
        return (slice(None, None, stride), None) if both_masked else (None, None)
    if not both_masked and (
        (entry.begin is None and not entry.begin_masked)
        or (entry.end is None and not entry.end_masked)
    ):
        return None, None
    low, high = (0, size) if stride > 0 else (-1, size - 1)
    first = low if stride > 0 else high
    last = high if stride > 0 else low
    start = first if entry.begin_masked else _clamp(entry.begin, size, low, high)
    stop = last if entry.end_masked else _clamp(entry.end, size, low, high)
    length = max(0, -(-(stop - start) // stride))
    if length == 0:
        return slice(0, 0, 1), 0
    return slice(start, None if stop < 0 else stop, stride), length


def _pick(entry: _Entry, size: int | None) -> int | None:
    if entry.begin is None or size is None:
        return None
    at = entry.begin + size if entry.begin < 0 else entry.begin
    if not 0 <= at < size:
        raise ValueError(f"slice index {entry.begin} of dimension {entry.dim} out of bounds.")
    return at


def _clamp(bound: int | None, size: int, low: int, high: int) -> int:
    value = 0 if bound is None else bound
    return min(max(value + size if value < 0 else value, low), high)


def picks(
    shape: tuple[int, ...], begin: Any, strides: Sequence[int], attrs: Mapping[str, Any]
) -> dict[int, Any]:
    """The dimensions of which one place is picked, and the place, whose value may be unknown.

    Raises:
        ValueError: the specification does not fit the shape.
        NotImplementedError: the length of what is selected depends on the bounds.
    """
    found = {}
    for entry in _entries(len(shape), begin, None, strides, attrs):
        if entry.dim is None or (entry.begin_masked and entry.end_masked and not entry.shrink):
            continue
        if not entry.shrink:
            raise NotImplementedError(f"the length of dimension {entry.dim} depends on values")
        found[entry.dim] = entry.begin
    return found


def template(
    rank: int, strides: Sequence[int], attrs: Mapping[str, Any]
) -> tuple[list[Any], list[tuple[int, int, int]]] | None:
    """The subscript of a specification that takes one place of some dimensions and all of the rest.

    Returns:
        The subscript with a hole for each place, and for each hole where it is, the dimension and
        the index of its bound; None for other specifications, and for those that do not fit.
    """
    try:
        # In the place of its bound each entry has the bound's index.
        entries = _entries(rank, range(len(strides)), None, strides, attrs)
    except ValueError:
        return None
    index: list[Any] = []
    holes: list[tuple[int, int, int]] = []
    for entry in entries:
        if entry.stride < 1 or not (entry.shrink or (entry.begin_masked and entry.end_masked)):
            return None
        if entry.shrink and entry.dim is not None and entry.begin is not None:
            holes.append((len(index), entry.dim, entry.begin))
        index.append(None if entry.dim is None else slice(None, None, entry.stride))
    return index, holes


def masks(attrs: Mapping[str, Any]) -> dict[str, int]:
    """The mask attributes of a StridedSlice-like op, to be passed on to another one."""
    return {m: attrs[m] for m in _MASKS}


def resolve_static(
    shape: Shape,
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int] | None,
    attrs: Mapping[str, Any],
) -> Shape:
    """The result's static shape, unknown where the rank or the strides are."""
    if shape is None or strides is None:
        return None
    return resolve(shape, begin, end, strides, attrs).shape
