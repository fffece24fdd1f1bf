"""Matrix product primitives; transposed factors are strides.

Large products are computed in parts: bands of rows or of columns, or some of a batch each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opdock_cpu.onednn.declarations import Arg, Query, Type
from opdock_cpu.onednn.memory import Desc, aligned, any_layout, cut, dense, strided
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.parts import Part, Parts, divides, evenly
from opdock_cpu.onednn.primitive import Attributes, Plan, Primitive, as_buffer, reorder

__all__ = ["Factors", "laid_out", "matrices", "multiplied", "product"]

_NARROW: Final = 64
"""Rows or columns of a band, at the least."""
_WIDE: Final = 256
"""The same where every band reads a factor that is too large for a core's own cache."""
_TALL: Final = 512
"""The same where the first factor is transposed and its rows are `_FAR` apart: for less, oneDNN's
gemm reads it as it lies, and takes three times as long."""
_FAR: Final = 1024
_CACHE: Final = 1 << 18
"""Elements of such a factor."""


def matrices(shape: Sequence[int], transposed: bool, kind: int = Type.F32) -> Desc:
    """A contiguous array of matrices, each seen transposed or as it is."""
    *batch, rows, columns = shape
    if not transposed:
        return dense(shape, kind)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(batch))]
    return strided((*batch, columns, rows), (*strides, 1, columns), kind)


def product(
    a: Desc, b: Desc, out: Desc, bias: Desc | None = None,
    post_ops: Sequence[tuple[Any, ...]] = (), extra: Sequence[tuple[int, Desc]] = (),
    count: int | None = None, packed: bool = False,
) -> Primitive:  # fmt: skip
    """A primitive over (a, b[, bias], out, *extra): out = a @ b + bias, then the post-ops.

    With `packed` the primitive chooses the layout of `b`.
    """
    attributes = Attributes(post_ops) if post_ops else None
    weights = any_layout(b.dims, b.kind) if packed else b
    plan = Plan("matmul", a, weights, bias, out, attributes, count=count)
    args = [(Arg.SRC, a), (Arg.WEIGHTS, plan.desc(Query.WEIGHTS) if packed else b)]
    if bias is not None:
        args.append((Arg.BIAS, bias))
    args.append((Arg.DST, out))
    return Primitive(plan, [*args, *extra])


# ---------------------------------------------------------------- products in parts
@dataclass(frozen=True)
class Factors:
    """What a product takes and gives, in plain layouts: `out = a @ b + bias`, then the post-ops."""

    a: Desc
    b: Desc
    out: Desc
    bias: Desc | None = None
    post_ops: Sequence[tuple[Any, ...]] = ()

    @property
    def plain(self) -> list[Desc]:
        """The layouts, in the order of a call."""
        return [self.a, self.b, *([] if self.bias is None else [self.bias]), self.out]

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return math.prod(self.out.dims) * self.a.dims[-1]

    def primitive(self, count: int | None, packed: bool = False) -> Primitive:
        """What computes it at once."""
        return product(self.a, self.b, self.out, self.bias, self.post_ops, (), count, packed)

    def _bands(self) -> tuple[tuple[int | None, ...], list[int]]:
        """Along which axis of each argument it is divided, if at all, and into which sizes."""
        if len(self.out.dims) > 2:
            leads = {d.dims[:-2] for d in self.plain}
            sizes = evenly(self.out.dims[0], self.macs)
            return (0, 0, 0), sizes if len(leads) == 1 and len(self.out.dims) == 3 else [1]
        rows, columns = self.out.dims
        across = columns >= rows
        # A transposed factor is dear to read, so that each band had better read a part of it only.
        transposed = [d.strides[0] == 1 for d in (self.a, self.b)]
        own = columns if transposed[1] else rows
        if transposed[0] != transposed[1] and own >= 2 * _NARROW:
            across = transposed[1]
        long, short = (columns, rows) if across else (rows, columns)
        least = _WIDE if self.a.dims[1] * short > _CACHE else _NARROW
        if transposed[0] and self.a.strides[1] >= _FAR:
            least = _TALL
        sizes = evenly(long, self.macs, least)
        bias = [] if self.bias is None else [1 if across else None]
        return ((None, 1, *bias, 1) if across else (0, None, *bias, 0)), sizes

    def parts(self, packed: bool = False) -> list[tuple[Part, Factors]]:
        """The parts, of which each takes `b` as it is or, packed, as its primitive wants it."""
        if any(isinstance(v, Desc) for op in self.post_ops for v in op):
            return []
        axes, sizes = self._bands()
        if len(sizes) == 1 or divides():
            return []
        made: dict[int, tuple[Primitive, Factors]] = {}
        parts, start = [], 0
        for size in sizes:
            cuts = [
                (d, 0) if axis is None else cut(d, axis, start, size)
                for d, axis in zip(self.plain, axes, strict=True)
            ]
            if size not in made:
                a, b, *bias, out = (d for d, _ in cuts)
                own = Factors(a, b, out, bias[0] if bias else None, self.post_ops)
                made[size] = (own.primitive(1, packed), own)
            primitive, own = made[size]
            parts.append((Part(primitive, tuple(at for _, at in cuts)), own))
            start += size
        return parts


