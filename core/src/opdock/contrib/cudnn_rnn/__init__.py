"""`tf.contrib.cudnn_rnn`: the networks of NVIDIA's cuDNN, computed on any device."""

from __future__ import annotations

from opdock.contrib.cudnn_rnn.cells import CudnnCompatibleGRUCell, CudnnCompatibleLSTMCell
from opdock.contrib.cudnn_rnn.layers import CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh
from opdock.contrib.cudnn_rnn.saving import (
    CudnnGRUSaveable,
    CudnnLSTMSaveable,
    CudnnParamsFormatConverterGRU,
    CudnnParamsFormatConverterLSTM,
    CudnnParamsFormatConverterRelu,
    CudnnParamsFormatConverterTanh,
    CudnnRNNReluSaveable,
    CudnnRNNTanhSaveable,
)

__all__ = [
    "CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell", "CudnnGRU", "CudnnGRUSaveable",
    "CudnnLSTM", "CudnnLSTMSaveable", "CudnnParamsFormatConverterGRU",
    "CudnnParamsFormatConverterLSTM", "CudnnParamsFormatConverterRelu",
    "CudnnParamsFormatConverterTanh", "CudnnRNNRelu", "CudnnRNNReluSaveable", "CudnnRNNTanh",
    "CudnnRNNTanhSaveable",
]  # fmt: skip
