"""Samples of distances between sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _letters(dtype: np.dtype[Any], word: str) -> Any:
    if dtype.kind in "OSU":
        return np.array([c.encode() for c in word], object)
    return np.array([ord(c) % 2 if dtype.kind == "b" else ord(c) % 32 for c in word]).astype(dtype)


def _sequences(dtype: np.dtype[Any], words: list[str]) -> list[Any]:
    cells = [[0, row, i] for row, word in enumerate(words) for i in range(len(word))]
    size = [1, len(words), max(map(len, words))]
    values = _letters(dtype, "".join(words))
    return [np.array(cells, np.int64).reshape(-1, 3), values, np.array(size, np.int64)]


@samples("EditDistance")
def words(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
    """Words that differ, are equal, are missing on either side."""
    for normalize in (True, False):
        for first, second, tag in (
            (["kitten", "flaw", ""], ["sitting", "lawn", "ab"], "plain"),
            (["abc", "x"], ["abc", ""], "equal"), (["intention"], ["execution", "more"], "rows"),
        ):  # fmt: skip
            yield Sample(
                [*_sequences(dtype, first), *_sequences(dtype, second)],
                {"normalize": normalize}, f"{tag}-{normalize}", grad=False,
            )  # fmt: skip


@error_samples("EditDistance")
def bad_words() -> Iterator[ErrorSample]:
    """Ranks that differ, a vector."""
    matrix = _sequences(np.dtype(np.int64), ["ab"])
    flat = [matrix[0][:, 1:], matrix[1], matrix[2][1:]]
    yield ErrorSample(
        [*matrix, *flat], match="Expected truth and hypothesis to have matching ranks"
    )
    line = [matrix[0][:, 2:], matrix[1], matrix[2][2:]]
    yield ErrorSample([*line, *line], match="must have rank at least 2")
