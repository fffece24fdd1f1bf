"""A network of cuDNN's over a whole sequence, out of ops that every device has.

What the inputs add to the gates is one product over all steps; the loop has the states' products.
"""

from __future__ import annotations

from typing import Any

from opdock.contrib.cudnn_rnn.layout import GRU, LSTM, Layout, Mode
from opdock.contrib.rnn.fused import (
    FusedRNNCell,
    FusedRNNCellAdaptor,
    TimeReversedFusedRNN,
)
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.core import dropout as dropped
from opdock.layers.rnn import transpose_batch_time
from opdock.layers.rnn_base import LSTMStateTuple, RNNCell
from opdock.layers.utils import smart_cond
from opdock.ops.array import reshape, shape
from opdock.ops.bias import bias_add
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.fill import zeros_like
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.splitting import split, unstack
from opdock.ops.tiling import tile

__all__ = ["run"]


class _Step(RNNCell):
    """A step, for inputs that have gone through their product and have their bias."""

    def __init__(self, mode: Mode, units: int, kernel: Any, bias: Any) -> None:
        super().__init__(name=f"{mode.name}_step")
        self._mode, self._units, self._kernel, self._bias = mode, units, kernel, bias

    @property
    def state_size(self) -> Any:
        """The number of units; for an LSTM, of memory and output."""
        n = self._units
        return LSTMStateTuple(n, n) if self._mode is LSTM else n

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        given = bias_add(matmul(state.h if self._mode is LSTM else state, self._kernel), self._bias)
        if self._mode is LSTM:
            i, f, new, o = split(inputs + given, 4, 1)
            c = sigmoid(f) * state.c + sigmoid(i) * tanh(new)
            h = sigmoid(o) * tanh(c)
            return h, LSTMStateTuple(c, h)
        if self._mode is GRU:
            n = self._units
            gates, new = split(inputs, [2 * n, n], 1)
            past_gates, past = split(given, [2 * n, n], 1)
            reset, update = split(sigmoid(gates + past_gates), 2, 1)
            state = (1 - update) * tanh(new + reset * past) + update * state
            return state, state
        assert self._mode.activation is not None
        output = self._mode.activation(inputs + given)
        return output, output


def run(
    layout: Layout, weights: Any, biases: Any, inputs: Any, states: tuple[Any, ...],
    lengths: Any = None, time_major: bool = True, dropout: float = 0.0, seed: int | None = None,
    training: Any = True,
) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
    """Runs a network.

    Args:
        layout: the network.
        weights, biases: its parameters, as `Layout.unpack` gives them.
        inputs: a tensor [time, batch, size]; batch first unless `time_major`.
        states: the output and, for an LSTM, the memory to begin with, each
            [layers * ways, batch, units]; batch first unless `time_major`.
        lengths: a vector of the examples' lengths.
        time_major: whether time comes first in inputs and outputs, and layers in states.
        dropout: what part of a layer's outputs the next one does not see.
        seed: that of the dropout.
        training: whether there is dropout.

    Returns:
        The outputs of the last layer, both ways' side by side, and the states at the end, in the
        form of those that were given.
    """
    if not time_major:
        inputs, states = transpose_batch_time(inputs), tuple(map(transpose_batch_time, states))
    starts = _starts(layout, states)
    blocks = layout.blocks(weights, biases)
    ends: list[Any] = []
    for layer in range(layout.layers):
        with name_scope(f"layer_{layer}"):
            if layer and dropout:
                inputs = _dropped(inputs, dropout, None if seed is None else seed + layer, training)
            places = slice(layer * layout.ways, (layer + 1) * layout.ways)
            inputs, after = _layer(layout, layer, blocks[places], inputs, starts[places], lengths)
        ends += after
    finals = _finals(layout, ends)
    if not time_major:
        inputs, finals = transpose_batch_time(inputs), tuple(map(transpose_batch_time, finals))
    return inputs, finals


def _starts(layout: Layout, states: tuple[Any, ...]) -> list[Any]:
    count = layout.layers * layout.ways
    parts = [unstack(s, count) for s in states]
    if layout.mode is LSTM:
        return [LSTMStateTuple(c, h) for h, c in zip(*parts, strict=True)]
    return list(parts[0])


def _finals(layout: Layout, ends: list[Any]) -> tuple[Any, ...]:
    if layout.mode is LSTM:
        return stack([s.h for s in ends]), stack([s.c for s in ends])
    return (stack(ends),)


def _layer(
    layout: Layout, layer: int, blocks: list[Any], inputs: Any, starts: list[Any], lengths: Any
) -> tuple[Any, list[Any]]:
    gates = layout.mode.gates
    outputs, ends = [], []
    for way, ((matrices, biases), start) in enumerate(zip(blocks, starts, strict=True)):
        of_input, of_state = matrices[:-gates], matrices[-gates:]
        if of_input:
            given = _product(inputs, transpose(concat(of_input, 0)))
        else:
            given = tile(inputs, [1, 1, gates])
        step = _Step(
            layout.mode, layout.units, transpose(concat(of_state, 0)), concat(biases[gates:], 0)
        )
        network: FusedRNNCell = FusedRNNCellAdaptor(step, use_dynamic_rnn=True)
        if way:
            network = TimeReversedFusedRNN(network)
        output, end = network(bias_add(given, concat(biases[:gates], 0)), start, None, lengths)
        outputs.append(output)
        ends.append(end)
    return concat(outputs, 2), ends


def _dropped(inputs: Any, rate: float, seed: int | None, training: Any) -> Any:
    if rate < 1:
        return dropped(inputs, rate, seed=seed, training=training)
    # `tf.layers.dropout` refuses to drop everything; cuDNN does it.
    return smart_cond(training, lambda: zeros_like(inputs), lambda: identity(inputs))


def _product(inputs: Any, kernel: Any) -> Any:
    """The product at every step at once."""
    steps, batch, _ = inputs.shape.as_list()
    sizes = shape(inputs)
    columns = kernel.shape.as_list()[1]
    rows = reshape(inputs, [sizes[0] * sizes[1], sizes[2]])
    product = reshape(matmul(rows, kernel), [sizes[0], sizes[1], columns])
    product.set_shape([steps, batch, columns])
    return product
