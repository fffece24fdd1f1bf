"""Members of groups meet at a place that the session knows, with their values in host memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

__all__ = ["together"]

_MERGE: Final[dict[str, Any]] = {
    "Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum,
}  # fmt: skip
_GATHER: Final = "Gather"
_BROADCAST: Final = "Broadcast"


def together(how: str, values: Sequence[np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any]:
    """What the members of a group get for their values.

    Args:
        how: "Gather", "Broadcast", or how to merge and to end, "Add/Div".
        values: those of the members, in order; None of those that only receive.

    Raises:
        InvalidArgumentError: the values do not fit each other.
    """
    given = [v for v in values if v is not None]
    alike = {(v.dtype, v.shape) for v in given}
    if len(alike) > 1 or (how == _BROADCAST) != (len(given) == 1):
        told = ", ".join(f"{v.dtype} {list(v.shape)}" for v in given)
        raise errors.InvalidArgumentError(
            None, None, f"Shape mismatch in a group of {len(values)}, whose values are {told}"
        )
    if how == _BROADCAST:
        return given[0]
    if how == _GATHER:
        return np.concatenate(given)
    merge, _, final = how.partition("/")
    total = functools.reduce(_MERGE[merge], given)
    if final == "Div":
        divide = np.floor_divide if total.dtype.kind == "i" else np.divide
        total = divide(total, total.dtype.type(len(given)))
    return np.asarray(total)


def _meeting(sig: NodeSig, how: str) -> Callable[..., Any]:
    attrs, resources = sig.attrs, sig.resources
    assert resources is not None
    key = attrs["group_key"], attrs["instance_key"]

    def meet(*values: Any) -> Any:
        value = np.array(values[0]) if values else None  # the others may look at it for longer
        return resources.meet(key, sig.name, attrs["group_size"], how, value)

    return meet


@portable("CollectiveReduce", host_inputs=("input",), host_outputs=("data",))
def reduce(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """What all members have, merged."""
    return _meeting(sig, f"{sig.attrs['merge_op']}/{sig.attrs['final_op']}")


@portable("CollectiveGather", host_inputs=("input",), host_outputs=("data",))
def gather(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """What all members have, in a row."""
    return _meeting(sig, _GATHER)


@portable("CollectiveBcastSend", host_inputs=("input",), host_outputs=("data",))
def send(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """What this member gives to all."""
    return _meeting(sig, _BROADCAST)


@portable("CollectiveBcastRecv", host_outputs=("data",))
def receive(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """What another member gives to all."""
    return _meeting(sig, _BROADCAST)
