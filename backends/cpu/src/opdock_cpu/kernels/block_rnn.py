"""An LSTM over a sequence, forward and back, as one loop each, for small cells."""

from __future__ import annotations

from collections.abc import Callable
from math import tanh
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.namespace import namespace
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_SMALL: Final = 96
"""Cells up to which products of single rows cost less than NumPy's calls for a step."""


def _sigmoid(x: float) -> float:
    """By way of tanh, which has no large intermediate results."""
    return tanh(x * 0.5) * 0.5 + 0.5


def _forward(
    begin: int, end: int, gates: Array, i: Array, cs: Array, f: Array, o: Array, ci: Array,
    co: Array, h: Array, weights: Array, state: Array, hidden: Array, limits: Array,
    steps: int, batch: int, cells: int, of_i: int, of_c: int, of_f: int, of_o: int, clipped: int,
) -> None:  # fmt: skip
    """A turn is a row of the batch; the gates hold what they get from the inputs."""
    for b in range(begin, end):
        first = b * cells
        for t in range(steps):
            at, to = (t * batch + b) * cells, (t * batch + b) * 4 * cells
            for k in range(cells):
                value = hidden[first + k]
                for j in range(4 * cells):
                    gates[to + j] = gates[to + j] + value * weights[k * 4 * cells + j]
            for j in range(cells):
                p, q = at + j, first + j
                i[p] = _sigmoid(gates[to + of_i + j])
                f[p] = _sigmoid(gates[to + of_f + j] + limits[0])
                ci[p] = tanh(gates[to + of_c + j])
                cell = i[p] * ci[p] + f[p] * state[q]
                if clipped == 1:
                    cell = min(max(cell, 0.0 - limits[1]), limits[1])
                state[q], cs[p] = cell, cell
                o[p] = _sigmoid(gates[to + of_o + j])
                co[p] = tanh(cell)
                hidden[q] = o[p] * co[p]
                h[p] = hidden[q]


def _back(
    begin: int, end: int, gates: Array, d_cs: Array, d_h: Array, weights: Array, cs_prev: Array,
    i: Array, cs: Array, f: Array, o: Array, ci: Array, co: Array, cs_grad: Array, h_grad: Array,
    steps: int, batch: int, cells: int, of_i: int, of_c: int, of_f: int, of_o: int,
) -> None:  # fmt: skip
    """A turn is a row of the batch, from its last step to the first."""
    for b in range(begin, end):
        first = b * cells
        for j in range(cells):
            d_cs[first + j] = 0
            d_h[first + j] = 0
        for t in range(steps - 1, -1, -1):
            at, to = (t * batch + b) * cells, (t * batch + b) * 4 * cells
            for j in range(cells):
                p, q = at + j, first + j
                d_out = h_grad[p] + d_h[q]
                state = (1 - co[p] * co[p]) * d_out * o[p] + cs_grad[p] + d_cs[q]
                before = cs_prev[q] if t == 0 else cs[p - batch * cells]
                gates[to + of_o + j] = o[p] * (1 - o[p]) * d_out * co[p]
                gates[to + of_c + j] = (1 - ci[p] * ci[p]) * state * i[p]
                gates[to + of_f + j] = f[p] * (1 - f[p]) * state * before
                gates[to + of_i + j] = i[p] * (1 - i[p]) * state * ci[p]
                d_cs[q] = state * f[p]
            for j in range(cells):
                d_h[first + j] = 0
            for k in range(4 * cells):
                value = gates[to + k]
                for j in range(cells):
                    d_h[first + j] = d_h[first + j] + value * weights[k * cells + j]


_FORWARD: Final = Looped(_forward, fixed=("cells",))
_BACK: Final = Looped(_back, fixed=("cells",))


def _with_zeros(rows: Array, length: int) -> Array:
    """The steps of a sequence, with zeros behind its end, in memory that nobody has touched."""
    if len(rows) == length:
        return rows
    out = np.zeros((length, *rows.shape[1:]), rows.dtype)
    out[: len(rows)] = rows
    return out


def _columns(order: str, cells: int) -> list[int]:
    """Where the columns of i, ci, f and o begin."""
    return [order.index(gate) * cells for gate in "icfo"]


