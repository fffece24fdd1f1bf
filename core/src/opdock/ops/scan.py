"""Scans: running sums, products and log-sum-exps along one dimension."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.compare import greater, less
from opdock.ops.complex import conj
from opdock.ops.elementary import exp, log
from opdock.ops.registry import OpSpec, define_op
from opdock.ops.select import where
from opdock.ops.support import common_shapes

__all__ = ["cumprod", "cumsum"]


def _define(name: str, types: str) -> OpSpec:
    return define_op(
        name, "x: T, axis: Tidx -> out: T",
        "exclusive: bool = false, reverse: bool = false, "
        f"T: {types}, Tidx: {{int32, int64}} = DT_INT32",
    )  # fmt: skip


cumsum_op = _define("Cumsum", "numbertype")
cumprod_op = _define("Cumprod", "numbertype")
cumulative_logsumexp_op = _define("CumulativeLogsumexp", "{half, float, double}")

for _op in (cumsum_op, cumprod_op, cumulative_logsumexp_op):
    _op.shape(common_shapes.unchanged)


@cumsum_op.gradient
def _cumsum_grad(op: Operation, grad: Any) -> list[Any]:
    # An element adds to every later total, so its gradient is the scan from the other end.
    back = not op.attrs["reverse"]
    return [cumsum(grad, op.inputs[1], exclusive=op.attrs["exclusive"], reverse=back), None]


@cumprod_op.gradient
def _cumprod_grad(op: Operation, grad: Any) -> list[Any]:
    x, axis = op.inputs
    exclusive, reverse = op.attrs["exclusive"], op.attrs["reverse"]
    product = cumprod(x, axis, exclusive=exclusive, reverse=reverse)
    out = cumsum(conj(product) * grad, axis, exclusive=exclusive, reverse=not reverse)
    return [out / conj(x), None]


@cumulative_logsumexp_op.gradient
def _cumulative_logsumexp_grad(op: Operation, grad: Any) -> list[Any]:
    x, axis = op.inputs
    total = op.outputs[0]
    exclusive, back = op.attrs["exclusive"], not op.attrs["reverse"]
    lowest = grad * 0 + grad.dtype.min
    # The logarithm takes positive numbers only: both signs are summed apart.
    positive = where(greater(grad, 0.0), log(grad), lowest)
    negative = where(less(grad, 0.0), log(-grad), lowest)
    parts = [
        exp(cumulative_logsumexp(part - total, axis, exclusive=exclusive, reverse=back) + x)
        for part in (positive, negative)
    ]
    return [parts[0] - parts[1], None]


@extensible
def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along a dimension: [a, a + b, a + b + c].

    Args:
        x: a tensor of a numeric type.
        axis: the dimension, a scalar int32 from -rank to rank - 1.
        exclusive: leave the element itself out: [0, a, a + b].
        reverse: run from the end: [a + b + c, b + c, c].
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    with name_scope(name, "Cumsum", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumsum_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)  # type: ignore[no-any-return]


@extensible
def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along a dimension: [a, a * b, a * b * c].

    Args:
        x: a tensor of a numeric type.
        axis: the dimension, a scalar int32 from -rank to rank - 1.
        exclusive: leave the element itself out: [1, a, a * b].
        reverse: run from the end: [a * b * c, b * c, c].
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`. Its gradient divides by `x`, so it is NaN at zeros.
    """
    with name_scope(name, "Cumprod", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumprod_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)  # type: ignore[no-any-return]


@extensible
def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running log(sum(exp)) along a dimension, without overflow.

    Args:
        x: a floating-point tensor.
        axis: the dimension, a scalar int32 from -rank to rank - 1.
        exclusive: leave the element itself out; the first result is the type's lowest number.
        reverse: run from the end.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return cumulative_logsumexp_op(x, axis, exclusive=exclusive, reverse=reverse, name=scope)  # type: ignore[no-any-return]
