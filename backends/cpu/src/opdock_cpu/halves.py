"""Half precision as single and back, by instructions of the processor.

NumPy converts such numbers one by one, in whole numbers' arithmetic; processors have had an
instruction for eight at once since 2012, which generated code uses. What is computed in float32 and
rounded to float16 at the end goes through here on both sides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Looped

__all__ = ["applied", "astype", "converted", "narrowed", "widened"]

Array = np.ndarray[Any, Any]  # or the NumPy scalar that stands for a 0-d one

_HALF: Final = np.dtype(np.float16)
_SINGLE: Final = np.dtype(np.float32)
_MANY: Final = 1 << 12
"""Elements from which on a call of generated code takes less than NumPy."""


def _converted(begin: int, end: int, out: Array, x: Array) -> None:
    """A turn is an element."""
    for i in range(begin, end):
        out[i] = x[i]


_CONVERTED: Final = Looped(_converted)


def converted(x: Array, dtype: Any, out: Array | None = None) -> Array:
    """An array in another element type, always a new one or `out`."""
    if x.size >= _MANY:
        target = np.dtype(dtype)
        if (x.dtype is _HALF and target is _SINGLE) or (x.dtype is _SINGLE and target is _HALF):
            made = np.empty(x.shape, target) if out is None else out
            if made.flags.c_contiguous and _CONVERTED(x.size, x.size, made, x):
                return made
        elif x.dtype is _HALF or (target is _HALF and x.dtype.kind in "iub"):
            # Whole numbers that float32 does not hold are beyond all halves.
            return converted(x.astype(_SINGLE) if target is _HALF else widened(x), target, out)
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The array API's function of this name."""
    return converted(x, dtype) if copy or x.dtype != dtype else x


def applied(ufunc: np.ufunc, x: Array, y: Array) -> Array:
    """A function of two arrays of one shape; what it gives of halves is rounded once."""
    if x.dtype is not _HALF or x.size < _MANY:
        found: Array = ufunc(x, y)
        return found
    return converted(ufunc(widened(x), widened(y)), _HALF)


def widened(x: Array) -> Array:
    """float16 and bfloat16 as float32, in which they are computed; other types as they are."""
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        return converted(x, _SINGLE)
    return x


def narrowed(x: Array, dtype: Any) -> Array:
    """An array in the declared type; itself if it has it."""
    return x if x.dtype == dtype else converted(x, dtype)
