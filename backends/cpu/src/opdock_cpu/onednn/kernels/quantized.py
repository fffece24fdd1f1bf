"""Products and convolutions of quantized tensors on oneDNN, equal to NumPy's in every bit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors, windows
from opdock_cpu.int8 import BYTES, Factors, Outputs
from opdock_cpu.kernels.quantized import multiplied
from opdock_cpu.kernels.quantized_nn import Placement, convolved
from opdock_cpu.onednn.carried import CarriedConvolution, CarriedProduct
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.kernels.common import PRIORITY, Array, PerShape, declined, size, threads_for
from opdock_cpu.onednn.packing import Kept
from opdock_cpu.onednn.quantized import ConvolutionS32, ProductS32, exact
from opdock_cpu.onednn.stays import stays
from opdock_cpu.ranges import storage
from opdock_cpu.sums32 import Sums32

__all__ = ["Summed", "Sums", "convolution_sums", "product_sums", "table", "worth"]

table = KernelTable()

Sums = Callable[[Array, Array, tuple[int, int]], Sums32]
"""From plain integers, the other factor as it comes, and both zeros."""

_WORTH: Final = 200_000
"""Multiply-adds from which oneDNN wins: a call costs 10 us, one through NumPy's floats 4."""
_WORTH_IN_A_CHAIN: Final = 20_000
"""The same where what follows is done with the sums, without a pass for each op."""


@dataclass(frozen=True, slots=True)
class Summed:
    """What a product of quantized factors is to do.

    Attributes:
        attrs: the node's.
        unsigned: whether the second factor is quint8, else qint8.
        kept: whether it mostly stays the same.
    """

    attrs: Mapping[str, Any]
    unsigned: bool
    kept: bool

    @classmethod
    def of(cls, sig: NodeSig) -> Summed:
        """What a node asks for."""
        return cls(sig.attrs, sig.in_dtypes[1] == dtypes.quint8, stays(sig, 1))

    def once(self, pack: Callable[[Array], Any]) -> Callable[[Array], Any]:
        """Lays out weights as they come, once for the same array when they mostly stay."""

        def packed(weights: Array) -> Any:
            return pack(storage(weights))

        return Kept(packed) if self.kept else packed


def worth(sig: NodeSig, chain: bool = False) -> bool | str:
    """Whether oneDNN pays for a product of quantized factors, or the reason why not.

    Args:
        sig: the product.
        chain: whether what follows is done in the same call.
    """
    least = _WORTH_IN_A_CHAIN if chain else _WORTH
    why = declined(sig, 0, 1)
    if why:
        return why
    out = sig.out_shapes[0]
    if out is None or None in out:
        return "the shape of the result is not known when the program is prepared"
    filters = sig.in_shapes[1]
    terms = size(filters) // out[-1] if out[-1] else 0
    macs = size(out) * terms
    return macs >= least or f"{macs} multiply-adds; oneDNN pays from {least}"


# ---------------------------------------------------------------- matrices
def product_sums(asked: Summed) -> Sums:
    """The sums of a product of matrices."""
    ta, tb = asked.attrs["transpose_a"], asked.attrs["transpose_b"]

    def plainly(a: Array, b: Array, zeros: tuple[int, int]) -> Sums32:
        weights = storage(b)
        return Sums32(multiplied(a.T if ta else a, weights.T if tb else weights, zeros))

    def make(a: Array, b: Array, zeros: tuple[int, int]) -> Sums:
        checks.check_matmul(a, b, ta, tb)
        rows, inner = a.shape[::-1] if ta else a.shape
        columns = b.shape[0 if tb else 1]
        macs = rows * inner * columns
        if macs == 0:
            return plainly
        if not exact():
            direct = ProductS32((rows, inner), b.shape, tb, asked.unsigned, threads_for(macs))
            packed = asked.once(direct.pack)
            return lambda a, b, zeros: direct.sums(a.T if ta else a, packed(b), zeros)
        if not 0 <= zeros[0] <= 255:
            return plainly
        carried, q = CarriedProduct(rows, inner, columns), zeros[1]
        shares = asked.once(lambda b: carried.pack(b.T if tb else b, q))
        return lambda a, b, zeros: Sums32(carried(a.T if ta else a, shares(b), zeros[0]))

    shapes = PerShape(make)

    def run(a: Array, b: Array, zeros: tuple[int, int]) -> Sums32:
        p, q = zeros
        # Weights that floats carry are laid out as distances from their zero.
        key = (a.shape, b.shape, *((0 <= p <= 255, q) if exact() else ()))
        return shapes.find(key, a, b, zeros)(a, b, zeros)

    return run


