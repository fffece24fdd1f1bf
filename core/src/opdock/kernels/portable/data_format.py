"""Axes and vectors of one data format in terms of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.array_api import device_ints, dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def _formats(sig: NodeSig) -> tuple[str, str]:
    """The letters of both formats.

    Raises:
        InvalidArgumentError: a format is too long or too short, or their letters are not the same.
    """
    source, target = str(sig.attrs["src_format"]), str(sig.attrs["dst_format"])
    for name, text, attr in (
        ("Source", source, "src_format"),
        ("Destination", target, "dst_format"),
    ):
        if len(text) not in (4, 5):
            raise invalid(f"{name} format must be of length 4 or 5, received {attr} = {text}")
    if sorted(source) != sorted(target) or len(set(source)) < len(source):
        raise invalid(
            f"Destination and source format must determine a permutation, got {source} and {target}"
        )
    return source, target


@portable("DataFormatDimMap")
def dim_map(xp: Any, sig: NodeSig) -> Any:
    """Where axes of one format are in the other; negative ones count from the end."""
    source, target = _formats(sig)
    places = np.array([target.index(letter) for letter in source], np.int64)

    def run(x: Any) -> Any:
        table = device_ints(xp, places, x)
        flat = xp.reshape(x, (-1,)) % len(source)
        return xp.astype(xp.reshape(xp.take(table, flat, axis=0), x.shape), x.dtype)

    return run


@portable("DataFormatVecPermute")
def vec_permute(xp: Any, sig: NodeSig) -> Any:
    """A vector with an entry for each axis, or such a column of pairs, in the other order."""
    source, target = _formats(sig)
    order = np.array([source.index(letter) for letter in target], np.int64)

    def run(x: Any) -> Any:
        shape, n = tuple(x.shape), len(source)
        if len(shape) not in (1, 2):
            raise invalid(f"input must be a vector or 2D tensor, but got shape {dims(shape)}")
        if shape[0] != n:
            what = "1D input" if len(shape) == 1 else "First dimension of 2D input"
            raise invalid(f"{what} must be of size {n}, but got shape {dims(shape)}")
        if shape[1:] not in ((), (2,)):
            raise invalid(
                f"Second dimension of 2D input must be of size 2, but got shape {dims(shape)}"
            )
        return xp.take(x, device_ints(xp, order, x), axis=0)

    return run
