"""`tf.quantization`: quantized tensors, and training for them."""

from __future__ import annotations

from opdock.ops.fake_quant import (
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient,
    quantize_and_dequantize,
)
from opdock.ops.quantize import dequantize, quantize
from opdock.ops.quantized import quantized_concat

__all__ = [
    "dequantize", "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient", "quantize", "quantize_and_dequantize",
    "quantized_concat",
]  # fmt: skip
