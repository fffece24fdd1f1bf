"""What a master asks of a task, and the answers, as bytes that any engine carries.

A message is a header in JSON and parts that are plain bytes: protobufs and the elements of tensors.
Nothing in it is code. Sizes come with the parts, and shapes are held against them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from opdock import dtypes, errors
from opdock.io import protos
from opdock.io.parsing import parsed_json
from opdock.io.tensor_proto import decode_array, encode_array
from opdock.plugins.clusters import Packet

__all__ = ["PROTOCOL", "Message", "decode", "encode", "failure", "raised"]

_ERROR: Final = "error"
PROTOCOL: Final = 2
"""What tasks have to agree on: goes up with every change of what messages say or mean."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or what answers one.

    Attributes:
        kind: what is asked for.
        fields: whatever JSON can say, and bytes.
        tensors: values, as NumPy arrays.
    """

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    tensors: Sequence[Any] = ()


def encode(message: Message) -> Packet:
    """A message as an engine carries it.

    Raises:
        UnimplementedError: a value is none that can leave its task.
    """
    blobs = {k: v for k, v in message.fields.items() if isinstance(v, bytes)}
    plain = {k: v for k, v in message.fields.items() if k not in blobs}
    described: list[tuple[str, Sequence[int]]] = []
    parts: list[Any] = list(blobs.values())
    for value in message.tensors:
        array, dtype = _array(value)
        described.append((dtype.name, array.shape))
        parts.append(_bytes(array, dtype))
    header = {
        "protocol": PROTOCOL, "kind": message.kind, "fields": plain, "blobs": [*blobs],
        "tensors": described,
    }  # fmt: skip
    return Packet(json.dumps(header).encode(), tuple(parts))


def _array(value: Any) -> tuple[np.ndarray[Any, Any], dtypes.DType]:
    array = np.asarray(value)
    return array, dtypes.as_dtype(array.dtype)


def _bytes(array: np.ndarray[Any, Any], dtype: dtypes.DType) -> Any:
    if array.dtype.hasobject or dtype is dtypes.string:
        try:
            return encode_array(array.astype(object), dtypes.string).SerializeToString()
        except TypeError as e:
            raise errors.UnimplementedError(
                None, None, f"What is no data cannot leave its task: {e}"
            ) from None
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def decode(packet: Packet) -> Message:
    """The message in a packet.

    Raises:
        InvalidArgumentError: it is none.
        FailedPreconditionError: it is of an opdock that says other things, or means others.
    """
    try:
        header = parsed_json(packet.header, "its header")
        names, described = header["blobs"], header["tensors"]
        _check_protocol(header.get("protocol", 1))
        if len(names) + len(described) != len(packet.parts):
            raise ValueError(f"{len(packet.parts)} parts for {len(names)} + {len(described)}")
        fields = dict(header["fields"])
        fields.update((k, bytes(v)) for k, v in zip(names, packet.parts, strict=False))
        tensors = [
            _tensor(dtypes.as_dtype(dtype), tuple(shape), part)
            for (dtype, shape), part in zip(described, packet.parts[len(names) :], strict=True)
        ]
        return Message(str(header["kind"]), fields, tensors)
    except (ValueError, KeyError, TypeError, AttributeError, DecodeError) as e:
        raise errors.InvalidArgumentError(
            None, None, f"What came from another task is no message: {type(e).__name__}: {e}"
        ) from None


def _check_protocol(found: object) -> None:
    if found != PROTOCOL:
        raise errors.FailedPreconditionError(
            None, None,
            f"Tasks of this opdock speak version {PROTOCOL} of their protocol, but what came is of "
            f"version {found}. Install the same version of opdock for all tasks.",
        )  # fmt: skip


def _tensor(dtype: dtypes.DType, shape: tuple[int, ...], part: Any) -> np.ndarray[Any, Any]:
    if dtype is dtypes.string:
        return decode_array(protos.TensorProto.FromString(bytes(part)))
    return np.frombuffer(part, dtype.np).reshape(shape)


# ---------------------------------------------------------------- errors
def failure(error: Exception) -> Message:
    """The answer of a task where an error was raised."""
    op = getattr(error, "op", None)
    code = getattr(error, "error_code", errors.INTERNAL)
    text = (
        error.message if isinstance(error, errors.OpError) else f"{type(error).__name__}: {error}"
    )
    return Message(_ERROR, {"code": code, "text": text, "op": getattr(op, "name", "")})


@dataclass(frozen=True, slots=True)
class _Op:
    """The operation of another process at fault, as far as it is known here."""

    name: str
    node_def: None = None


def raised(answer: Message) -> errors.OpError | None:
    """The error that an answer tells of, if it does."""
    if answer.kind != _ERROR:
        return None
    kind: Any = errors.exception_type_from_error_code(int(answer.fields["code"]))
    name = str(answer.fields["op"])
    error: errors.OpError = kind(None, _Op(name) if name else None, str(answer.fields["text"]))
    return error
