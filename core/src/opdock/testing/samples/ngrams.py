"""Samples of n-grams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_WORDS = np.array([b"a", b"b", b"c", b"d", b"e"], object)
_SPLITS = np.array([0, 3, 3, 5], np.int64)


def _attrs(**given: Any) -> dict[str, Any]:
    return {
        "separator": "|", "ngram_widths": [2], "left_pad": "L", "right_pad": "R", "pad_width": 0,
        "preserve_short_sequences": False, **given,
    }  # fmt: skip


@samples("StringNGrams")
def windows(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Widths, padding of a fixed width and of as much as there can be, short rows."""
    for widths in ([1], [2], [2, 3], [4]):
        for pad in (-1, 0, 1):
            attrs = _attrs(ngram_widths=widths, pad_width=pad)
            yield Sample([_WORDS, _SPLITS], attrs, f"{widths}-{pad}")
    short = _attrs(ngram_widths=[4], preserve_short_sequences=True)
    yield Sample([_WORDS, _SPLITS], short, "short")
    yield Sample([_WORDS, _SPLITS.astype(np.int32)], _attrs(), "int32")
    yield Sample([_WORDS, _SPLITS[:0]], _attrs(), "no-splits")


@error_samples("StringNGrams")
def no_rows() -> Iterable[ErrorSample]:
    """Rows beyond the words."""
    yield ErrorSample(
        [_WORDS, _SPLITS + 1], _attrs(), match=r"Invalid split value 6, must be in \[0,5\]",
        tag="splits",
    )  # fmt: skip
