"""Softmax, its logarithm and the cross entropies on oneDNN, in blocks of rows that stay in cache.

Where a row holds a NaN or an infinity oneDNN spoils single elements, TF the row. Such rows show as
a NaN in the result and are computed again with NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.kernels import xent as numpy_kernels
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, declined, size
from opdock_cpu.onednn.softmax import softmax as primitive

__all__ = ["table"]

table = KernelTable()

_BLOCK: Final = 1 << 20
"""Elements of a block: its input and output fit a second-level cache of a few megabytes."""
_WORTH: Final = 512
_TINY: Final = np.float32(1e-30)


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

    def blocks(self, x: Array, out: Array) -> Iterator[slice]:
        """Fills `out` and yields the rows that are done."""
        rows, columns = x.shape
        step = max(1, min(rows, _BLOCK // columns))
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            source, target = x[part], out[part]
            self._make(len(source), columns).run(source, target)
            if np.isnan(target.min()):
                wrong = np.isnan(target).any(axis=1)
                target[wrong] = self._again(source[wrong])
            yield part

    def fill(self, x: Array, out: Array) -> Array:
        """All of it."""
        width = x.shape[-1]
        for _ in self.blocks(x.reshape(-1, width), out.reshape(-1, width)):
            pass
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


@table.binder("SparseSoftmaxCrossEntropyWithLogits", T=F32, priority=PRIORITY, when=_when)
def sparse_xent(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Loss and gradient against class ids."""
    rows = _Rows(False)
    numpy_kernel = numpy_kernels.sparse_xent(sig)

    def run(features: Array, labels: Array) -> tuple[Array, Array]:
        if features.size == 0:
            return numpy_kernel(features, labels)
        numpy_kernels.check_labels(labels, features.shape[1])
        gradient = np.empty(features.shape, np.float32)
        loss = np.empty(len(labels), np.float32)
        for part in rows.blocks(features, gradient):
            block, chosen = gradient[part], labels[part]
            at = np.arange(len(chosen))
            likely = block[at, chosen]
            loss[part] = -np.log(likely)
            # So unlikely that the logarithm of what is left of the probability would be wrong.
            for i in np.flatnonzero(likely < _TINY):
                row = features[part][i]
                top = row.max()
                loss[part][i] = np.log(np.exp(row - top).sum()) - (row[chosen[i]] - top)
            block[at, chosen] -= 1
        return loss, gradient

    return run
