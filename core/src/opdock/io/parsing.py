"""Messages and JSON out of files, whose bytes may be anything."""

from __future__ import annotations

import json
from typing import Any

from opdock import errors

__all__ = ["parsed", "parsed_json"]


def parsed(message: Any, data: bytes, where: str) -> Any:
    """A message of the class `message`.

    Args:
        message: the class.
        data: what should be one.
        where: what the error says of the place of the bytes, "an entry of /tmp/m.index".

    Raises:
        DataLossError: the bytes are no such message.
    """
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(data)
    except DecodeError as e:
        kind = message.DESCRIPTOR.name
        raise errors.DataLossError(None, None, f"Unable to parse {where} as {kind}: {e}") from None


def parsed_json(data: str | bytes, where: str) -> Any:
    """What JSON says.

    Args:
        data: the text.
        where: what the error says of its place.

    Raises:
        ValueError: it is no JSON, or is nested so deep that it cannot be read.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{where} is no JSON that can be read: {e}") from None
