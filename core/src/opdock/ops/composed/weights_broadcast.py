"""Which weights go with which values: a scalar, or the same rank with each dimension 1 or equal."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.constant_value import known_shape
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.support.nn_util import emit
from opdock.shapes import Shape, TensorShape

_PREFIX = "weights can not be broadcast to values."


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An op that fails unless `weights` is a scalar or fits `values` dimension by dimension.

    Stricter than NumPy's broadcasting: the ranks must be equal, so a mistake in a batch dimension
    does not go unnoticed.

    Args:
        weights: a tensor.
        values: a tensor.

    Returns:
        An op to depend on; a no-op when the static shapes settle the question.

    Raises:
        ValueError: the static shapes do not fit.
    """
    with name_scope(None, "assert_broadcastable", [weights, values]):
        weights = convert_to_tensor(weights, name="weights")
        values = convert_to_tensor(values, name="values")
        with name_scope(None, "weights", [weights]):
            weights_shape = emit("Shape", weights, name="shape")
        values_shape = emit("Shape", values, name="values/shape")
        static = known_shape(weights_shape)
        wanted = known_shape(values_shape)
        if static is not None and not static:
            return emit("NoOp", name="static_scalar_check_success")  # type: ignore[no-any-return]
        if static is not None and wanted is not None and _fits(static, wanted):
            return emit("NoOp", name="static_dims_check_success")  # type: ignore[no-any-return]
        return _check_at_run_time(weights, values, weights_shape, values_shape)


def _fits(static: Shape, wanted: Shape) -> bool:
    """Whether the fit is certain; ValueError when a misfit is."""
    static, wanted = static or (), wanted or ()
    text = f"values.shape={TensorShape(wanted)}. weights.shape={TensorShape(static)}."
    if len(static) != len(wanted):
        raise ValueError(f"{_PREFIX} values.rank={len(wanted)}. weights.rank={len(static)}. {text}")
    for w, v in zip(static, wanted, strict=True):
        if w is not None and v is not None and w not in (1, v):
            raise ValueError(f"{_PREFIX} Mismatch at dim. {text}")
    return all(w == 1 or (w is not None and w == v) for w, v in zip(static, wanted, strict=True))


def _check_at_run_time(
    weights: Tensor, values: Tensor, weights_shape: Tensor, values_shape: Tensor
) -> Operation:
    weights_rank, values_rank = emit("Size", weights_shape), emit("Size", values_shape)
    common = emit("ExpandDims", emit("Minimum", weights_rank, values_rank), 0)
    w = emit("Slice", weights_shape, [0], common)
    v = emit("Slice", values_shape, [0], common)
    dims = emit("All", emit("LogicalOr", emit("Equal", w, 1), emit("Equal", w, v)), [0])
    same_rank = emit("Equal", weights_rank, values_rank)
    is_scalar = emit("Equal", weights_rank, 0, name="is_scalar")
    valid = emit("LogicalOr", is_scalar, emit("LogicalAnd", same_rank, dims))
    data = [
        _PREFIX, "weights.shape=", weights.name, weights_shape, "values.shape=", values.name,
        values_shape, "is_scalar=", is_scalar,
    ]  # fmt: skip
    return emit("Assert", valid, data)  # type: ignore[no-any-return]


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """`weights` repeated to the shape of `values`.

    Args:
        weights: a tensor that `assert_broadcastable` accepts.
        values: a tensor.

    Returns:
        A tensor of the shape of `values`.

    Raises:
        ValueError: the static shapes do not fit.
    """
    with name_scope(None, "broadcast_weights", [weights, values]) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, dtype=values.dtype.base_dtype, name="weights")
        static, wanted = weights.raw_shape, values.raw_shape
        if static is not None and static == wanted and None not in static:
            return weights  # type: ignore[no-any-return]
        with control_dependencies([assert_broadcastable(weights, values)]):
            return emit("Mul", weights, emit("OnesLike", values), name=scope)  # type: ignore[no-any-return]
