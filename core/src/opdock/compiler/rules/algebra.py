"""Algebra: cheaper ops for the same result."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rule, Rules, Site, constant, keeps, known, uniform
from opdock.compiler.rules.simplify import holds
from opdock.dtypes import DType, as_dtype


def _pow(node: Node, site: Site) -> Value | None:
    """Squares and inverses as powers; the square is rounded once, which a power need not be."""
    x, exponent = node.inputs[0], uniform(node.inputs[1])
    dtype = node.out_dtypes[0]
    if exponent is None or not keeps(node, x):
        return None
    if exponent == 2:
        return site.make("Square", [x], {"T": dtype})
    if exponent == -1 and dtype.is_floating:
        return site.make("Reciprocal", [x], {"T": dtype})
    return None


def _divide(node: Node, site: Site) -> Value | None:
    """Division by a power of two is multiplication by its inverse, to the bit."""
    x, divisor = node.inputs[0], constant(node.inputs[1])
    dtype = node.out_dtypes[0]
    if divisor is None or divisor.size != 1 or not dtype.is_floating or not keeps(node, x):
        return None
    if not _exact_inverse(float(divisor.reshape(())), dtype):
        return None
    inverse = site.const(1 / divisor.astype(np.float64), dtype, "/inverse")
    return site.make("Mul", [x, inverse], {"T": dtype}, shape=node.out_shapes[0])


def _exact_inverse(number: float, dtype: DType) -> bool:
    mantissa, exponent = np.frexp(number)
    # Wide inside the range of the type: neither the number nor its inverse is subnormal.
    limit = 12 if dtype.name == "float16" else 120
    return bool(abs(mantissa) == 0.5 and abs(int(exponent)) <= limit)


def _opposite(other: str, commutes: bool) -> Rule:
    """Adding the opposite subtracts, and the other way round."""

    def rule(node: Node, site: Site) -> Value | None:
        if not _real(node):
            return None
        a, b = node.inputs
        negated = site.source(b, "Neg")
        if negated is None and commutes:
            negated, a = site.source(a, "Neg"), b
        if negated is None:
            return None
        inputs = [a, negated.inputs[0]]
        return site.make(other, inputs, {"T": node.attrs["T"]}, shape=node.out_shapes[0])

    return rule


def _sign_lost(node: Node, site: Site) -> Value | None:
    """What is blind to the sign of its input does not need it changed before."""
    inner = site.source(node.inputs[0], "Neg", "Abs")
    if inner is None or not _real(node) or inner.out_dtypes[0] is not inner.inputs[0].dtype:
        return None
    return site.make(node.op, [inner.inputs[0]], dict(node.attrs), shape=node.out_shapes[0])


def _real(node: Node) -> bool:
    return node.out_dtypes[0].is_floating or node.out_dtypes[0].is_integer


def _select_rows(node: Node, site: Site) -> Value | None:
    """A choice of whole rows is one of elements, by a condition that broadcasts: those fuse."""
    condition, x, y = node.inputs
    shape, rows = known(node.out_shapes[0]), known(condition.shape)
    if shape is None or len(shape) < 2 or rows != shape[:1] or not keeps(node, x):
        return None
    column = site.make(
        "Reshape", [condition, site.ints([*rows, *[1] * (len(shape) - 1)], "/column/shape")],
        {"T": condition.dtype, "Tshape": as_dtype("int32")}, dtype=condition.dtype,
        suffix="/column",
    )  # fmt: skip
    return site.make("SelectV2", [column, x, y], {"T": node.attrs["T"]}, shape=shape)


_NEGATED: Final = {"Equal": "NotEqual", "NotEqual": "Equal"}


def _not(node: Node, site: Site) -> Value | None:
    """Only equality has a negation that holds for NaN too."""
    inner = site.source(node.inputs[0], *_NEGATED)
    if inner is None:
        return None
    return site.make(_NEGATED[inner.op], list(inner.inputs), dict(inner.attrs))


def _cast(node: Node, site: Site) -> Value | None:
    """A detour over a type that holds every value of the first."""
    inner = site.source(node.inputs[0], "Cast")
    if inner is None or inner.attrs["Truncate"] or node.attrs["Truncate"]:
        return None
    first, middle, last = inner.inputs[0].dtype, inner.out_dtypes[0], node.out_dtypes[0]
    # What a float becomes that the integer cannot hold depends on the float's type.
    alike = (first.is_floating and last.is_floating) or (
        (first.is_integer or first.is_bool) and (last.is_integer or last.is_floating)
    )
    if middle.is_floating and last.is_integer and not holds(last, first):
        alike = False
    if not alike or not holds(middle, first):
        return None
    attrs = {"SrcT": first, "DstT": last, "Truncate": False}
    return site.make("Cast", [inner.inputs[0]], attrs, shape=node.out_shapes[0])


def _reduce(node: Node, site: Site) -> Value | None:
    """A reduction of a reduction, where the order of the elements does not matter to the bit."""
    inner = site.source(node.inputs[0], node.op)
    if inner is None or inner.attrs.get("keep_dims") != node.attrs.get("keep_dims"):
        return None
    if node.op in ("Sum", "Prod") and not node.out_dtypes[0].is_integer:
        return None
    return merged_reduction(node, site, inner)


def merged_reduction(node: Node, site: Site, inner: Node) -> Value | None:
    """One reduction over the axes of both."""
    shape = inner.inputs[0].shape
    first, second = constant(inner.inputs[1]), constant(node.inputs[1])
    if shape is None or first is None or second is None:
        return None
    rank, keep = len(shape), bool(node.attrs["keep_dims"])
    gone = {int(a) % rank for a in first.reshape(-1)}
    left = list(range(rank)) if keep else [a for a in range(rank) if a not in gone]
    axes = sorted(gone | {left[int(a)] for a in second.reshape(-1)})
    attrs: dict[str, Any] = {**node.attrs, "Tidx": as_dtype("int32")}
    inputs = [inner.inputs[0], site.ints(axes, "/axes")]
    return site.make(node.op, inputs, attrs, shape=node.out_shapes[0])


RULES: Final[Rules] = {
    "Pow": (_pow,),
    "Div": (_divide,),
    "RealDiv": (_divide,),
    "Add": (_opposite("Sub", True),),
    "AddV2": (_opposite("Sub", True),),
    "Sub": (_opposite("AddV2", False),),
    "Abs": (_sign_lost,),
    "Square": (_sign_lost,),
    "LogicalNot": (_not,),
    "Select": (_select_rows,),
    "Cast": (_cast,),
    **dict.fromkeys(("Sum", "Prod", "Max", "Min", "All", "Any"), (_reduce,)),
}
