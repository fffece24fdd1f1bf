"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell` and `static_rnn`, where they once lived."""

from __future__ import annotations

from opdock.layers.rnn import static_rnn
from opdock.layers.rnn_cell import (
    BasicLSTMCell,
    BasicRNNCell,
    DeviceWrapper,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    ResidualWrapper,
    RNNCell,
)
from opdock.layers.rnn_directions import static_bidirectional_rnn, static_state_saving_rnn

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell",
    "LSTMStateTuple", "MultiRNNCell", "RNNCell", "ResidualWrapper", "static_bidirectional_rnn",
    "static_rnn", "static_state_saving_rnn",
]  # fmt: skip
