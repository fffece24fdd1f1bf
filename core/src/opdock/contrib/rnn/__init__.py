"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell`, more of them, and networks both ways."""

from __future__ import annotations

from opdock.contrib.rnn.convolutional import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
)
from opdock.contrib.rnn.fused import (
    FusedRNNCell,
    FusedRNNCellAdaptor,
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
    LSTMBlockFusedCell,
    LSTMBlockWrapper,
    TimeReversedFusedRNN,
)
from opdock.contrib.rnn.gated import CFNCell, MinimalRNNCell
from opdock.contrib.rnn.grid import BidirectionalGridLSTMCell, GridLSTMCell, TimeFreqLSTMCell
from opdock.contrib.rnn.lstm_variants import (
    CoupledInputForgetGateLSTMCell,
    GLSTMCell,
    LayerNormBasicLSTMCell,
    NASCell,
    PhasedLSTMCell,
)
from opdock.contrib.rnn.normalized import LayerNormLSTMCell, WeightNormLSTMCell
from opdock.contrib.rnn.stacked import stack_bidirectional_dynamic_rnn, stack_bidirectional_rnn
from opdock.contrib.rnn.turing import NTMCell
from opdock.contrib.rnn.units import (
    IndRNNCell,
    IndyGRUCell,
    IndyLSTMCell,
    IntersectionRNNCell,
    SRUCell,
    UGRNNCell,
)
from opdock.contrib.rnn.wrappers import (
    AttentionCellWrapper,
    CompiledWrapper,
    EmbeddingWrapper,
    HighwayWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from opdock.layers.rnn import best_effort_input_batch_size, static_rnn, transpose_batch_time
from opdock.layers.rnn_base import LayerRNNCell
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
    "AttentionCellWrapper", "BasicLSTMCell", "BasicRNNCell", "BidirectionalGridLSTMCell", "CFNCell",
    "CompiledWrapper", "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell",
    "CoupledInputForgetGateLSTMCell", "DeviceWrapper", "DropoutWrapper", "EmbeddingWrapper",
    "FusedRNNCell", "FusedRNNCellAdaptor", "GLSTMCell", "GRUBlockCell", "GRUBlockCellV2", "GRUCell",
    "GridLSTMCell", "HighwayWrapper", "IndRNNCell", "IndyGRUCell", "IndyLSTMCell",
    "InputProjectionWrapper", "IntersectionRNNCell", "LSTMBlockCell", "LSTMBlockFusedCell",
    "LSTMBlockWrapper", "LSTMCell", "LSTMStateTuple", "LayerNormBasicLSTMCell", "LayerNormLSTMCell",
    "LayerRNNCell", "MinimalRNNCell", "MultiRNNCell", "NASCell", "NTMCell",
    "OutputProjectionWrapper", "PhasedLSTMCell", "RNNCell", "ResidualWrapper", "SRUCell",
    "TimeFreqLSTMCell", "TimeReversedFusedRNN", "UGRNNCell", "WeightNormLSTMCell",
    "best_effort_input_batch_size", "stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn",
    "static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn", "transpose_batch_time",
]  # fmt: skip
