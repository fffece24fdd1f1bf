"""Checks that floating-point tensors hold numbers."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, name_scope
from opdock.ops.control import group, with_dependencies
from opdock.ops.registry import Control, get

__all__ = ["add_check_numerics_ops", "verify_tensor_all_finite"]


@extensible
def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None,
    message: str | None = None,
) -> Tensor:  # fmt: skip
    """`t`, or a run-time failure with `msg` if it holds an infinity or NaN.

    Args:
        t: a floating-point tensor.
        msg: text of the failure.
        name: a name for the operations.
        x: newer name of `t`.
        message: newer name of `msg`.
    """
    return assert_all_finite(t if x is None else x, msg if message is None else message, name)


def assert_all_finite(x: Any, message: Any, name: str | None = None) -> Tensor:
    """`x`, or a run-time failure with `message` if it holds an infinity or NaN."""
    with name_scope(name, "VerifyFinite", [x]):
        tensor = convert_to_tensor(x, name="x")
        with colocate_with(tensor):
            check = get("CheckNumerics")(tensor, message=message or "")
            return with_dependencies([check], tensor)  # type: ignore[no-any-return]


def add_check_numerics_ops() -> Operation:
    """An operation that checks every half, float and double tensor of the graph.

    The checks run in the order of the graph, so the first culprit is the one that is named, with
    the line that made it, its inputs and the global step.

    Raises:
        ValueError: the graph has branches or loops.
    """
    operations = get_default_graph().get_operations()
    if any(op.spec.traits.control is not Control.NONE for op in operations):
        raise ValueError(
            "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow "
            "operations such as `tf.cond()` or `tf.while_loop()`."
        )
    checks: list[Operation] = []
    floats = (dtypes.float16, dtypes.float32, dtypes.float64)
    for op in operations:
        for tensor in op.outputs:
            if tensor.dtype in floats:
                with control_dependencies(checks[-1:]):
                    text = f"{op.name}:{tensor.value_index}"
                    checks.append(get("CheckNumerics")(tensor, message=text).op)
    return group(*checks)
