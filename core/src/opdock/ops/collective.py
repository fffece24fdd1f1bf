"""Values of a group of devices as one, which each of them gets: over the tasks of a cluster, too.

Each member of a group has an op of its own, in its own program or in one that all share. Group and
instance are numbers on which their programs have agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import unchanged
from opdock.shapes import Shape, TensorShape

__all__ = ["all_gather", "all_reduce", "broadcast_recv", "broadcast_send"]

_T = "T: {float, half, double, int32, int64}"
_GROUP = "group_size: int, group_key: int, instance_key: int"
_HINT = "communication_hint: string = 'auto'"

reduce_op = define_op(
    "CollectiveReduce", "input: T -> data: T",
    f"{_T}, {_GROUP}, merge_op: {{'Min', 'Max', 'Mul', 'Add'}}, final_op: {{'Id', 'Div'}}, "
    f"subdiv_offsets: list(int), wait_for: list(int) = [], {_HINT}",
    stateful=True,
)  # fmt: skip
gather_op = define_op(
    "CollectiveGather", "input: T -> data: T", f"{_T}, {_GROUP}, shape: shape, {_HINT}",
    stateful=True,
)  # fmt: skip
send_op = define_op(
    "CollectiveBcastSend", "input: T -> data: T", f"{_T}, {_GROUP}, shape: shape, {_HINT}",
    stateful=True,
)  # fmt: skip
receive_op = define_op(
    "CollectiveBcastRecv", "-> data: T", f"{_T}, {_GROUP}, shape: shape, {_HINT}", stateful=True
)
for _op in (reduce_op, gather_op, send_op, receive_op):
    _op.declare(Traits(effect=True, blocks=True, cost=Cost.WAIT, fold=False, merge=False))
    _op.not_differentiable()

reduce_op.shape(unchanged)


@gather_op.shape
def _rows_of_all(sig: ShapeSig) -> list[Shape]:
    own = shapes.with_rank_at_least(sig.shapes[0], 1)
    if own is None:
        return [None]
    rows = None if own[0] is None else own[0] * sig.attrs["group_size"]
    return [(rows, *own[1:])]


@send_op.shape
@receive_op.shape
def _as_told(sig: ShapeSig) -> list[Shape]:
    return [sig.attrs["shape"]]


# ---------------------------------------------------------------- public functions
def all_reduce(
    t: Tensor, group_size: int, group_key: int, instance_key: int, merge_op: str, final_op: str,
    subdiv_offsets: Sequence[int] = (0,), communication_hint: str = "auto",
) -> Tensor:  # fmt: skip
    """The values of a group's members as one.

    Args:
        t: this member's value, of which the device is known.
        group_size: how many members there are, at least two.
        group_key: the group.
        instance_key: which of the group's ops belong together.
        merge_op: "Add", "Mul", "Min" or "Max".
        final_op: "Id", or "Div" for the result divided by the number of members.
        subdiv_offsets: where TF would divide the value; the result is the same.
        communication_hint: by which way TF would go.

    Raises:
        ValueError: the device of `t` is not known, or a member is alone.
    """
    _check_group(t, group_size, "all_reduce")
    result: Tensor = reduce_op(
        t, group_size=group_size, group_key=group_key, instance_key=instance_key,
        merge_op=merge_op, final_op=final_op, subdiv_offsets=list(subdiv_offsets),
        communication_hint=communication_hint,
    )  # fmt: skip
    return result


def all_gather(
    t: Tensor, group_size: int, group_key: int, instance_key: int, communication_hint: str = "auto"
) -> Tensor:
    """The values of a group's members, one after the other along the first dimension.

    Args:
        t: this member's value, of which the device is known.
        group_size, group_key, instance_key, communication_hint: as for `all_reduce`.

    Raises:
        ValueError: the device of `t` is not known, or a member is alone.
    """
    _check_group(t, group_size, "all_gather")
    result: Tensor = gather_op(
        t, shape=[0], group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint,
    )  # fmt: skip
    return result


def broadcast_send(
    t: Tensor, shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int,
    communication_hint: str = "auto",
) -> Tensor:  # fmt: skip
    """Gives a value to all other members of a group.

    Args:
        t: the value, of which the device is known.
        shape, dtype: those of `t`.
        group_size, group_key, instance_key, communication_hint: as for `all_reduce`.

    Returns:
        The value.

    Raises:
        ValueError: the device of `t` is not known, its shape or type is another, or a member is
            alone.
    """
    _check_group(t, group_size, "broadcast_send")
    if t.shape != TensorShape(shape):
        raise ValueError("Shape of broadcast_send tensor not equal to delcared shape")
    if t.dtype != dtype:
        raise ValueError("Type of broadcast_send tensor not equal to declared type")
    result: Tensor = send_op(
        t, shape=shape, group_size=group_size, group_key=group_key, instance_key=instance_key,
        communication_hint=communication_hint,
    )  # fmt: skip
    return result


def broadcast_recv(
    shape: Any, dtype: Any, group_size: int, group_key: int, instance_key: int,
    communication_hint: str = "auto",
) -> Tensor:  # fmt: skip
    """The value that a member of a group gives to all others.

    Args:
        shape, dtype: those of the value.
        group_size, group_key, instance_key, communication_hint: as for `all_reduce`.

    Raises:
        ValueError: a member is alone.
    """
    _check_size(group_size, "broadcast_send")
    result: Tensor = receive_op(
        shape=shape, T=dtype, group_size=group_size, group_key=group_key,
        instance_key=instance_key, communication_hint=communication_hint,
    )  # fmt: skip
    return result


def _check_group(t: Tensor, group_size: int, function: str) -> None:
    if not t.device:
        raise ValueError("Device assignment required for collective ops")
    _check_size(group_size, function)


def _check_size(group_size: int, function: str) -> None:
    if group_size <= 1:
        raise ValueError(f"Parameter group_size to {function} must be at least 2.")
