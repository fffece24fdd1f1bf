"""Softmax and its logarithm on oneDNN, in blocks of rows that stay in cache.

Where a row holds a NaN or an infinity oneDNN spoils single elements, TF the row. Such rows show as
a NaN in the result and are computed again with NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, declined, size
from opdock_cpu.onednn.softmax import softmax as primitive

__all__ = ["table"]

table = KernelTable()

_BLOCK: Final = 1 << 20
"""Elements of a block: its input and output fit a second-level cache of a few megabytes."""
_WORTH: Final = 512


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig, 0)
    if why:
        return why
    if size(sig.in_shapes[0]) < _WORTH:
        return f"fewer than {_WORTH} elements: NumPy is as fast"
    return True


class _Rows:
    """Probabilities of rows, block by block."""

    def __init__(self, log: bool) -> None:
        self._make = functools.lru_cache(32)(lambda rows, columns: primitive(rows, columns, log))
        self._again = _log_rows if log else _rows

    def _rows(self, x: Array, out: Array) -> None:
        rows, columns = x.shape
        step = max(1, min(rows, _BLOCK // columns))
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            source, target = x[part], out[part]
            self._make(len(source), columns).run(source, target)
            if np.isnan(target.min()):
                wrong = np.isnan(target).any(axis=1)
                target[wrong] = self._again(source[wrong])

    def fill(self, x: Array, out: Array) -> Array:
        """Fills `out`."""
        width = x.shape[-1]
        self._rows(x.reshape(-1, width), out.reshape(-1, width))
        return out


def _rows(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _log_rows(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


@table.binder("Softmax", "LogSoftmax", T=F32, out=True, priority=PRIORITY, when=_when)
def softmax(sig: NodeSig) -> Callable[..., Array]:
    """Probabilities along the last dimension, or their logarithms."""
    rows = _Rows(sig.op == "LogSoftmax")

    def run(logits: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(logits.shape, np.float32)
        return rows.fill(logits, out) if logits.size else out

    return run
