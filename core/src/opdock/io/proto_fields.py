"""Message types from where they are described, and the values of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor as Fd
from google.protobuf.message import DecodeError, Message

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io.descriptor_files import is_repeated, load
from opdock.io.files import read_file

__all__ = ["defaults", "fields_of", "message_class", "read", "write"]

_LOCAL: Final = "local://"
_BYTES: Final = b"bytes://"

_SINT32 = frozenset({dtypes.int32, dtypes.int64})
_UINT32 = frozenset({dtypes.uint32, dtypes.uint64})
_TYPES: Final[Mapping[int, frozenset[DType]]] = {
    Fd.TYPE_DOUBLE: frozenset({dtypes.float64}),
    Fd.TYPE_FLOAT: frozenset({dtypes.float32, dtypes.float64}),
    **dict.fromkeys((Fd.TYPE_INT64, Fd.TYPE_SFIXED64, Fd.TYPE_SINT64), frozenset({dtypes.int64})),
    **dict.fromkeys((Fd.TYPE_UINT64, Fd.TYPE_FIXED64), frozenset({dtypes.uint64})),
    **dict.fromkeys((Fd.TYPE_INT32, Fd.TYPE_SFIXED32, Fd.TYPE_SINT32), _SINT32),
    **dict.fromkeys((Fd.TYPE_UINT32, Fd.TYPE_FIXED32), _UINT32),
    Fd.TYPE_BOOL: frozenset({dtypes.bool}),
    Fd.TYPE_ENUM: frozenset({dtypes.int32}),
    **dict.fromkeys(
        (Fd.TYPE_STRING, Fd.TYPE_BYTES, Fd.TYPE_MESSAGE, Fd.TYPE_GROUP), frozenset({dtypes.string})
    ),
}
_MESSAGES: Final = (Fd.TYPE_MESSAGE, Fd.TYPE_GROUP)


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _pool(source: str | bytes) -> Any:
    if source in (_LOCAL, _LOCAL.encode(), "", b""):
        return descriptor_pool.Default()
    raw = source.encode() if isinstance(source, str) else source
    if raw.startswith(_BYTES):
        described, origin = raw[len(_BYTES) :], "descriptor_source"
    else:
        origin = raw.decode(errors="replace")
        described = read_file(origin)
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(described)
    except DecodeError:
        raise _invalid(f"{origin} contains invalid FileDescriptorSet") from None
    if not files.IsInitialized():  # Python's library parses what lacks required fields
        missing = ", ".join(files.FindInitializationErrors())
        raise _invalid(f"{origin} contains invalid FileDescriptorSet: it lacks {missing}")
    return load(files)


def message_class(source: str | bytes, message_type: str) -> tuple[Any, Any]:
    """(the class of a message type, the pool in which it is described).

    Args:
        source: "local://" for the types of this process, "bytes://" followed by a serialized
            FileDescriptorSet, or the name of a file of one.
        message_type: the full name.

    Raises:
        InvalidArgumentError: the source describes nothing, or not this type.
        NotFoundError: there is no such file.
    """
    pool = _pool(source)
    try:
        descriptor = pool.FindMessageTypeByName(message_type)
    except KeyError:
        raise _invalid(f"No descriptor found for message type {message_type}") from None
    return message_factory.GetMessageClass(descriptor), pool


def fields_of(
    cls: Any, pool: Any, names: Sequence[str], types: Sequence[DType], words: str
) -> list[Any]:
    """The descriptors of fields, and of extensions by their full names.

    Args:
        cls: the message's class.
        pool: where it is described.
        names: the fields.
        types: the type that is wanted of each.
        words: how the error begins: "Unexpected output type for".

    Raises:
        InvalidArgumentError: there is no such field, or it has another type.
    """
    descriptor = cls.DESCRIPTOR
    extensions = {e.full_name: e for e in pool.FindAllExtensions(descriptor)}
    found = []
    for name, dtype in zip(names, types, strict=True):
        field = descriptor.fields_by_name.get(name) or extensions.get(name)
        if field is None:
            raise _invalid(f"Unknown field: {name} in message type {descriptor.full_name}")
        if dtype.base_dtype not in _TYPES[field.type]:
            wanted = " or ".join(sorted(d.name for d in _TYPES[field.type]))
            raise _invalid(f"{words} {field.full_name}: {dtype.name}, not {wanted}")
        found.append(field)
    return found


def _plain(field: Any, value: Any) -> Any:
    if field.type in _MESSAGES:
        return value.SerializePartialToString()  # a part of it may be all there is
    return value.encode() if isinstance(value, str) else value


def read(message: Message, field: Any) -> list[Any]:
    """The values that a message has of a field; messages are serialized."""
    holder: Any = message
    if is_repeated(field):
        values = holder.Extensions[field] if field.is_extension else getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entry = message_factory.GetMessageClass(field.message_type)
            return [_plain(field, _entry(entry, field, k, values[k])) for k in sorted(values)]
        return [_plain(field, v) for v in values]
    present = {d.number for d, _ in message.ListFields()}
    if field.number not in present:
        return []
    value = holder.Extensions[field] if field.is_extension else getattr(message, field.name)
    return [_plain(field, value)]


def _entry(entry: Any, field: Any, key: Any, value: Any) -> Message:
    out: Message = entry(key=key)
    if field.message_type.fields_by_name["value"].message_type is not None:
        getattr(out, "value").CopyFrom(value)  # noqa: B009 - no class declares it
    else:
        setattr(out, "value", value)  # noqa: B010
    return out


def defaults(field: Any) -> Any:
    """What stands where a message has no value of a field."""
    if field.type in _MESSAGES:
        return b""
    if is_repeated(field):
        return {dtypes.string: b"", dtypes.bool: False}.get(next(iter(_TYPES[field.type])), 0)
    return _plain(field, field.default_value)


def write(message: Message, field: Any, values: Sequence[Any]) -> None:
    """Gives a message the values of a field.

    Raises:
        InvalidArgumentError: the field takes one value, and there are several.
        DataLossError: a value is no message of the field's type, or no text.
    """
    if not values:
        return
    if not is_repeated(field) and len(values) > 1:
        raise _invalid(f"Field {field.full_name} takes one value, got {len(values)}")
    try:
        message.MergeFromString(_serialized(message, field, values))
    except (DecodeError, UnicodeDecodeError, ValueError) as e:
        raise errors.DataLossError(None, None, f"Failed writing {field.full_name}: {e}") from None


def _serialized(message: Message, field: Any, values: Sequence[Any]) -> bytes:
    part: Any = type(message)()
    if field.type in _MESSAGES:
        # The bytes of a message are those of the field, behind its number and their length.
        return b"".join(_delimited(field, bytes(v)) for v in values)
    given = [v.decode() if field.type == Fd.TYPE_STRING else v for v in values]
    if is_repeated(field):
        (part.Extensions[field] if field.is_extension else getattr(part, field.name)).extend(given)
    elif field.is_extension:
        part.Extensions[field] = given[0]
    else:
        setattr(part, field.name, given[0])
    return bytes(part.SerializePartialToString())


def _delimited(field: Any, value: bytes) -> bytes:
    if field.type == Fd.TYPE_GROUP:
        return _varint(field.number << 3 | 3) + value + _varint(field.number << 3 | 4)
    return _varint(field.number << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
