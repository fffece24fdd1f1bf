"""Tiles into planned buffers; reversals and rolls are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


@table.binder("Tile", out=True, host_inputs=("multiples",))
def tile(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated as a whole."""
    dtype = sig.out_dtypes[0].np

    def run(tensor: Any, multiples: Any, out: Array | None) -> Array:
        counts, shape = multiples.tolist(), np.shape(tensor)
        if len(counts) != len(shape):
            raise errors.InvalidArgumentError(
                None, None,
                f"Expected multiples argument to be a vector of length {len(shape)} but got "
                f"length {len(counts)}",
            )  # fmt: skip
        for i, count in enumerate(counts):
            if count < 0:
                raise errors.InvalidArgumentError(
                    None, None, f"Expected multiples[{i}] >= 0, but got {count}"
                )
        if out is None:
            out = np.empty([c * d for c, d in zip(counts, shape, strict=True)], dtype)
        # Repeating is broadcasting over a new dimension before each old one.
        wide = out.reshape([n for c, d in zip(counts, shape, strict=True) for n in (c, d)])
        wide[...] = np.reshape(tensor, [n for d in shape for n in (1, d)])
        return out

    return run
