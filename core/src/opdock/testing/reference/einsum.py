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
    """Einstein's summation."""
    return np.asarray(np.einsum(attrs["equation"], *inputs))
