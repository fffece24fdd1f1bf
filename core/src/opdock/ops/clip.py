"""Clipping: by value, by norm, and of a list of gradients by their global norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops.arithmetic import maximum_op, minimum_op
from opdock.ops.cast import cast
from opdock.ops.elementary import is_finite_op, rsqrt_op, sqrt_op
from opdock.ops.registry import define_op, get
from opdock.ops.support.common_shapes import unchanged
from opdock.ops.unbroadcast import unbroadcast

__all__ = [
    "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm",
]  # fmt: skip

clip_by_value_op = define_op(
    "ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T", "T: numbertype",
    expr="min(max(t, clip_value_min), clip_value_max)",
)  # fmt: skip
clip_by_value_op.shape(unchanged)


@clip_by_value_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    t, low, high = op.inputs
    zeros = get("ZerosLike")(grad)
    below, above = get("Less")(t, low), get("Greater")(t, high)
    select = get("Select")
    inside = select(get("LogicalOr")(below, above), zeros, grad)
    return [
        inside,
        unbroadcast(select(below, grad, zeros), low, t),
        unbroadcast(select(above, grad, zeros), high, t),
    ]


def _values(t: Any, name: str) -> Any:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=name)


def _like(t: Any, values: Any) -> Any:
    """`values` as IndexedSlices if `t` is."""
    if isinstance(t, IndexedSlices):
        return IndexedSlices(values, t.indices, t.dense_shape)
    return values


def _keeps_shape(before: Tensor, after: Tensor) -> None:
    """ValueError if a clipping argument has broadcast the tensor to another shape."""
    shapes.merge(before.raw_shape, after.raw_shape)


@extensible
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values below `clip_value_min` become it, those above `clip_value_max` become that.

    Args:
        t: a Tensor or IndexedSlices of real numbers.
        clip_value_min: a scalar, or a tensor that broadcasts to the shape of `t`.
        clip_value_max: the same.
        name: a name for the operation.

    Returns:
        A Tensor or IndexedSlices of the type and shape of `t`.

    Raises:
        ValueError: the limits would make the result larger than `t`.
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t, "t")
        low = minimum_op(values, clip_value_max)
        _keeps_shape(values, low)
        clipped = maximum_op(low, clip_value_min, name=scope)
        _keeps_shape(values, clipped)
        return _like(t, clipped)


@extensible
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor down so that its L2 norm is at most `clip_norm`.

    Args:
        t: a Tensor or IndexedSlices of floats.
        clip_norm: a scalar above 0.
        axes: a 1-D vector of the axes over which the norm is taken; all of them if None.
        name: a name for the operation.

    Returns:
        A Tensor or IndexedSlices of the type and shape of `t`.

    Raises:
        ValueError: `clip_norm` would make the result larger than `t`.
    """
    from opdock.ops.reduce import reduce_sum

    select = get("Select")
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t, "t")
        squared: Any = reduce_sum(values * values, axes, keepdims=True)
        # The square root has no finite gradient at 0.
        positive = squared > 0
        safe = select(positive, squared, get("OnesLike")(squared))
        norm = select(positive, sqrt_op(safe), squared)
        scaled = values * clip_norm
        _keeps_shape(values, scaled)
        return _like(t, get("Identity")(scaled / maximum_op(norm, clip_norm), name=scope))


@extensible
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Scales a tensor down so that its L2 norm per element is at most `clip_norm`.

    Args:
        t: a tensor of floats.
        clip_norm: a scalar above 0.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `t`.
    """
    from opdock.ops.array import rank, size
    from opdock.ops.fill import range
    from opdock.ops.reduce import reduce_sum

    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = cast(size(t), dtypes.float32)
        inverse = rsqrt_op(reduce_sum(t * t, range(rank(t))))
        one: Any = constant(1.0)
        scale = minimum_op(inverse * count, one / clip_norm)
        return get("Identity")(t * clip_norm * scale, name=scope)  # type: ignore[no-any-return]


def _check_list(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, (str, bytes)):
        raise TypeError("t_list should be a sequence")
    return list(t_list)


@extensible
def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """The L2 norm of all tensors taken together.

    Args:
        t_list: a list of Tensors, IndexedSlices and None; None is skipped.
        name: a name for the operation.

    Returns:
        A scalar tensor of the tensors' type.

    Raises:
        TypeError: `t_list` is not a sequence.
    """
    from opdock.ops.joining import stack
    from opdock.ops.reduce import reduce_sum

    t_list = _check_list(t_list)
    with name_scope(name, "global_norm", t_list):
        values = [None if t is None else _values(t, f"t_{i}") for i, t in enumerate(t_list)]
        halves = []
        for value in values:
            if value is not None:
                with colocate_with(value):
                    halves.append(get("L2Loss")(value))
        half: Any = reduce_sum(stack(halves))
        twice = half * constant(2.0, dtype=half.dtype)
        return sqrt_op(twice, name="global_norm")  # type: ignore[no-any-return]


@extensible
def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scales all tensors down together so that their global norm is at most `clip_norm`.

    Args:
        t_list: a list of Tensors, IndexedSlices and None.
        clip_norm: a scalar above 0.
        use_norm: the global norm, if it is known already.
        name: a name for the operation.

    Returns:
        (list_clipped, global_norm): the scaled list with None where `t_list` has None, and the norm
        before clipping. If that norm is not finite, every scaled value is NaN.

    Raises:
        TypeError: `t_list` is not a sequence.
    """
    t_list = _check_list(t_list)
    if use_norm is None:
        use_norm = global_norm(t_list, name)
    with name_scope(name, "clip_by_global_norm", [*t_list, clip_norm]) as scope:
        kind = use_norm.dtype.base_dtype if isinstance(use_norm, Tensor) else None
        use_norm = convert_to_tensor(use_norm, dtype=kind)
        kind = use_norm.dtype.base_dtype
        one: Any = constant(1.0, dtype=kind)
        finite_scale = clip_norm * minimum_op(1.0 / use_norm, one / clip_norm)
        scale = get("Select")(
            is_finite_op(use_norm), finite_scale, constant(float("nan"), dtype=kind)
        )
        clipped: list[Any] = []
        for i, t in enumerate(t_list):
            if t is None:
                clipped.append(None)
                continue
            value = _values(t, f"t_{i}")
            with colocate_with(value):
                clipped.append(_like(t, get("Identity")(value * scale, name=f"{scope}_{i}")))
        return clipped, use_norm
