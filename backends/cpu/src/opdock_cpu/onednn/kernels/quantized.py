"""Products and convolutions of quantized tensors on oneDNN, equal to NumPy's in every bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors
from opdock_cpu.int8 import BYTES, Factors, Outputs
from opdock_cpu.kernels.quantized import multiplied
from opdock_cpu.kernels.quantized_nn import Placement, convolved
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.kernels.common import PRIORITY, Array, PerShape, declined, size, threads_for
from opdock_cpu.onednn.packing import Kept
from opdock_cpu.onednn.quantized import ConvolutionS32, ProductS32, Weights, exact
from opdock_cpu.onednn.stays import stays
from opdock_cpu.ranges import storage

__all__ = ["table"]

table = KernelTable()

Sums = Callable[[Array, Array, tuple[int, int]], Array]
"""From plain integers, the other factor as it comes, and both zeros."""

_WORTH: Final = 200_000
"""Multiply-adds from which oneDNN wins: a call costs 10 us, one through NumPy's floats 4."""


def _when(sig: NodeSig) -> bool | str:
    why = declined(sig, 0, 1) or exact()
    if why:
        return why
    out = sig.out_shapes[0]
    if out is None or None in out:
        return "the shape of the result is not known when the program is prepared"
    filters = sig.in_shapes[1]
    terms = size(filters) // out[-1] if out[-1] else 0
    macs = size(out) * terms
    return macs >= _WORTH or f"{macs} multiply-adds; oneDNN pays from {_WORTH}"


def _unsigned(sig: NodeSig) -> bool:
    return sig.in_dtypes[1] == dtypes.quint8


def _packer(pack: Callable[[Array], Weights], kept: bool) -> Callable[[Array], Weights]:
    """Lays out weights as they come, once for the same array when they mostly stay."""

    def packed(weights: Array) -> Weights:
        return pack(storage(weights))

    return Kept(packed) if kept else packed


@table.binder(
    "QuantizedMatMul", T1=dtypes.quint8, T2=BYTES, Toutput=dtypes.qint32, priority=PRIORITY,
    when=_when,
)  # fmt: skip
def matmul(sig: NodeSig) -> Callable[..., Outputs]:
    """The product of two matrices, its sums as 32-bit integers."""
    ta, tb, dtype = sig.attrs["transpose_a"], sig.attrs["transpose_b"], sig.out_dtypes[0].np
    factors, unsigned, kept = Factors(sig, ("a", "b")), _unsigned(sig), stays(sig, 1)

    def make(a: Array, b: Array) -> Sums:
        checks.check_matmul(a, b, ta, tb)
        rows, inner = a.shape[::-1] if ta else a.shape
        macs = rows * inner * b.shape[0 if tb else 1]
        if macs == 0:
            return lambda a, b, zeros: multiplied(
                a.T if ta else a, storage(b.T if tb else b), zeros
            )
        multiply = ProductS32((rows, inner), b.shape, tb, unsigned, threads_for(macs))
        packed = _packer(multiply.pack, kept)
        return lambda a, b, zeros: multiply(a.T if ta else a, packed(b), zeros)

    shapes = PerShape(make)

    def run(a: Array, b: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        sums = shapes.find((a.shape, b.shape), a, b)
        return product.result(sums(storage(a), b, product.zeros), dtype)

    return run


@table.binder(
    "QuantizedConv2D", Tinput=dtypes.quint8, Tfilter=BYTES, out_type=dtypes.qint32,
    priority=PRIORITY, when=_when,
)  # fmt: skip
def conv2d(sig: NodeSig) -> Callable[..., Outputs]:
    """Convolution of images, its sums as 32-bit integers."""
    factors, dtype = Factors(sig, ("input", "filter"), strict=False), sig.out_dtypes[0].np
    placement, unsigned, kept = Placement(sig), _unsigned(sig), stays(sig, 1)
    middle = 128 if unsigned else 0

    def plainly(x: Array, kernel: Array, zeros: tuple[int, int]) -> Array:
        return convolved(x, storage(kernel), zeros, placement)

    def make(x: Array, kernel: Array, zeros: tuple[int, int]) -> Sums:
        (top, left), where = placement(x.shape, kernel.shape)
        p, q = zeros
        if not x.size or not kernel.size or (where.is_padded and not 0 <= p <= 255):
            return plainly
        shape = ConvShape(x.shape[0], x.shape[3], kernel.shape[3], 1, where, False, Type.U8)
        try:
            convolve = ConvolutionS32(shape, where.is_padded and p != 0, unsigned, q != middle)
        except errors.UnimplementedError:
            return plainly
        packed = _packer(convolve.pack, kept)
        return lambda x, kernel, zeros: convolve(x[:, top:, left:], packed(kernel), zeros)

    shapes = PerShape(make)

    def run(x: Array, kernel: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        p, q = product.zeros
        # What is made depends on whether there are zeros, and on whether images can be padded.
        key = (x.shape, kernel.shape, p != 0, 0 <= p <= 255, q != middle)
        sums = shapes.find(key, x, kernel, product.zeros)
        return product.result(sums(storage(x), kernel, product.zeros), dtype)

    return run