def multiplied(factors: Factors, count: int | None) -> Callable[..., None]:
    """What computes a product, over (a, b[, bias], out).

    Args:
        factors: what it takes and gives.
        count: the number of threads where it is not divided, None for all.
    """
    parts = factors.parts()
    return Parts([p for p, _ in parts]).run if parts else factors.primitive(count).run


class _Bands:
    """A product in parts, the second factor of each laid out as its primitive wants it.

    Takes the place of a `Call`.
    """

    def __init__(self, parts: Sequence[tuple[Part, Factors]]) -> None:
        self._copies: list[tuple[int, Primitive, int, int]] = []
        laid: list[Part] = []
        end = 0
        for part, own in parts:
            wanted = part.primitive.args[1][1]
            place = part.offsets[1]
            if laid and place == 0:
                # All parts read the same factor, of which one copy serves.
                laid.append(Part(part.primitive, (part.offsets[0], 0, *part.offsets[2:])))
                continue
            self._copies.append((place, reorder(own.b, wanted, 1), end, wanted.size))
            laid.append(Part(part.primitive, (part.offsets[0], end, *part.offsets[2:])))
            end += -(-wanted.size // 64) * 64
        self._size = end
        self._parts = Parts(laid)

    def lays_out(self, index: int) -> bool:
        """Whether an input has a layout of its own: the second factor has."""
        return index == 1

    def keep(self, index: int) -> Callable[[Any], Any]:
        """What lays the second factor out."""

        def pack(array: Any) -> Any:
            flat, buffer = as_buffer(array).reshape(-1).view("u1"), aligned(self._size)
            for place, copy, start, size in self._copies:
                copy.run(flat[place:], buffer[start : start + size])
            return buffer

        return pack

    def bind(self) -> Callable[..., None]:
        """The function to call with one array an argument."""
        return self._parts.run


def laid_out(factors: Factors, count: int | None) -> Call | _Bands:
    """The same as `multiplied`, with the second factor in the layout that is best for it."""
    parts = factors.parts(packed=True)
    if parts and _one_layout(factors, parts):
        return _Bands(parts)
    plain = factors.plain
    return Call(factors.primitive(count, packed=True), plain, [len(plain) - 1])


def _one_layout(factors: Factors, parts: Sequence[tuple[Part, Factors]]) -> bool:
    """Whether parts that read the same factor want it laid out equally."""
    first = parts[0][0].primitive.args[1][1]
    shared = parts[0][1].b.dims == factors.b.dims
    return not shared or all(p.primitive.args[1][1].same(first) for p, _ in parts)
