"""Protobuf messages in files, binary or text, as the tools take them."""

from __future__ import annotations

from typing import Any

from opdock import errors
from opdock.io import filesystems, protos
from opdock.io.files import as_path, read_file, write_file

__all__ = ["read_graph", "read_message", "write_message"]


def read_graph(path: Any) -> Any:
    """Reads a GraphDef, be it binary or text.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it holds no GraphDef.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    name = as_path(path)
    data = read_file(name)
    try:
        return protos.GraphDef.FromString(data)
    except DecodeError as e:
        why = e
    try:
        return text_format.Parse(data.decode("utf-8"), protos.GraphDef())
    except (text_format.ParseError, UnicodeDecodeError):
        raise errors.DataLossError(None, None, f"{name} holds no GraphDef: {why}") from None


def read_message(path: Any, message: Any, binary: bool, what: str) -> Any:
    """Reads a message.

    Args:
        path: the file.
        message: an empty message, which is filled.
        binary: whether the file is binary, else text.
        what: what to call the file in an error.

    Returns:
        The message.

    Raises:
        IOError: there is no such file, or it cannot be parsed.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    name = as_path(path)
    if not filesystems.of(name).exists(name):
        raise OSError(f"{what} file '{name}' does not exist!")
    data = read_file(name)
    try:
        if binary:
            message.ParseFromString(data)
        else:
            text_format.Merge(data.decode("utf-8"), message)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as e:
        kind = "binary" if binary else "text"
        raise OSError(f"{what} file '{name}' cannot be parsed as {kind}: {e}") from None
    return message


def write_message(path: Any, message: Any, binary: bool) -> None:
    """Writes a message, whole or not at all."""
    from google.protobuf import text_format

    data = message.SerializeToString() if binary else text_format.MessageToString(message).encode()
    write_file(as_path(path), data)
