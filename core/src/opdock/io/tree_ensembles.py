"""Messages of tree ensembles, read and made for kernels."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from opdock import errors
from opdock.io import protos

__all__ = ["tree_debug_output", "tree_ensemble"]


def tree_ensemble(serialized: bytes) -> Any:
    """The `TreeEnsemble` of its text.

    Raises:
        InvalidArgumentError: the text is none.
    """
    message = protos.TreeEnsemble()
    try:
        message.ParseFromString(serialized)
    except DecodeError as e:
        raise errors.InvalidArgumentError(
            None, None, f"Unable to parse tree ensemble proto: {e}"
        ) from None
    return message


def tree_debug_output() -> Any:
    """A `DebugOutput` with nothing in it."""
    return protos.DebugOutput()
