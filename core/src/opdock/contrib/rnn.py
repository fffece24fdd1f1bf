"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell` and `static_rnn`, where they once lived."""

from __future__ import annotations

from opdock.layers.rnn import static_rnn
from opdock.layers.rnn_cell import (
    BasicLSTMCell,
    BasicRNNCell,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    RNNCell,
)

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple",
    "MultiRNNCell", "RNNCell", "static_rnn",
]  # fmt: skip
