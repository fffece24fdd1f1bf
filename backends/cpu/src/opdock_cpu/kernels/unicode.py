"""Kernels of Unicode text."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.text import unicode
from opdock_cpu.text.arrays import Array, array_of, each, flat

__all__ = ["table"]

table = KernelTable()


@table.binder("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(sig: NodeSig) -> Callable[[Array], tuple[Array, ...]]:
    """Code points of all strings in a row, and where each string begins."""
    policy = unicode.Policy.of(sig.attrs)
    decode = unicode.decoder(sig.attrs["input_encoding"])
    splits = sig.out_dtypes[0].np
    offsets = len(sig.out_dtypes) == 3

    def run(strings: Array) -> tuple[Array, ...]:
        rows = []
        for text in flat(strings):
            points, sizes, bad = decode(text)
            if policy.errors == "strict" and bad.any():
                raise unicode.malformed()
            rows.append(unicode.cleaned(points, sizes, bad, policy))
        counts = [len(points) for points, _ in rows]
        ends = np.cumsum([0, *counts]).astype(splits)
        values = np.concatenate([np.empty(0, np.int32), *(p for p, _ in rows)]).astype(np.int32)
        if not offsets:
            return ends, values
        return ends, values, np.concatenate([np.empty(0, np.int64), *(s for _, s in rows)])

    return run


@table.binder("UnicodeTranscode")
def unicode_transcode(sig: NodeSig) -> Callable[[Array], Array]:
    """Strings of one encoding in another."""
    policy = unicode.Policy.of(sig.attrs)
    encoding, output = sig.attrs["input_encoding"], sig.attrs["output_encoding"]
    decode, read = unicode.decoder(encoding), unicode.reader(encoding)
    target = output.lower()

    def transcode(text: bytes) -> bytes:
        good = read(text)
        if good is not None and not (policy.controls and min(good, default=" ") <= "\x1f"):
            return good.encode(target, "surrogatepass")
        points, sizes, bad = decode(text)
        if policy.errors == "strict" and (
            bad.any() or (policy.controls and (points <= 0x1F).any())
        ):
            raise unicode.malformed()
        return unicode.encoded(unicode.cleaned(points, sizes, bad, policy)[0], output)

    return lambda strings: each(transcode, strings)


@table.binder("UnicodeEncode")
def unicode_encode(sig: NodeSig) -> Callable[..., Array]:
    """A string of each row of code points."""
    policy = unicode.Policy.of(sig.attrs)
    output = sig.attrs["output_encoding"]

    def run(values: Array, splits: Array) -> Array:
        points, bounds = np.asarray(values), np.asarray(splits)
        _check_splits(bounds, len(points))
        bad = (points < 0) | (points > unicode.LAST)
        if policy.errors == "strict" and bad.any():
            raise checks.invalid("Code point value out of valid Unicode range.")
        if policy.errors == "replace":
            points = np.where(bad, np.int32(policy.replacement), points)
            bad = np.zeros(len(points), np.bool_)
        ends = bounds.tolist()
        texts = (
            unicode.encoded(points[a:b][~bad[a:b]], output) for a, b in itertools.pairwise(ends)
        )
        return array_of(texts, (len(ends) - 1,))

    return run


def _check_splits(bounds: Array, count: int) -> None:
    if not len(bounds):
        raise checks.invalid("Invalid empty input_splits")
    if bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] > count:
        raise checks.invalid(
            f"Invalid input_splits: they must begin with 0, not decrease, and end at {count} at "
            f"most, got {checks.dims(bounds)}"
        )
