"""LSTM cells whose kernels are masked."""

from __future__ import annotations

from opdock.contrib.model_pruning.masks import Masked
from opdock.layers.rnn_cell import BasicLSTMCell, LSTMCell

__all__ = ["MaskedBasicLSTMCell", "MaskedLSTMCell"]


class MaskedBasicLSTMCell(Masked, BasicLSTMCell):
    """`tf.nn.rnn_cell.BasicLSTMCell` with a mask for its kernel; see there."""


class MaskedLSTMCell(Masked, LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell` with a mask for its kernel, but not for a projection; see there."""
