"""The oracle for formatting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def text_of(value: Array, summarize: int) -> str:
    """An integer tensor as TF prints it: the middle of a long dimension left out."""
    if value.ndim == 0:
        return str(int(value))
    rows = [text_of(row, summarize) for row in value]
    if summarize >= 0 and len(rows) > 2 * summarize:
        rows = [*rows[:summarize], "...", *rows[len(rows) - summarize :]]
    gap = " " if value.ndim == 1 else "\n "
    return "[" + gap.join(rows) + "]"


@reference("StringFormat")
def string_format(attrs: Attrs, inputs: Sequence[Array]) -> Array:
    """Each placeholder gives way to one input."""
    text = attrs["template"]
    for value in inputs:
        text = text.replace(attrs["placeholder"], text_of(value, attrs["summarize"]), 1)
    return np.array(text.encode(), object)
