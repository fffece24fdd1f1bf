"""Comparisons, logic of truth values, and the choice between two tensors by a condition."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import ELEMENTWISE, PAIRWISE, explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Elementwise, Fails, OpSpec, ShapeSig, Traits, define_op, get
from opdock.ops.support.common_shapes import broadcast2, merge_all, unchanged
from opdock.ops.unbroadcast import unbroadcast
from opdock.shapes import Shape

__all__ = [
    "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal",
]  # fmt: skip


def _comparison(op: str, expr: str) -> OpSpec:
    spec = define_op(op, "x: T, y: T -> z: bool", "T: realnumbertype", expr=expr)
    spec.shape(broadcast2)
    return spec.not_differentiable()


def _equality(op: str, expr: str) -> OpSpec:
    spec = define_op(
        op, "x: T, y: T -> z: bool",
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, quint8, "
        "qint8, qint32, string, bool, complex128}, incompatible_shape_error: bool = true",
        commutative=True, expr=expr,
    )  # fmt: skip
    spec.shape(_equality_shape)
    return spec.not_differentiable()


def _equality_shape(sig: ShapeSig) -> Shape:
    if sig.attrs["incompatible_shape_error"]:
        return broadcast2(sig)
    try:
        out = broadcast2(sig)
    except ValueError:
        return ()
    # Shapes that turn out not to broadcast give a scalar.
    known = all(shapes.is_fully_defined(s) for s in sig.shapes)
    return out if known else None


def _logical(op: str, expr: str) -> OpSpec:
    spec = define_op(op, "x: bool, y: bool -> z: bool", commutative=True, expr=expr)
    spec.shape(broadcast2)
    return spec.not_differentiable()


less_op = _comparison("Less", "x < y")
less_equal_op = _comparison("LessEqual", "x <= y")
greater_op = _comparison("Greater", "x > y")
greater_equal_op = _comparison("GreaterEqual", "x >= y")
equal_op = _equality("Equal", "x == y")
not_equal_op = _equality("NotEqual", "x != y")
logical_and_op = _logical("LogicalAnd", "x & y")
logical_or_op = _logical("LogicalOr", "x | y")
for _op in (logical_and_op, logical_or_op):
    _op.declare(Traits(commutes=True))
logical_not_op = define_op("LogicalNot", "x: bool -> y: bool", expr="~x").not_differentiable()
logical_not_op.shape(unchanged)
approximate_equal_op = define_op(
    "ApproximateEqual", "x: T, y: T -> z: bool",
    "T: numbertype, tolerance: float = 0.00001", commutative=True,
).not_differentiable()  # fmt: skip
approximate_equal_op.shape(merge_all)

# ---------------------------------------------------------------- choice
# A vector condition chooses whole rows, which is not elementwise: so only SelectV2 has `expr`.
select_op = define_op("Select", "condition: bool, t: T, e: T -> output: T", "T: type")
select_op.declare(Traits(fails=Fails.BY_SHAPE, layout=Elementwise(scalar_or_full=(0,))))
select_v2_op = define_op(
    "SelectV2", "condition: bool, t: T, e: T -> output: T", "T: type",
    expr="where(condition, t, e)",
)  # fmt: skip


@select_op.shape
def _(sig: ShapeSig) -> Shape:
    condition, data = sig.shapes[0], shapes.merge(sig.shapes[1], sig.shapes[2])
    if condition is None or data is None or not condition:
        return data
    if len(condition) != 1 or not data:
        return shapes.merge(data, condition)
    shapes.merge((data[0],), condition)
    return data


@select_v2_op.shape
def _(sig: ShapeSig) -> Shape:
    condition, then, otherwise = sig.shapes
    return shapes.broadcast(condition, shapes.broadcast(then, otherwise))


@select_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    condition = op.inputs[0]
    zeros = get("ZerosLike")(grad)
    return [None, select_op(condition, grad, zeros), select_op(condition, zeros, grad)]


@select_v2_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    condition, then, otherwise = op.inputs
    zeros = get("ZerosLike")(grad)
    result = op.outputs[0]
    return [
        None,
        unbroadcast(select_v2_op(condition, grad, zeros), then, result),
        unbroadcast(select_v2_op(condition, zeros, grad), otherwise, result),
    ]


# ---------------------------------------------------------------- public functions
@extensible
def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x == y`, elementwise, with broadcasting.

    Args:
        x: a tensor of numbers, bools or strings.
        y: a tensor of the same type.
        name: a name for the operation.

    Returns:
        A bool tensor in the broadcast shape.

    Raises:
        TypeError: the types differ.
        ValueError: the shapes do not broadcast (`InvalidArgumentError` at run time).
    """
    return equal_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x != y`, elementwise, with broadcasting; types and errors as `tf.equal`."""
    return not_equal_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x < y`, elementwise, with broadcasting, for real numbers of one type."""
    return less_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x <= y`, elementwise, with broadcasting, for real numbers of one type."""
    return less_equal_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x > y`, elementwise, with broadcasting, for real numbers of one type."""
    return greater_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether `x >= y`, elementwise, with broadcasting, for real numbers of one type."""
    return greater_equal_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether both are true, elementwise, with broadcasting, for bool tensors."""
    return logical_and_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Whether at least one is true, elementwise, with broadcasting, for bool tensors."""
    return logical_or_op(x, y, name=name)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Whether `x` is false, elementwise, for a bool tensor."""
    return logical_not_op(x, name=name)  # type: ignore[no-any-return]


@extensible
@explained(PAIRWISE)
def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Whether exactly one is true, elementwise, with broadcasting, for bool tensors."""
    return logical_and_op(  # type: ignore[no-any-return]
        logical_or_op(x, y), logical_not_op(logical_and_op(x, y)), name=name
    )
