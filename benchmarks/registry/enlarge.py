"""Calls of an op at any size, made of the calls that its conformance samples are.

A sample says which arguments go together. Larger ones do too when each dimension that is so long
grows by the same factor wherever it stands, in the shapes that the sample gives as values also;
which dimensions may grow differs from op to op, so several are proposed and the op chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample

Lengths = dict[int, int]
_SIZES = 4
"""Bytes of a number that may be a size."""


@dataclass(frozen=True)
class Call:
    """Arguments of an op.

    Attributes:
        sample: what they were made of.
        inputs: the arrays, lists of them where the op takes lists.
        attrs: the attributes.
        elements: of the largest array.
    """

    sample: Sample
    inputs: list[Any]
    attrs: dict[str, Any]
    elements: int


def calls(samples: Sequence[Sample], sized: Sequence[str], elements: int) -> Iterator[Call]:
    """Calls whose largest array has about so many elements, the likeliest first.

    Args:
        samples: of one op in one element type.
        sized: the attributes that are shapes.
        elements: as many as a dimension's factor, a whole number, allows.
    """
    for sample in samples:
        shapes = [np.shape(a) for a in arrays(sample.inputs)]
        full = [s for s in shapes if all(s)]  # what has no elements never has any
        for chosen in proposals(full, windows="strides" in sample.attrs):
            for values in (True, False) if has_values(sample.inputs) else (False,):
                yield grown(sample, chosen, values, sized, elements)


def arrays(inputs: Sequence[Any]) -> list[Any]:
    """All arrays, those of lists one by one."""
    return [a for x in inputs for a in (x if isinstance(x, (list, tuple)) else [x])]


def has_values(inputs: Sequence[Any]) -> bool:
    """Whether some argument may be a shape."""
    return any(np.ndim(a) == 1 and sizes(np.asarray(a).dtype) for a in arrays(inputs))


def sizes(dtype: np.dtype[Any]) -> bool:
    """Whether shapes and axes are of this type; a byte is none."""
    return dtype.kind in "iu" and dtype.itemsize >= _SIZES


def proposals(shapes: Sequence[tuple[int, ...]], windows: bool) -> list[frozenset[int]]:
    """Sets of lengths that may grow: all, those of the first, the last, a middle axis, each.

    Where windows move over an image, the image's own lengths come first: windows stay small.
    """
    data = [s for s in shapes if s]
    every = {d for s in data for d in s if d > 1}
    image = max(data, key=len, default=())
    window = {d for s in data if s is not image for d in s} if windows else set()
    sets = [
        every - window,
        every,
        {s[0] for s in data if len(s) > 1},
        {s[-1] for s in data},
        {d for s in data for d in s[1:-1]},
        *({d} for d in sorted(every)),
    ]
    found: list[frozenset[int]] = []
    for one in sets:
        lengths = frozenset(d for d in one if d > 1)
        if lengths and lengths not in found:
            found.append(lengths)
    return found


def grown(
    sample: Sample, chosen: frozenset[int], values: bool, sized: Sequence[str], elements: int
) -> Call:
    """The sample with all `chosen` lengths multiplied by the largest factor that fits.

    Args:
        sample: the sample.
        chosen: the lengths.
        values: whether they grow where they stand in a vector of whole numbers as well.
        sized: the attributes that are shapes.
        elements: of the largest array, about.
    """
    shapes = [np.shape(a) for a in arrays(sample.inputs)]
    factor = 1
    while largest(shapes, chosen, factor + 1) <= elements * 1.5:
        factor += max(1, factor // 8)
    inputs = [
        [grow(a, chosen, values, factor) for a in x]
        if isinstance(x, (list, tuple))
        else grow(x, chosen, values, factor)
        for x in sample.inputs
    ]
    attrs = dict(sample.attrs)
    for name in sized:
        if attrs.get(name):
            attrs[name] = [d * factor if d in chosen else d for d in attrs[name]]
    return Call(sample, inputs, attrs, largest(shapes, chosen, factor))


def largest(shapes: Sequence[tuple[int, ...]], chosen: frozenset[int], factor: int) -> int:
    """Elements of the largest array after growing."""
    sizes = [np.prod([d * factor if d in chosen else d for d in s], dtype=float) for s in shapes]
    return int(max(sizes, default=0))


def grow(array: Any, chosen: frozenset[int], values: bool, factor: int) -> Any:
    """One argument. Whole numbers are repeated, which keeps what is sorted sorted."""
    found = np.asarray(array)
    whole = found.dtype.kind in "iu"
    values = values and sizes(found.dtype)
    for axis, length in enumerate(found.shape):
        if length in chosen and not (whole and values and found.ndim == 1):
            if whole:
                found = np.repeat(found, factor, axis)
            else:
                found = np.concatenate([found] * factor, axis)
    if values and whole and found.ndim == 1:
        found = np.where(np.isin(found, list(chosen)), found * factor, found).astype(found.dtype)
    return found
