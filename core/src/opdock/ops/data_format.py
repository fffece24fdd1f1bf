"""Axes and vectors of one data format in terms of another; optimized graphs of TF hold such ops."""

from __future__ import annotations

from opdock.ops.registry import define_op
from opdock.ops.support.common_shapes import unchanged

__all__: list[str] = []

_ATTRS = "T: {int32, int64} = DT_INT32, src_format: string = 'NHWC', dst_format: string = 'NCHW'"

data_format_dim_map_op = define_op("DataFormatDimMap", "x: T -> y: T", _ATTRS)
data_format_vec_permute_op = define_op("DataFormatVecPermute", "x: T -> y: T", _ATTRS)
for _op in (data_format_dim_map_op, data_format_vec_permute_op):
    _op.shape(unchanged)
    _op.not_differentiable()
