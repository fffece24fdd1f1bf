"""Kernels of chains of 8-bit ops: bytes in, bytes out, and no wider tensor between.

They compute what the single ops compute, in every bit: each rounds where its op does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes, errors
from opdock_cpu.int8 import ByEnds, Factors, Outputs
from opdock_cpu.kernels.quantize import requested, used
from opdock_cpu.kernels.quantized import Addends, BiasSummands, bias_summands, check_bias
from opdock_cpu.narrowing import Narrowing
from opdock_cpu.onednn.kernels.common import PRIORITY, Array
from opdock_cpu.onednn.kernels.quantized import Summed, Sums, convolution_sums, product_sums
from opdock_cpu.onednn.narrowed_fusions import CHAINS, Chain
from opdock_cpu.onednn.packing import Kept
from opdock_cpu.onednn.stays import kept_of
from opdock_cpu.ranges import F32, Range, clamped, integers, storage
from opdock_cpu.sums32 import Sums32

__all__ = ["table"]

table = KernelTable()

_BYTE: Final = integers(np.uint8)
_LIMITS: Final = {"": None, "QuantizedRelu": None, "QuantizedRelu6": F32(6)}


class Wide(NamedTuple):
    """Integers of 32 bits, perhaps not yet made.

    Attributes:
        range: what the lowest and the highest of 32 bits stand for.
        made: the integers, from which their range is measured.
        narrowed: the bytes that a `Narrowing` makes of them.
        sums: they themselves, where they are those of products.
    """

    range: Range
    made: Callable[[], Array]
    narrowed: Callable[[Narrowing], Array]
    sums: Sums32 | None = None


Source = Callable[..., Wide]
"""From the first op's inputs."""


# ---------------------------------------------------------------- where sums come from
def _product(sig: NodeSig, sums: Sums, factors: Factors) -> Source:
    def run(x: Array, weights: Array, *ends: Array) -> Wide:
        product = factors(ends)
        found = sums(storage(x), weights, product.zeros)
        ends_of_sums = product.low, product.high
        return Wide(ends_of_sums, found.whole, found.narrowed, found)

    return run


def _bias(sig: NodeSig) -> Source:
    def run(x: Array, bias: Array, *ends: Array) -> Wide:
        check_bias(x, bias)
        found, data = bias_summands(np.uint8, storage(bias), ends), storage(x)
        return Wide(
            (F32(-found.spread), found.spread),
            lambda: found.every[data] + found.bias,
            lambda narrow: narrow.biased(data, found.every, found.bias),
        )

    return run


def _sum(sig: NodeSig) -> Source:
    def run(x: Array, y: Array, *ends: Array) -> Wide:
        if x.shape != y.shape or x.size == 1:
            raise errors.UnimplementedError(
                None, None, f"a sum of {list(x.shape)} and {list(y.shape)} is not elementwise"
            )
        found, a, b = Addends.read(ends), storage(x), storage(y)
        every_a, every_b = found.every()
        return Wide(
            (F32(-found.spread), found.spread),
            lambda: every_a[a] + every_b[b],
            lambda narrow: narrow.added(a, b, every_a, every_b),
        )

    return run


def _source(sig: NodeSig, op: str) -> Source:
    attrs = sig.attrs["source"]
    kept = 1 in kept_of(attrs) or sig.const(1) is not None
    asked = Summed(attrs, sig.in_dtypes[1] == dtypes.quint8, kept)
    if op == "QuantizedConv2D":
        factors = Factors(sig, ("input", "filter"), strict=False)
        return _product(sig, convolution_sums(asked), factors)
    if op == "QuantizedMatMul":
        return _product(sig, product_sums(asked), Factors(sig, ("a", "b")))
    return _bias(sig) if op == "QuantizedBiasAdd" else _sum(sig)


# ---------------------------------------------------------------- what becomes of them
def _active(narrow: Narrowing, ends: Range, activation: str) -> Narrowing:
    """The same with an activation behind it, which bounds the bytes."""
    if not activation:
        return narrow
    least, limit = clamped(F32(0), *ends, _BYTE), _LIMITS[activation]
    most = 255 if limit is None else clamped(limit, *ends, _BYTE)
    return replace(narrow, least=least, most=max(most, 0))


def _chain(sig: NodeSig, chain: Chain) -> Callable[..., Outputs]:
    source, dtype = _source(sig, chain.source), sig.out_dtypes[0].np
    twice = _twice(sig.const(8) is not None, chain) if chain.biased else None

    def narrow_between(ends: Sequence[Array]) -> tuple[Narrowing, Range]:
        target = requested(*ends[2:])
        narrow = Narrowing.between((F32(ends[0]), F32(ends[1])), target)
        return _active(narrow, target, chain.activation), target

    narrowing = ByEnds(narrow_between)

    def narrowed(wide: Wide, args: Sequence[Array]) -> tuple[Array, Range]:
        if twice is not None:
            return twice(wide, args)
        if chain.measured:
            sums = wide.made()
            ends = used(sums, *wide.range)
            narrow = _active(Narrowing.between(wide.range, ends), ends, chain.activation)
            return wide.narrowed(narrow), ends
        narrow, ends = narrowing((*map(np.asarray, wide.range), *args))
        return wide.narrowed(narrow), ends

    def run(*args: Array) -> Outputs:
        out, ends = narrowed(source(*args[:6]), args[6:])
        return out.view(dtype), np.asarray(ends[0]), np.asarray(ends[1])

    return run


class _Twice(NamedTuple):
    """How sums become bytes, and these bytes others, behind a bias.

    Attributes:
        first, then: make them.
        found: the bias, and the bytes in its scale.
        ends: of the last range.
    """

    first: Narrowing
    then: Narrowing
    found: BiasSummands
    ends: Range


def _twice(
    stays: bool, chain: Chain
) -> Callable[[Wide, Sequence[Array]], tuple[Array, Range]]:  # fmt: skip
    """The bytes of sums with a bias behind, from what follows the first op's inputs.

    Args:
        stays: whether the bias is the same in all steps.
        chain: what is computed.
    """

    def work_out(bias: Array, ends: Sequence[Array]) -> _Twice:
        low, high, *rest = ends
        first, last = requested(*rest[:2]), requested(*rest[4:])
        found = bias_summands(np.uint8, storage(bias), (*map(np.asarray, first), *rest[2:4]))
        narrow = Narrowing.between((F32(-found.spread), found.spread), last)
        before = Narrowing.between((F32(low), F32(high)), first)
        return _Twice(before, _active(narrow, last, chain.activation), found, last)

    def given(bias: Array) -> Callable[[Sequence[Array]], _Twice]:
        return functools.partial(work_out, bias)

    by_bias = Kept(lambda bias: ByEnds(given(bias))) if stays else given

    def run(wide: Wide, args: Sequence[Array]) -> tuple[Array, Range]:
        low, high, bias, *others = args
        sums = wide.sums
        assert sums is not None
        check_bias(sums.values, bias)
        how = by_bias(bias)((*map(np.asarray, wide.range), low, high, *others))
        out = sums.narrowed_twice(how.first, how.then, how.found.every, how.found.bias)
        return out, how.ends

    return run


def _when(sig: NodeSig) -> bool | str:
    return sig.out_dtypes[0] == dtypes.quint8 or "it computes quint8 only"


for _one in CHAINS:
    table.binder(_one.op, priority=PRIORITY, when=_when)(functools.partial(_chain, chain=_one))
