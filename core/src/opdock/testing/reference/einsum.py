"""The oracle for sums over named axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Einsum")
def einsum(attrs: Attrs, inputs: list[Array]) -> Array:
    """Einstein's summation; labels that the result repeats stand for its diagonal."""
    terms, _, result = attrs["equation"].partition("->")
    once = "".join(dict.fromkeys(result.replace("...", "")))
    if len(once) == len(result.replace("...", "")):
        return np.asarray(np.einsum(attrs["equation"], *inputs))
    values = np.einsum(f"{terms}->{once}", *inputs)
    sizes = dict(zip(once, values.shape, strict=True))
    out = np.zeros([sizes[label] for label in result], values.dtype)
    for place in np.ndindex(*values.shape):
        at = dict(zip(once, place, strict=True))
        out[tuple(at[label] for label in result)] = values[place]
    return out
