"""What slices and subscripts select."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Slice")
def slice_(attrs: Attrs, x: Array, begin: Array, size: Array) -> Array:
    """A block; a size of -1 takes the rest."""
    lengths = [x.shape[i] - int(begin[i]) if size[i] == -1 else int(size[i]) for i in range(x.ndim)]
    out = np.empty(lengths, x.dtype)
    for place in np.ndindex(*lengths):
        out[place] = x[tuple(p + int(b) for p, b in zip(place, begin, strict=True))]
    return out


def _python_index(attrs: Attrs, begin: Array, end: Array, strides: Array) -> tuple[Any, ...]:
    """The masks say which subscripts stand for `...`, a new axis, one index or an open end."""
    index: list[Any] = []
    for i in range(len(begin)):
        bit = 1 << i
        if attrs["ellipsis_mask"] & bit:
            index.append(Ellipsis)
        elif attrs["new_axis_mask"] & bit:
            index.append(None)
        elif attrs["shrink_axis_mask"] & bit:
            index.append(int(begin[i]))
        else:
            index.append(
                slice(
                    None if attrs["begin_mask"] & bit else int(begin[i]),
                    None if attrs["end_mask"] & bit else int(end[i]),
                    int(strides[i]),
                )
            )
    return tuple(index)


@reference("StridedSlice")
def strided_slice(attrs: Attrs, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """NumPy's basic indexing has the same rules."""
    return np.asarray(x[_python_index(attrs, begin, end, strides)], x.dtype)


@reference("StridedSliceGrad")
def strided_slice_grad(
    attrs: Attrs, shape: Array, begin: Array, end: Array, strides: Array, dy: Array
) -> Array:
    """Zeros with `dy` where the slice was taken."""
    zero = b"" if dy.dtype.kind in "OSU" else 0
    out = np.full([int(d) for d in shape], zero, dy.dtype)
    out[_python_index(attrs, begin, end, strides)] = dy
    return out


@reference("StridedSliceAssign", "ResourceStridedSliceAssign")
def strided_slice_assign(
    attrs: Attrs, old: Array, begin: Array, end: Array, strides: Array, value: Array
) -> Array:
    """The variable afterwards."""
    out = old.copy()
    out[_python_index(attrs, begin, end, strides)] = value
    return out
