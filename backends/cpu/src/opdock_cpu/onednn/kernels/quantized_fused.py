"""Convolutions of 8-bit networks on oneDNN: sums, bias, scale, summand and bytes in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes, errors, windows
from opdock_cpu.int8 import Outputs
from opdock_cpu.kernels.quantized_fused import layer, narrowed
from opdock_cpu.kernels.quantized_nn import Placement
from opdock_cpu.onednn.conv import ConvShape, forward
from opdock_cpu.onednn.declarations import Alg, Arg, Type
from opdock_cpu.onednn.kernels.common import PRIORITY, Array, PerShape, declined, size
from opdock_cpu.onednn.kernels.quantized import Summed, convolution_sums
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.quantized import exact
from opdock_cpu.ranges import storage

__all__ = ["table"]

table = KernelTable()

_CONVOLUTIONS: Final = tuple(
    f"QuantizedConv2D{what}AndRequantize"
    for what in (
        "", "AndRelu", "WithBias", "WithBiasAndRelu", "WithBiasSumAndRelu",
        "WithBiasSignedSumAndRelu",
    )
)  # fmt: skip
_BYTES: Final = {dtypes.quint8: Type.U8, dtypes.qint8: Type.S8}


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig, 0, 1)
    if why:
        return why
    out = sig.out_dtypes[0]
    if out not in _BYTES or dtypes.as_dtype(sig.attrs.get("Tsummand", out)) not in _BYTES:
        return "results and summands have bytes"
    if "Relu" in sig.op and out is not dtypes.quint8:
        return "what is unsigned is cut off at 0, and nothing else"
    return True


class _Convolution:
    """A convolution of given shapes, whose bytes are made as its sums are."""

    def __init__(
        self, layout: windows.Layout, out: int, summand: tuple[int, float] | None, x: Array,
        kernel: Array,
    ) -> None:  # fmt: skip
        if x.ndim != 4 or kernel.ndim != 4:
            raise errors.InvalidArgumentError(None, None, "input and filter must be 4-dimensional")
        windows.check_depth(x.shape[3], kernel.shape[2])
        where = layout.window(x.shape[1:3], kernel.shape[:2])
        shape = ConvShape(x.shape[0], x.shape[3], kernel.shape[3], 1, where, False, Type.U8)
        self.outputs, self.target = shape.outputs, (shape.batch, *where.out, shape.outputs)
        if not size(self.target) or not x.size or not kernel.size:
            raise errors.UnimplementedError(None, None, "an array is empty")
        vector = dense((1, shape.outputs, 1, 1))
        steps: list[tuple[Any, ...]] = [
            ("binary", Alg.BINARY_ADD, vector),
            ("binary", Alg.BINARY_MUL, vector),
        ]
        if summand is not None:
            steps.append(("sum", summand[1], summand[0]))
        extra = [(Arg.post_op(i) | Arg.SRC_1, vector) for i in range(2)]
        call = forward(shape, shape.weights(Type.S8), post_ops=steps, extra=extra, sums=out)
        self.pack, self.run = call.keep(1), call.bind()


@table.binder(
    *_CONVOLUTIONS, Tinput=dtypes.quint8, Tfilter=dtypes.qint8, priority=PRIORITY, when=_when
)  # fmt: skip
def _convolution(sig: NodeSig) -> Callable[..., Outputs]:
    return _carried(sig) if exact() else _at_once(sig)


class _Plain(Placement):
    """Where the windows of a plain convolution stand."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self._layout = windows.Layout(attrs)

    def __call__(
        self, x: tuple[int, ...], kernel: tuple[int, ...]
    ) -> tuple[tuple[int, int], windows.Window]:
        """No row and no column is left out at the start."""
        if len(x) != 4 or len(kernel) != 4:
            raise errors.InvalidArgumentError(None, None, "input and filter must be 4-dimensional")
        windows.check_depth(x[3], kernel[2])
        return (0, 0), self._layout.window(x[1:3], kernel[:2])


def _carried(sig: NodeSig) -> Callable[..., Outputs]:
    """The layer where floats carry the products, and NumPy does what follows."""
    sums = convolution_sums(Summed.of(sig), _Plain(sig.attrs))
    return layer(sig, lambda x, kernel: sums(storage(x), kernel, (0, 0)).whole())


def _at_once(sig: NodeSig) -> Callable[..., Outputs]:
    """The layer in one pass."""
    layout, dtype, out = windows.Layout(sig.attrs), sig.out_dtypes[0].np, sig.out_dtypes[0]
    summed, asked = "Sum" in sig.op, Summed.of(sig)
    other = dtypes.as_dtype(sig.attrs["Tsummand"]) if summed else out

    def make(step: float, x: Array, kernel: Array) -> Callable[..., Array]:
        summand = (_BYTES[other], step) if summed else None
        made = _Convolution(layout, _BYTES[out], summand, x, kernel)
        pack, target = asked.once(made.pack), made.target

        def call(x: Array, kernel: Array, bias: Array, scale: Array, *addend: Array) -> Array:
            result = np.empty(target, dtype[0])
            for value in addend:
                if value.shape != target:
                    raise errors.UnimplementedError(None, None, "a summand of another shape")
                result.view(other.np[0])[...] = storage(value)
            made.run(np.ascontiguousarray(storage(x)), pack(kernel), result, bias, scale)
            return result

        return call

    def ranged(kernel: Array, *args: Array) -> Callable[..., Outputs]:
        outputs = kernel.shape[-1]
        how = narrowed(sig, args, outputs)
        bias, scale = (np.empty(outputs, np.float32) for _ in range(2))
        bias[...], scale[...] = how.bias, how.scale
        step, low, high = float(how.step), *map(np.asarray, how.ends)

        def call(x: Array, kernel: Array, *addend: Array) -> Outputs:
            convolve = shapes.find((step, x.shape, kernel.shape), step, x, kernel)
            return convolve(x, kernel, bias, scale, *addend).view(dtype), low, high

        return call

    shapes: PerShape[Array] = PerShape(make)
    ranges: PerShape[Outputs] = PerShape(ranged)
    place = len(sig.in_dtypes) - 5  # of the summand, among what is taken beside the factors

    def run(x: Array, kernel: Array, *args: Array) -> Outputs:
        addend = args[place : place + 1] if summed else ()
        known = args[:place] + args[place + 1 :] if summed else args
        key = kernel.shape[-1], *[a.tobytes() for a in known]
        return ranges.find(key, kernel, *args)(x, kernel, *addend)

    return run
