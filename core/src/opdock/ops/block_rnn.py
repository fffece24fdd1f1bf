"""Recurrent cells, and sequences of them, as one op each: LSTMBlockCell, BlockLSTM, GRUBlockCell.

Gradients come through the states alone, `cs` and `h`; the gates are results for the gradient ops.
"""

from __future__ import annotations

from typing import Any, Final

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.fill import zeros_like
from opdock.ops.registry import OpSpec, ShapeSig, define_op, get
from opdock.shapes import Shape

__all__: list[str] = []

_TYPES: Final = "T: {half, float}"
_WEIGHTS: Final = "w: T, wci: T, wcf: T, wco: T, b: T"
_GATES: Final = "i: T, cs: T, f: T, o: T, ci: T, co: T"
_GRU: Final = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T"

gru_cell_op = define_op("GRUBlockCell", f"{_GRU} -> r: T, u: T, c: T, h: T", "T: {float}")
gru_cell_grad_op = define_op(
    "GRUBlockCellGrad",
    f"{_GRU}, r: T, u: T, c: T, d_h: T -> d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
    "T: {float}",
).not_differentiable()
lstm_cell_op = define_op(
    "LSTMBlockCell",
    f"x: T, cs_prev: T, h_prev: T, {_WEIGHTS} -> {_GATES}, h: T",
    f"forget_bias: float = 1.0, cell_clip: float = 3.0, use_peephole: bool = false, {_TYPES}",
)
lstm_cell_grad_op = define_op(
    "LSTMBlockCellGrad",
    f"x: T, cs_prev: T, h_prev: T, {_WEIGHTS}, {_GATES}, cs_grad: T, h_grad: T "
    "-> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    f"use_peephole: bool, {_TYPES}",
).not_differentiable()


def _sequence(name: str, attrs: str) -> OpSpec:
    return define_op(
        name,
        f"seq_len_max: int64, x: T, cs_prev: T, h_prev: T, {_WEIGHTS} -> {_GATES}, h: T",
        f"{attrs}, use_peephole: bool = false, {_TYPES}",
    )


def _sequence_grad(name: str) -> OpSpec:
    return define_op(
        name,
        f"seq_len_max: int64, x: T, cs_prev: T, h_prev: T, {_WEIGHTS}, {_GATES}, h: T, cs_grad: T, "
        "h_grad: T -> x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, "
        "wcf_grad: T, wco_grad: T, b_grad: T",
        f"use_peephole: bool, {_TYPES}",
    ).not_differentiable()


block_lstm_op = _sequence("BlockLSTM", "forget_bias: float = 1.0, cell_clip: float = 3.0")
block_lstm_v2_op = _sequence("BlockLSTMV2", "cell_clip: float = 0.0")
block_lstm_grad_op = _sequence_grad("BlockLSTMGrad")
block_lstm_grad_v2_op = _sequence_grad("BlockLSTMGradV2")


# ---------------------------------------------------------------- shapes
def _state_of(sig: ShapeSig) -> tuple[int | None, int | None]:
    """The batch and the number of cells."""
    (batch, _), (_, cells) = (shapes.with_rank(s, 2) for s in sig.shapes[:2])
    return batch, cells


@gru_cell_op.shape
@lstm_cell_op.shape
def _cell_shape(sig: ShapeSig) -> list[Shape]:
    return [_state_of(sig)] * sig.n_outputs


@gru_cell_grad_op.shape
def _gru_grad_shape(sig: ShapeSig) -> list[Shape]:
    batch, cells = _state_of(sig)
    double = None if cells is None else 2 * cells
    return [sig.shapes[0], (batch, cells), (batch, cells), (batch, double)]


@lstm_cell_grad_op.shape
def _lstm_grad_shape(sig: ShapeSig) -> list[Shape]:
    batch, cells = _state_of(sig)
    gates = None if cells is None else 4 * cells
    return [(batch, cells), (batch, gates), (cells,), (cells,), (cells,)]


@block_lstm_op.shape
@block_lstm_v2_op.shape
def _sequence_shape(sig: ShapeSig) -> list[Shape]:
    length, batch, _ = shapes.with_rank(sig.shapes[1], 3)
    (gates,) = shapes.with_rank(sig.shapes[-1], 1)
    if gates is not None and gates % 4:
        raise ValueError(f"Dimension size must be evenly divisible by 4 but is {gates}")
    return [(length, batch, None if gates is None else gates // 4)] * sig.n_outputs


@block_lstm_grad_op.shape
@block_lstm_grad_v2_op.shape
def _sequence_grad_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[1], 3)
    return list(sig.shapes[1:9])


# ---------------------------------------------------------------- gradients
def _given(grad: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if grad is None else grad


def _parts(whole: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of the input, and those of the state."""
    width = get("StridedSlice")(get("Shape")(like), [1], [2], [1], shrink_axis_mask=1)
    first = get("Slice")(whole, [0, 0], get("Pack")([-1, width]))
    first.set_shape(like.raw_shape)
    return first, get("Slice")(whole, get("Pack")([0, width]), [-1, -1])


def _weights(x: Tensor, state: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of a matrix and a bias of which `gates` are the results' gradients."""
    both = get("ConcatV2")([x, state], 1)
    return get("MatMul")(both, gates, transpose_a=True), get("Sum")(gates, [0])


@lstm_cell_op.gradient
def _lstm_gradient(op: Operation, *grads: Tensor | None) -> list[Any]:
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    i, cs, f, o, ci, co, h = op.outputs
    cs_prev_grad, gates, *peepholes = lstm_cell_grad_op(
        x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co,
        _given(grads[1], cs), _given(grads[6], h), use_peephole=op.attrs["use_peephole"],
    )  # fmt: skip
    x_grad, h_prev_grad = _parts(get("MatMul")(gates, w, transpose_b=True), x)
    w_grad, b_grad = _weights(x, h_prev, gates)
    return [x_grad, cs_prev_grad, h_prev_grad, w_grad, *peepholes, b_grad]


@gru_cell_op.gradient
def _gru_gradient(op: Operation, *grads: Tensor | None) -> list[Any]:
    x, h_prev, *_ = op.inputs
    r, u, c, h = op.outputs
    x_grad, h_prev_grad, d_c, d_ru = gru_cell_grad_op(*op.inputs, r, u, c, _given(grads[3], h))
    w_ru, b_ru = _weights(x, h_prev, d_ru)
    w_c, b_c = _weights(x, get("Mul")(h_prev, r), d_c)
    return [x_grad, h_prev_grad, w_ru, w_c, b_ru, b_c]


@block_lstm_op.gradient
@block_lstm_v2_op.gradient
def _sequence_gradient(op: Operation, *grads: Tensor | None) -> list[Any]:
    make = block_lstm_grad_op if op.type == "BlockLSTM" else block_lstm_grad_v2_op
    found = make(
        *op.inputs, *op.outputs, _given(grads[1], op.outputs[1]), _given(grads[6], op.outputs[6]),
        use_peephole=op.attrs["use_peephole"],
    )  # fmt: skip
    return [None, *found]