@table.binder("BlockLSTM", "BlockLSTMV2", T={dtypes.float32}, host_inputs=("seq_len_max",))
def block_lstm(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """All steps of a sequence."""
    plain, peephole = portable_kernel(sig), bool(sig.attrs["use_peephole"])
    order = "icfo" if sig.op == "BlockLSTM" else "ifco"
    bias, clip = sig.attrs.get("forget_bias", 0.0), sig.attrs.get("cell_clip", 0.0)
    limits = np.array([bias, clip], np.float32)

    def run(seq_len_max: Any, x: Array, cs_prev: Array, h_prev: Array, *rest: Array) -> Any:
        given = seq_len_max, x, cs_prev, h_prev, *rest
        w, b, count, width = rest[0], rest[-1], int(seq_len_max), x.shape[-1]
        batch, cells = cs_prev.shape
        fits = w.shape == (width + cells, 4 * cells) and b.shape == (4 * cells,)
        fits = fits and x.shape[1] == batch and 0 < count <= len(x)
        if peephole or not fits or not 0 < cells <= _SMALL or not batch:
            if not 0 < count < len(x):
                return plain(*given)  # which says what does not fit
            found = plain(seq_len_max, x[:count], cs_prev, h_prev, *rest)
            return tuple(_with_zeros(steps, len(x)) for steps in found)
        gates = namespace.matmul(x[:count].reshape(-1, width), w[:width])
        gates += b
        # One buffer for what comes out would be kept whole by whoever keeps a part of it.
        outs = [np.zeros((len(x), batch, cells), x.dtype) for _ in range(7)]
        arrays = gates, *outs, w[width:], cs_prev.copy(), h_prev.copy(), limits
        numbers = count, batch, cells, *_columns(order, cells), int(clip > 0)
        if not _FORWARD(batch, gates.size * (cells + 8), *arrays, *numbers):
            return plain(*given)
        return tuple(outs)

    return run


@table.binder("BlockLSTMGrad", "BlockLSTMGradV2", T={dtypes.float32}, host_inputs=("seq_len_max",))
def block_lstm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The gradients of all its inputs, from the last step to the first."""
    plain, peephole = portable_kernel(sig), bool(sig.attrs["use_peephole"])
    order = "icfo" if sig.op == "BlockLSTMGrad" else "ifco"

    def run(seq_len_max: Any, x: Array, cs_prev: Array, h_prev: Array, *rest: Array) -> Any:
        w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad = rest
        count, width = int(seq_len_max), x.shape[2]
        batch, cells = cs_prev.shape
        given = seq_len_max, x, cs_prev, h_prev, *rest
        if peephole or not 0 < count <= len(x) or not 0 < cells <= _SMALL or not batch:
            if not 0 < count < len(x):
                return plain(*given)
            d_x, *others = plain(seq_len_max, x[:count], cs_prev, h_prev, *rest)
            return _with_zeros(d_x, len(x)), *others
        gates = np.empty((count, batch, 4 * cells), x.dtype)
        d_cs, d_h = np.empty_like(cs_prev), np.empty_like(h_prev)
        weights = np.ascontiguousarray(w[width:].T)
        arrays = gates, d_cs, d_h, weights, cs_prev, i, cs, f, o, ci, co, cs_grad, h_grad
        places = _columns(order, cells)
        steps = gates.size * (cells + 8)
        if not _BACK(batch, steps, *arrays, count, batch, cells, *places):
            return plain(*given)
        # What only the gates of a step decide is one product for all steps.
        every = gates.reshape(-1, 4 * cells)
        d_x = np.zeros(x.shape, x.dtype)
        d_x[:count] = namespace.matmul(every, w[:width].T).reshape(count, *x.shape[1:])
        d_w = np.empty(w.shape, w.dtype)
        d_w[:width] = namespace.matmul(x[:count].reshape(-1, width).T, every)
        d_w[width:] = namespace.matmul(h_prev.T, gates[0])
        if count > 1:
            earlier = h[: count - 1].reshape(-1, cells)
            d_w[width:] += namespace.matmul(earlier.T, every[batch:])
        peepholes = (np.zeros_like(p) for p in (wci, wcf, wco))
        return d_x, d_cs, d_h, d_w, *peepholes, every.sum(axis=0, dtype=b.dtype)

    return run
