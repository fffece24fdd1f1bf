"""Kernels of n-grams."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.text.arrays import Array, array_of, as_bytes, flat
from opdock_cpu.text.ngram_loops import ngrams
from opdock_cpu.text.packed import packed

__all__ = ["table"]

table = KernelTable()


@table.binder("StringNGrams")
def string_ngrams(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Windows over rows, all of one width before those of the next."""
    attrs, dtype = sig.attrs, sig.out_dtypes[1].np
    mark = as_bytes(attrs["separator"])

    marks = mark, as_bytes(attrs["left_pad"]), as_bytes(attrs["right_pad"])
    widths, preserve = list(attrs["ngram_widths"]), bool(attrs["preserve_short_sequences"])

    def run(data: Array, splits: Array) -> tuple[Array, Array]:
        count, bounds = data.size, splits.tolist()
        for bound in bounds:
            if not 0 <= bound <= count:
                raise checks.invalid(f"Invalid split value {bound}, must be in [0,{count}]")
        if not count or not bounds:
            # As in TF: as many strings as there were words, all of them empty.
            return array_of([b""] * count, (count,)), np.array(splits)
        whole = packed(data)
        if whole is not None:
            made = ngrams(whole, splits, widths, int(attrs["pad_width"]), preserve, marks)
            if made is not None:
                return made[0], made[1].astype(dtype)
        words = flat(data)
        rows = [list(_windows(words[a:b], attrs)) for a, b in itertools.pairwise(bounds)]
        ends = np.cumsum([0, *map(len, rows)]).astype(dtype)
        return array_of((mark.join(w) for row in rows for w in row), (int(ends[-1]),)), ends

    return run


def _windows(words: list[bytes], attrs: Any) -> Iterator[list[bytes]]:
    left, right = as_bytes(attrs["left_pad"]), as_bytes(attrs["right_pad"])
    pad = attrs["pad_width"]
    found = False
    for width in attrs["ngram_widths"]:
        # More would make windows of nothing but padding.
        side = width - 1 if pad < 0 else min(pad, width - 1)
        row = [left] * side + words + [right] * side
        for i in range(max(0, len(row) - width + 1)):
            found = True
            yield row[i : i + width]
    if words and not found and attrs["preserve_short_sequences"]:
        side = max(pad, 0)
        yield [left] * side + words + [right] * side
