"""Errors that name the node and the user's line."""

from __future__ import annotations

from typing import Any, Final

from opdock import errors
from opdock.compiler.ir.block import Node

__all__ = ["as_op_error", "where"]

_TRANSLATED: Final[tuple[tuple[type[Exception], type[errors._CodedError]], ...]] = (
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, errors.InvalidArgumentError),
    (IndexError, errors.InvalidArgumentError),
    (OverflowError, errors.InvalidArgumentError),
    (ZeroDivisionError, errors.InvalidArgumentError),
)


def as_op_error(error: Exception, node: Node) -> errors.OpError:
    """`error` as an OpError that names the node and the user's line."""
    if isinstance(error, errors.OpError):
        if "[[node " in error.message:
            return error
        same: Any = type(error)
        located: errors.OpError = same(None, node.origin, error.message + where(node))
        return located
    for kind, cls in _TRANSLATED:
        if isinstance(error, kind):
            return cls(None, node.origin, f"{error}{where(node)}")
    text = f"{type(error).__name__}: {error}"
    return errors.InternalError(None, node.origin, f"Op {node.op} failed: {text}{where(node)}")


def where(node: Node) -> str:
    """TF's suffix that names a node, with the user's line."""
    line = node.origin.user_line if node.origin is not None else ""
    name = node.origin.name if node.origin is not None else node.name
    at = f" (defined at {line})" if line else ""
    if node.made_by:
        name, at = node.name, f"{at} made by {node.made_by}"
    return f"\n\t [[node {name}{at}]] (op {node.op})"
