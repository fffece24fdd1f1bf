"""16-bit floats by the kernels of float32: converted in front of them, and rounded once behind.

oneDNN has no code for half precision on most processors, and what LLVM makes of a loop over such
numbers converts each as often as it is read. So a kernel that takes float32, and neither of the
types of 16 bits, is there for these as well, under the same conditions.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, Kernel, KernelTable, NodeSig, dtypes, mount
from opdock_cpu import halves
from opdock_cpu.namespace import namespace
from opdock_cpu.onednn.stays import ATTR as KEPT

__all__ = ["OPS", "table"]

Array = np.ndarray[Any, Any]
_HALVES: Final = frozenset({dtypes.float16, dtypes.bfloat16})
_SINGLE: Final = np.dtype(np.float32)
OPS: Final = (
    "AccumulateNV2", "AddN", "AdjustHue", "AdjustSaturation", "ArgMax", "ArgMin", "AvgPool",
    "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "BatchMatMul", "BatchMatMulV2", "BiasAdd",
    "BiasAddGrad", "BiasAddV1", "BlockLSTM", "BlockLSTMGrad", "BlockLSTMGradV2", "BlockLSTMV2",
    "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2",
    "Conv3DBackpropInputV2", "CropAndResizeGradBoxes", "CropAndResizeGradImage", "Cross",
    "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
    "DepthwiseConv2dNativeBackpropInput", "Dilation2D", "Dilation2DBackpropFilter",
    "Dilation2DBackpropInput", "HSVToRGB", "L2Loss", "LRN", "LRNGrad", "LSTMBlockCell",
    "LSTMBlockCellGrad", "LogSoftmax", "MatMul", "MaxPool", "MaxPool3D", "MaxPool3DGrad",
    "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradV2", "MaxPoolWithArgmax",
    "NthElement", "RGBToHSV", "Softmax", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "TopK", "TopKV2",
)  # fmt: skip
"""Ops that TensorFlow computes in half precision too, and that add up, compare or look around."""


# ---------------------------------------------------------------- a node of float32
def _single(dtype: DType) -> DType:
    return dtypes.float32 if dtype in _HALVES else dtype


def _wide(sig: NodeSig) -> NodeSig:
    """The node as one of float32; numbers that each step converts are no constants."""
    whole = {i: sig.const(i) for i, t in enumerate(sig.in_dtypes) if t not in _HALVES}
    return NodeSig(
        sig.op, sig.name,
        {k: _single(v) if isinstance(v, DType) else v for k, v in sig.attrs.items() if k != KEPT},
        sig.in_shapes, [_single(t) for t in sig.in_dtypes],
        sig.out_shapes, [_single(t) for t in sig.out_dtypes],
        {i: value for i, value in whole.items() if value is not None},
        sig.device, sig.resources, sig.in_names,
    )  # fmt: skip


def _when(when: Callable[[NodeSig], bool | str], sig: NodeSig) -> bool | str:
    return when(_wide(sig))


def _bind(kernel: Kernel, sig: NodeSig) -> Callable[..., Any]:
    """The kernel between conversions."""
    assert kernel.bind is not None
    inner, buffered = kernel.bind(_wide(sig)), kernel.out
    narrow = [t in _HALVES for t in sig.in_dtypes]
    kinds = [t.np if t in _HALVES else None for t in sig.out_dtypes]

    def wide(inputs: Any) -> list[Any]:
        return [
            halves.converted(x, _SINGLE) if half else x
            for x, half in zip(inputs, narrow, strict=True)
        ]

    def given(value: Any, kind: Any, out: Any) -> Any:
        if kind is not None:
            return halves.converted(value, kind, out)
        if out is None:
            return value
        out[...] = value
        return out

    def run(*args: Any) -> Any:
        inputs, out = (args[:-1], args[-1]) if buffered else (args, None)
        found = inner(*wide(inputs), None) if buffered else inner(*wide(inputs))
        if not isinstance(found, tuple):
            return given(found, kinds[0], out)
        outs = out or [None] * len(found)
        return tuple(map(given, found, kinds, outs))

    return run


# ---------------------------------------------------------------- the table
class _Table(KernelTable):
    """Made of the kernels of other tables, which are loaded when an op is asked for."""

    def for_op(self, op: str) -> tuple[Kernel, ...]:
        """A kernel for each that takes float32 alone, or the others on some processors only, and
        for core's."""
        return _twins(op) if op in OPS else ()

    def ops(self) -> list[str]:
        """The op types that there are such kernels for."""
        return sorted(OPS)


@functools.cache
def _twins(op: str) -> tuple[Kernel, ...]:
    tables = importlib.import_module("opdock_cpu._kernels").TABLES
    found = []
    for name, ops in tables.items():
        module, _, attribute = name.partition(":")
        if op in ops.split() and module != __name__:
            found += getattr(importlib.import_module(module), attribute).for_op(op)
    # Core's own come last: below any that is written for halves.
    portable = [
        dataclasses.replace(k, label="", priority=-1)
        for k in mount(namespace).for_op(op)
        if k.bind is not None and not k.refused
    ]
    return tuple(_twin(k) for k in [*filter(_serves, found), *portable])


def _serves(kernel: Kernel) -> bool:
    types = kernel.dtypes.get("T", frozenset())
    always = bool(types & _HALVES) and kernel.when is None
    plain = kernel.bind is not None and not kernel.label
    return plain and dtypes.float32 in types and not always


def _twin(kernel: Kernel) -> Kernel:
    bind = functools.update_wrapper(functools.partial(_bind, kernel), kernel.bind or _bind)
    return dataclasses.replace(
        kernel, bind=bind, dtypes={**kernel.dtypes, "T": _HALVES}, may_alias={},
        when=None if kernel.when is None else functools.partial(_when, kernel.when),
        unfold=None,  # its parts would round, each by itself
    )  # fmt: skip


table = _Table()
