"""Convolution on oneDNN: images and volumes, grouped and depthwise, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, dtypes, errors, windows
from opdock_cpu.kernels import conv as numpy_conv
from opdock_cpu.kernels import depthwise as numpy_depthwise
from opdock_cpu.onednn import conv as primitives
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.kernels.common import (
    PRIORITY,
    Array,
    PerShape,
    declined_at_once,
    size,
    supports,
)
from opdock_cpu.onednn.memory import TYPES
from opdock_cpu.onednn.packing import Call, Kept
from opdock_cpu.onednn.stays import stays
from opdock_cpu.portable import plainly

__all__ = ["shape_of", "table", "when_conv"]

table = KernelTable()

_TYPES: Final = frozenset({dtypes.float32, dtypes.bfloat16, dtypes.float16})


def when_conv(sig: NodeSig) -> bool | str:
    """The reason why oneDNN does not take a convolution, or True."""
    inputs = [i for i, t in enumerate(sig.in_dtypes) if t in _TYPES]
    why = declined_at_once(sig, *inputs)
    if why:
        return why
    if not supports(sig.in_dtypes[inputs[0]]):
        return f"this processor has no product of {sig.in_dtypes[inputs[0]].name}"
    return True


def shape_of(
    layout: windows.Layout, dtype: DType, shape: Sequence[int], kernel: Sequence[int],
    depthwise: bool = False,
) -> ConvShape:  # fmt: skip
    """The geometry of a call, from the input's shape and TF's kernel shape.

    Raises:
        InvalidArgumentError: the kernel does not fit the input.
    """
    batch, space, channels = layout.parts(shape)
    *window, inner, outputs = kernel
    where = layout.window(space, window)
    if depthwise:
        windows.check_depth(channels, inner)
        groups, outputs = channels, channels * outputs
    else:
        groups = windows.groups(channels, inner, outputs)
    return ConvShape(batch, channels, outputs, groups, where, layout.first, TYPES[dtype])


def _tried(make: Callable[..., Call], shape: ConvShape, depthwise: bool) -> Call | None:
    """A primitive, or None where oneDNN has no implementation for this processor.

    What it calls a reference, say for gradients of windows as large as images, computes element by
    element: unfolding windows and multiplying takes a tenth of the time.
    """
    weights = shape.depthwise_weights() if depthwise else shape.weights()
    try:
        call = make(shape, weights)
    except errors.UnimplementedError:
        return None
    return None if shape.groups == 1 and "ref" in call.implementation else call


def forward_binder(depthwise: bool, fallback: Any) -> Callable[[NodeSig], Callable[..., Array]]:
    """The binder of a forward convolution."""

    def bind(sig: NodeSig) -> Callable[..., Array]:
        layout, dtype = windows.Layout(sig.attrs), sig.out_dtypes[0].np
        kept = stays(sig, 1)

        def make(x: Array, kernel: Array) -> Callable[..., Array]:
            shape = shape_of(layout, sig.out_dtypes[0], x.shape, kernel.shape, depthwise)
            target = layout.shape(shape.batch, shape.where.out, shape.outputs)
            if size(target) == 0 or x.size == 0 or kernel.size == 0:
                return plainly(fallback(sig))
            call = _tried(primitives.forward, shape, depthwise)
            if call is None:
                return plainly(fallback(sig))
            packed = Kept(call.keep(1)) if kept else None
            run = call.bind()
            if packed is None:

                def direct(x: Array, kernel: Array, out: Array | None) -> Array:
                    if out is None:
                        out = np.empty(target, dtype)
                    run(x, kernel, out)
                    return out

                return direct

            def prepacked(x: Array, kernel: Array, out: Array | None) -> Array:
                if out is None:
                    out = np.empty(target, dtype)
                run(x, packed(kernel), out)
                return out

            return prepacked

        shapes = PerShape(make)

        def run(x: Array, kernel: Array, out: Array | None = None) -> Array:
            return shapes.find((x.shape, kernel.shape), x, kernel)(x, kernel, out)

        return run

    return bind


def input_binder(depthwise: bool, fallback: Any) -> Callable[[NodeSig], Callable[..., Array]]:
    """The binder of a gradient with respect to the input."""

    def bind(sig: NodeSig) -> Callable[..., Array]:
        layout, dtype = windows.Layout(sig.attrs), sig.out_dtypes[0].np
        kept = stays(sig, 1)

        def make(input_sizes: Array, kernel: Array, grad: Array) -> Callable[..., Array]:
            target = tuple(input_sizes.tolist())
            shape = shape_of(layout, sig.out_dtypes[0], target, kernel.shape, depthwise)
            check_grad(layout, shape, grad)
            if size(target) == 0 or grad.size == 0 or kernel.size == 0:
                return plainly(fallback(sig))
            call = _tried(primitives.backward_data, shape, depthwise)
            if call is None:
                return plainly(fallback(sig))
            packed = Kept(call.keep(1)) if kept else None
            run = call.bind()

            def gradient(sizes: Array, kernel: Array, grad: Array, out: Array | None) -> Array:
                if out is None:
                    out = np.empty(target, dtype)
                run(grad, kernel if packed is None else packed(kernel), out)
                return out

            return gradient

        shapes = PerShape(make)

        def run(sizes: Array, kernel: Array, grad: Array, out: Array | None = None) -> Array:
            key = (sizes.tobytes(), sizes.dtype, kernel.shape, grad.shape)
            return shapes.find(key, sizes, kernel, grad)(sizes, kernel, grad, out)

        return run

    return bind


def check_grad(layout: windows.Layout, shape: ConvShape, grad: Array) -> None:
    """That a gradient has the shape of the outputs."""
    expected = layout.shape(shape.batch, shape.where.out, shape.outputs)
    windows.check_shape("out_backprop", grad.shape, expected)


def filter_binder(depthwise: bool, fallback: Any) -> Callable[[NodeSig], Callable[..., Array]]:
    """The binder of a gradient with respect to the filter."""

    def bind(sig: NodeSig) -> Callable[..., Array]:
        layout, dtype = windows.Layout(sig.attrs), sig.out_dtypes[0].np

        def make(x: Array, filter_sizes: Array, grad: Array) -> Callable[..., Array]:
            kernel = tuple(filter_sizes.tolist())
            shape = shape_of(layout, sig.out_dtypes[0], x.shape, kernel, depthwise)
            check_grad(layout, shape, grad)
            if x.size == 0 or grad.size == 0 or size(kernel) == 0:
                return plainly(fallback(sig))
            call = _tried(primitives.backward_weights, shape, depthwise)
            if call is None:
                return plainly(fallback(sig))
            run = call.bind()

            def gradient(x: Array, sizes: Array, grad: Array, out: Array | None) -> Array:
                if out is None:
                    out = np.empty(kernel, dtype)
                run(x, grad, out)
                return out

            return gradient

        shapes = PerShape(make)

        def run(x: Array, sizes: Array, grad: Array, out: Array | None = None) -> Array:
            key = (x.shape, sizes.tobytes(), sizes.dtype, grad.shape)
            return shapes.find(key, x, sizes, grad)(x, sizes, grad, out)

        return run

    return bind


def _add(name: str, bind: Any, **more: Any) -> None:
    table.binder(name, T=_TYPES, out=True, priority=PRIORITY, when=when_conv, **more)(bind)


for _name in ("Conv2D", "Conv3D"):
    _add(_name, forward_binder(False, numpy_conv.conv))
for _name in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):
    _add(_name, input_binder(False, numpy_conv.conv_backprop_input), host_inputs=("input_sizes",))
for _name in ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"):
    _add(
        _name, filter_binder(False, numpy_conv.conv_backprop_filter), host_inputs=("filter_sizes",)
    )
_add("DepthwiseConv2dNative", forward_binder(True, numpy_depthwise.depthwise))
_add(
    "DepthwiseConv2dNativeBackpropInput",
    input_binder(True, numpy_depthwise.depthwise_backprop_input),
    host_inputs=("input_sizes",),
)
_add(
    "DepthwiseConv2dNativeBackpropFilter",
    filter_binder(True, numpy_depthwise.depthwise_backprop_filter),
    host_inputs=("filter_sizes",),
)
