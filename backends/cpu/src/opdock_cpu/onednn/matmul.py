"""Matrix product primitives; transposed factors are strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opdock_cpu.onednn.declarations import Arg, Query, Type
from opdock_cpu.onednn.memory import Desc, any_layout, dense, strided
from opdock_cpu.onednn.primitive import Attributes, Plan, Primitive

__all__ = ["matrices", "product"]


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
