"""Portable kernels of recurrent cells and of sequences of them, forward and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def _sigmoid(xp: Any, x: Any) -> Any:
    # By way of tanh, which has no large intermediate results.
    return xp.tanh(x * 0.5) * 0.5 + 0.5


def _sum(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=0, dtype=x.dtype)


# ---------------------------------------------------------------- LSTM cells
class _Lstm(NamedTuple):
    """What all steps of an LSTM share.

    Attributes:
        order: where in the gates' columns i, ci, f and o are.
        forget_bias: what is added to the forget gate.
        clip: the largest cell state; no limit if it is not positive.
        peephole: whether gates look at the cell state.
    """

    order: str
    forget_bias: float
    clip: float
    peephole: bool

    def split(self, gates: Any) -> list[Any]:
        """Columns of the gates, as i, ci, f, o."""
        cells = gates.shape[1] // 4
        at = [self.order.index(name) * cells for name in "icfo"]
        return [gates[:, start : start + cells] for start in at]

    def join(self, xp: Any, parts: dict[str, Any]) -> Any:
        """Gates as columns."""
        return xp.concat([parts[name] for name in self.order], axis=1)

    def step(self, xp: Any, x: Any, cs_prev: Any, h_prev: Any, weights: Any) -> tuple[Any, ...]:
        """i, cs, f, o, ci, co, h."""
        w, wci, wcf, wco, b = weights
        gates = xp.matmul(xp.concat([x, h_prev], axis=1), w) + b
        i, ci, f, o = self.split(gates)
        f = f + self.forget_bias
        if self.peephole:
            i, f = i + cs_prev * wci, f + cs_prev * wcf
        i, f, ci = _sigmoid(xp, i), _sigmoid(xp, f), xp.tanh(ci)
        cs = i * ci + f * cs_prev
        if self.clip > 0:
            cs = xp.minimum(
                xp.maximum(cs, xp.full_like(cs, -self.clip)), xp.full_like(cs, self.clip)
            )
        o = _sigmoid(xp, o + cs * wco if self.peephole else o)
        co = xp.tanh(cs)
        return i, cs, f, o, ci, co, o * co

    def back(
        self, xp: Any, cs_prev: Any, peepholes: Any, results: Any, cs_grad: Any, h_grad: Any
    ) -> tuple[Any, ...]:
        """The gradients of the cell state before, of the gates, and of the peepholes."""
        wci, wcf, wco = peepholes
        i, cs, f, o, ci, co = results
        d_o = o * (1 - o) * h_grad * co
        d_cs = (1 - co * co) * h_grad * o + cs_grad
        if self.peephole:
            d_cs = d_cs + d_o * wco
        d_ci = (1 - ci * ci) * d_cs * i
        d_f = f * (1 - f) * d_cs * cs_prev
        d_i = i * (1 - i) * d_cs * ci
        before = d_cs * f
        gates = self.join(xp, {"i": d_i, "c": d_ci, "f": d_f, "o": d_o})
        if not self.peephole:
            return before, gates, *(xp.zeros_like(p) for p in peepholes)
        before = before + d_i * wci + d_f * wcf
        return (
            before, gates, _sum(xp, d_i * cs_prev), _sum(xp, d_f * cs_prev), _sum(xp, d_o * cs)
        )  # fmt: skip


def _lstm(sig: NodeSig, order: str) -> _Lstm:
    attrs = sig.attrs
    return _Lstm(
        order, attrs.get("forget_bias", 0.0), attrs.get("cell_clip", 0.0), attrs["use_peephole"]
    )


def _check_lstm(x: Any, cs_prev: Any, w: Any, b: Any) -> None:
    cells = cs_prev.shape[1]
    if tuple(w.shape) != (x.shape[-1] + cells, 4 * cells):
        raise invalid(
            f"w has shape {dims(w.shape)} but inputs of size {x.shape[-1]} and {cells} cells need "
            f"{dims((x.shape[-1] + cells, 4 * cells))}"
        )
    if tuple(b.shape) != (4 * cells,):
        raise invalid(f"b has shape {dims(b.shape)} but {cells} cells need {dims((4 * cells,))}")
    if x.shape[-2] != cs_prev.shape[0]:
        raise invalid(f"x.dims(0) != cs_prev.dims(0): {x.shape[-2]} vs. {cs_prev.shape[0]}")


@portable("LSTMBlockCell")
def lstm_cell(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """One step of an LSTM."""
    lstm = _lstm(sig, "icfo")

    def run(x: Any, cs_prev: Any, h_prev: Any, *weights: Any) -> tuple[Any, ...]:
        _check_lstm(x, cs_prev, weights[0], weights[-1])
        return lstm.step(xp, x, cs_prev, h_prev, weights)

    return run


@portable("LSTMBlockCellGrad")
def lstm_cell_grad(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """The gradients of its gates, of the cell state before, and of the peepholes."""
    lstm = _lstm(sig, "icfo")

    def run(x: Any, cs_prev: Any, h_prev: Any, *rest: Any) -> tuple[Any, ...]:
        _w, wci, wcf, wco, _b, i, cs, f, o, ci, co, cs_grad, h_grad = rest
        return lstm.back(xp, cs_prev, (wci, wcf, wco), (i, cs, f, o, ci, co), cs_grad, h_grad)

    return run


# ---------------------------------------------------------------- sequences
_ORDERS = {"BlockLSTM": "icfo", "BlockLSTMGrad": "icfo"}


def _steps(seq_len_max: Any, x: Any) -> int:
    (count,) = ints(seq_len_max)
    if not 0 <= count <= x.shape[0]:
        raise invalid(f"seq_len_max {count} is not within the sequence's {x.shape[0]} steps")
    return count


@portable("BlockLSTM", "BlockLSTMV2", host_inputs=("seq_len_max",))
def block_lstm(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """An LSTM over a sequence; zeros behind its end."""
    lstm = _lstm(sig, _ORDERS.get(sig.op, "ifco"))

    def run(seq_len_max: Any, x: Any, cs: Any, h: Any, *weights: Any) -> tuple[Any, ...]:
        count = _steps(seq_len_max, x)
        _check_lstm(x, cs, weights[0], weights[-1])
        rows = []
        for t in range(count):
            found = lstm.step(xp, x[t, ...], cs, h, weights)
            cs, h = found[1], found[6]
            rows.append(found)
        blank = xp.zeros_like(cs)
        rows += [(blank,) * 7] * (x.shape[0] - count)
        if not rows:
            return (xp.zeros((0, *cs.shape), dtype=cs.dtype),) * 7
        return tuple(xp.stack([row[k] for row in rows], axis=0) for k in range(7))

    return run


@portable("BlockLSTMGrad", "BlockLSTMGradV2", host_inputs=("seq_len_max",))
def block_lstm_grad(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """The gradients of all its inputs, from the last step to the first."""
    lstm = _lstm(sig, _ORDERS.get(sig.op, "ifco"))

    def run(seq_len_max: Any, x: Any, cs_prev: Any, h_prev: Any, *rest: Any) -> tuple[Any, ...]:
        w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad = rest
        width, count = x.shape[2], _steps(seq_len_max, x)
        d_cs, d_h = xp.zeros_like(cs_prev), xp.zeros_like(h_prev)
        peepholes = [xp.zeros_like(p) for p in (wci, wcf, wco)]
        if not count:
            return xp.zeros_like(x), d_cs, d_h, xp.zeros_like(w), *peepholes, xp.zeros_like(b)
        back, parts = xp.matrix_transpose(w), []
        for t in reversed(range(count)):
            before = cs[t - 1, ...] if t else cs_prev
            d_cs, gates, *more = lstm.back(
                xp, before, (wci, wcf, wco), [v[t, ...] for v in (i, cs, f, o, ci, co)],
                cs_grad[t, ...] + d_cs, h_grad[t, ...] + d_h,
            )  # fmt: skip
            d_h = xp.matmul(gates, back[:, width:])
            parts.append(gates)
            if lstm.peephole:
                peepholes = [a + b for a, b in zip(peepholes, more, strict=True)]
        # What only the gates of a step decide is one product for all steps.
        every = xp.concat(parts[::-1], axis=0)
        d_x = xp.reshape(xp.matmul(every, back[:, :width]), (count, *x.shape[1:]))
        rows = xp.reshape(x[:count, ...], (-1, width))
        states = xp.concat([h_prev, *(h[t, ...] for t in range(count - 1))], axis=0)
        d_w = xp.matmul(xp.matrix_transpose(xp.concat([rows, states], axis=1)), every)
        if count < x.shape[0]:
            d_x = xp.concat([d_x, xp.zeros_like(x[count:, ...])], axis=0)
        return d_x, d_cs, d_h, d_w, *peepholes, _sum(xp, every)

    return run


# ---------------------------------------------------------------- GRU
@portable("GRUBlockCell")
def gru_cell(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """One step of a GRU: r, u, c, h."""

    def run(x: Any, h_prev: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> tuple[Any, ...]:
        cells, width = h_prev.shape[1], x.shape[1]
        for name, given, columns in (("w_ru", w_ru, 2 * cells), ("w_c", w_c, cells)):
            if tuple(given.shape) != (width + cells, columns):
                raise invalid(
                    f"{name} has shape {dims(given.shape)} but inputs of size {width} and {cells} "
                    f"cells need {dims((width + cells, columns))}"
                )
        both = _sigmoid(xp, xp.matmul(xp.concat([x, h_prev], axis=1), w_ru) + b_ru)
        r, u = both[:, :cells], both[:, cells:]
        c = xp.tanh(xp.matmul(xp.concat([x, h_prev * r], axis=1), w_c) + b_c)
        return r, u, c, u * h_prev + (1 - u) * c

    return run


@portable("GRUBlockCellGrad")
def gru_cell_grad(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """The gradients of its inputs, of the candidate and of the gates."""

    def run(x: Any, h_prev: Any, w_ru: Any, w_c: Any, *rest: Any) -> tuple[Any, ...]:
        _b_ru, _b_c, r, u, c, d_h = rest
        width = x.shape[1]
        d_c = d_h * (1 - u) * (1 - c * c)
        d_u = d_h * (h_prev - c) * u * (1 - u)
        through_c = xp.matmul(d_c, xp.matrix_transpose(w_c))
        d_hr = through_c[:, width:]
        d_r = d_hr * h_prev * r * (1 - r)
        d_ru = xp.concat([d_r, d_u], axis=1)
        through_ru = xp.matmul(d_ru, xp.matrix_transpose(w_ru))
        d_x = through_ru[:, :width] + through_c[:, :width]
        return d_x, through_ru[:, width:] + d_hr * r + d_h * u, d_c, d_ru

    return run