# ---------------------------------------------------------------- images
def convolution_sums(asked: Summed, placement: Placement | None = None) -> Sums:
    """The sums of a convolution.

    Args:
        asked: what it is to do.
        placement: where its windows stand; as those of QuantizedConv2D without it.
    """
    placement = placement or Placement(asked.attrs)
    middle = 128 if asked.unsigned else 0

    def plainly(x: Array, kernel: Array, zeros: tuple[int, int]) -> Sums32:
        return Sums32(convolved(x, storage(kernel), zeros, placement))

    def make(x: Array, kernel: Array, zeros: tuple[int, int]) -> Sums:
        (top, left), where = placement(x.shape, kernel.shape)
        p, q = zeros
        if not x.size or not kernel.size:
            return plainly
        batch, channels, outputs = x.shape[0], x.shape[3], kernel.shape[3]
        shape = functools.partial(ConvShape, batch, channels, outputs, 1, where, False)
        try:
            if not exact():
                return directly(shape(Type.U8), (top, left), where, zeros)
            if not 0 <= p <= 255:
                return plainly
            carried = CarriedConvolution(shape(Type.F32))
        except errors.UnimplementedError:
            return plainly
        shares = asked.once(lambda kernel: carried.pack(kernel, q))
        return lambda x, kernel, zeros: Sums32(carried(x[:, top:, left:], shares(kernel), zeros[0]))

    def directly(
        shape: ConvShape, start: tuple[int, int], where: windows.Window, zeros: tuple[int, int]
    ) -> Sums:
        (top, left), (p, q) = start, zeros
        if where.is_padded and not 0 <= p <= 255:
            return plainly
        convolve = ConvolutionS32(shape, where.is_padded and p != 0, asked.unsigned, q != middle)
        packed = asked.once(convolve.pack)
        return lambda x, kernel, zeros: convolve.sums(x[:, top:, left:], packed(kernel), zeros)

    shapes = PerShape(make)

    def run(x: Array, kernel: Array, zeros: tuple[int, int]) -> Sums32:
        p, q = zeros
        # What is made depends on whether there are zeros, and on whether images can be padded.
        key = (x.shape, kernel.shape, p != 0, 0 <= p <= 255, q if exact() else q != middle)
        return shapes.find(key, x, kernel, zeros)(x, kernel, zeros)

    return run


# ---------------------------------------------------------------- kernels
@table.binder(
    "QuantizedMatMul", T1=dtypes.quint8, T2=BYTES, Toutput=dtypes.qint32, priority=PRIORITY,
    when=worth,
)  # fmt: skip
def matmul(sig: NodeSig) -> Callable[..., Outputs]:
    """The product of two matrices, its sums as 32-bit integers."""
    return _summing(sig, product_sums, Factors(sig, ("a", "b")))


@table.binder(
    "QuantizedConv2D", Tinput=dtypes.quint8, Tfilter=BYTES, out_type=dtypes.qint32,
    priority=PRIORITY, when=worth,
)  # fmt: skip
def conv2d(sig: NodeSig) -> Callable[..., Outputs]:
    """Convolution of images, its sums as 32-bit integers."""
    return _summing(sig, convolution_sums, Factors(sig, ("input", "filter"), strict=False))


def _summing(
    sig: NodeSig, sums_of: Callable[[Summed], Sums], factors: Factors
) -> Callable[..., Outputs]:
    sums, dtype = sums_of(Summed.of(sig)), sig.out_dtypes[0].np

    def run(x: Array, weights: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        found = sums(storage(x), weights, product.zeros).whole()
        return product.result(found.astype(np.int32, copy=False), dtype)

    return run
