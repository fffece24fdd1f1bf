"""Messages of tree ensembles and of random forests, read and made for kernels."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from opdock import errors
from opdock.io import forest_messages, protos

__all__ = ["forest_message", "tree_debug_output", "tree_ensemble"]


def tree_ensemble(serialized: bytes) -> Any:
    """The `TreeEnsemble` of its text.

    Raises:
        InvalidArgumentError: the text is none.
    """
    return _parsed(protos.TreeEnsemble(), serialized, "tree ensemble")


def tree_debug_output() -> Any:
    """A `DebugOutput` with nothing in it."""
    return protos.DebugOutput()


def forest_message(kind: str, serialized: bytes = b"") -> Any:
    """A message of random forests.

    Args:
        kind: its name in `opdock.io.forest_messages`, as "TensorForestParams".
        serialized: its text; nothing for an empty one.

    Raises:
        InvalidArgumentError: the text is none of that kind.
    """
    return _parsed(getattr(forest_messages, kind)(), serialized, kind)


def _parsed(message: Any, serialized: bytes, what: str) -> Any:
    try:
        message.ParseFromString(serialized)
    except DecodeError as e:
        raise errors.InvalidArgumentError(
            None, None, f"Unable to parse {what} proto: {e}"
        ) from None
    return message
