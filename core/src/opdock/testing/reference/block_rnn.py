"""Oracle of recurrent cells: the equations of their papers, and their derivatives, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]

_ICFO, _IFCO = ("i", "c", "f", "o"), ("i", "f", "c", "o")


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _lstm_step(
    attrs: Attrs, order: tuple[str, ...], x: Array, cs_prev: Array, h_prev: Array, w: Array,
    wci: Array, wcf: Array, wco: Array, b: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """Hochreiter and Schmidhuber 1997, with a forget gate and Gers' peepholes."""
    peek = float(attrs["use_peephole"])
    gates = np.split(np.hstack([x, h_prev]) @ w + b, 4, axis=1)
    gate = dict(zip(order, gates, strict=True))
    i = _logistic(gate["i"] + peek * cs_prev * wci)
    f = _logistic(gate["f"] + attrs.get("forget_bias", 0.0) + peek * cs_prev * wcf)
    ci = np.tanh(gate["c"])
    cs = i * ci + f * cs_prev
    if attrs["cell_clip"] > 0:
        cs = np.clip(cs, -attrs["cell_clip"], attrs["cell_clip"])
    o = _logistic(gate["o"] + peek * cs * wco)
    co = np.tanh(cs)
    return i, cs, f, o, ci, co, o * co


def _lstm_back(
    attrs: Attrs, order: tuple[str, ...], cs_prev: Array, peepholes: Any, gates: Any,
    cs_grad: Array, h_grad: Array,
) -> tuple[Array, ...]:  # fmt: skip
    wci, wcf, wco = peepholes
    i, cs, f, o, ci, co = gates
    peek = float(attrs["use_peephole"])
    d_o = h_grad * co * o * (1 - o)
    d_cs = cs_grad + h_grad * o * (1 - co**2) + peek * d_o * wco
    d_i, d_f, d_ci = d_cs * ci * i * (1 - i), d_cs * cs_prev * f * (1 - f), d_cs * i * (1 - ci**2)
    before = d_cs * f + peek * (d_i * wci + d_f * wcf)
    named = {"i": d_i, "c": d_ci, "f": d_f, "o": d_o}
    joined = np.hstack([named[name] for name in order])
    sums = (d_i * cs_prev, d_f * cs_prev, d_o * cs)
    return before, joined, *(peek * np.sum(s, axis=0) for s in sums)


@reference("LSTMBlockCell")
def lstm_cell(attrs: Attrs, *inputs: Array) -> tuple[Array, ...]:
    """One step."""
    return _lstm_step(attrs, _ICFO, *inputs)


@reference("LSTMBlockCellGrad")
def lstm_cell_grad(attrs: Attrs, x: Array, cs_prev: Array, *rest: Array) -> tuple[Array, ...]:
    """One step back."""
    return _lstm_back(attrs, _ICFO, cs_prev, rest[2:5], rest[6:12], rest[12], rest[13])


def _sequence(order: tuple[str, ...]) -> Any:
    def run(attrs: Attrs, steps: Array, x: Array, cs: Array, h: Array, *weights: Array) -> Any:
        out = [np.zeros((len(x), *cs.shape)) for _ in range(7)]
        for t in range(int(steps)):
            found = _lstm_step(attrs, order, x[t], cs, h, *weights)
            cs, h = found[1], found[6]
            for whole, part in zip(out, found, strict=True):
                whole[t] = part
        return tuple(out)

    return run


def _sequence_grad(order: tuple[str, ...]) -> Any:
    def run(
        attrs: Attrs, steps: Array, x: Array, cs_prev: Array, h_prev: Array, w: Array, *rest: Array
    ) -> Any:
        wci, wcf, wco, b, *gates = rest[:10]
        h, cs_grad, h_grad = rest[10:]
        cs = np.concatenate([cs_prev[None], gates[1]])
        hs = np.concatenate([h_prev[None], h])
        d_x, d_w, d_b = np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
        peepholes = [np.zeros_like(p) for p in (wci, wcf, wco)]
        d_cs, d_h = np.zeros_like(cs_prev), np.zeros_like(h_prev)
        for t in range(int(steps) - 1, -1, -1):
            d_cs, joined, *more = _lstm_back(
                attrs, order, cs[t], (wci, wcf, wco), [g[t] for g in gates], cs_grad[t] + d_cs,
                h_grad[t] + d_h,
            )  # fmt: skip
            d_x[t], d_h = np.split(joined @ w.T, [x.shape[2]], axis=1)
            d_w += np.hstack([x[t], hs[t]]).T @ joined
            d_b += joined.sum(axis=0)
            for total, part in zip(peepholes, more, strict=True):
                total += part
        return d_x, d_cs, d_h, d_w, *peepholes, d_b

    return run


reference("BlockLSTM")(_sequence(_ICFO))
reference("BlockLSTMV2")(_sequence(_IFCO))
reference("BlockLSTMGrad")(_sequence_grad(_ICFO))
reference("BlockLSTMGradV2")(_sequence_grad(_IFCO))


@reference("GRUBlockCell")
def gru_cell(
    attrs: Attrs, x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array
) -> tuple[Array, ...]:
    """Cho et al. 2014."""
    r, u = np.split(_logistic(np.hstack([x, h_prev]) @ w_ru + b_ru), 2, axis=1)
    c = np.tanh(np.hstack([x, r * h_prev]) @ w_c + b_c)
    return r, u, c, u * h_prev + (1 - u) * c


@reference("GRUBlockCellGrad")
def gru_cell_grad(
    attrs: Attrs, x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array,
    r: Array, u: Array, c: Array, d_h: Array,
) -> tuple[Array, ...]:  # fmt: skip
    """One step back."""
    d_c = d_h * (1 - u) * (1 - c**2)
    x_from_c, hr = np.split(d_c @ w_c.T, [x.shape[1]], axis=1)
    d_ru = np.hstack([hr * h_prev * r * (1 - r), d_h * (h_prev - c) * u * (1 - u)])
    x_from_ru, h_from_ru = np.split(d_ru @ w_ru.T, [x.shape[1]], axis=1)
    return x_from_c + x_from_ru, h_from_ru + hr * r + d_h * u, d_c, d_ru
