"""Oracle of n-grams."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


@reference("StringNGrams")
def string_ngrams(attrs: Mapping[str, Any], data: Array, splits: Array) -> tuple[Array, Array]:
    """Window by window over each row with its padding."""
    mark, left, right = (attrs[k].encode() for k in ("separator", "left_pad", "right_pad"))
    if not len(data) or not len(splits):
        return np.full(data.shape, b"", object), splits
    grams: list[bytes] = []
    ends = [0]
    for start, end in itertools.pairwise(splits):
        row, before = list(data[start:end]), len(grams)
        for width in attrs["ngram_widths"]:
            pad = attrs["pad_width"]
            pad = width - 1 if pad < 0 or pad > width - 1 else pad
            full = [left] * pad + row + [right] * pad
            grams += [mark.join(full[i : i + width]) for i in range(len(full) - width + 1)]
        if row and len(grams) == before and attrs["preserve_short_sequences"]:
            pad = max(attrs["pad_width"], 0)
            grams.append(mark.join([left] * pad + row + [right] * pad))
        ends.append(len(grams))
    out = np.empty(len(grams), object)
    out[:] = grams
    return out, np.array(ends, splits.dtype)
