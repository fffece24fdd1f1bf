"""Descriptions of message types from outside, checked before protobuf builds types of them.

protobuf's Python library takes more than its C++ library does, which is TensorFlow's, and breaks on
some of it. Where a repeated string has a default value, it crashes once a second file of the same
name comes, which it compares with the first; of messages that call themselves entries of a map, but
have other fields, it makes maps that cannot be read. Both are refused here, as they are in C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool

from opdock import errors

__all__ = ["is_repeated", "load"]

_Field = descriptor_pb2.FieldDescriptorProto
_NO_KEYS: Final = (
    _Field.TYPE_DOUBLE, _Field.TYPE_FLOAT, _Field.TYPE_BYTES, _Field.TYPE_MESSAGE,
    _Field.TYPE_GROUP, _Field.TYPE_ENUM,
)  # fmt: skip


def load(files: descriptor_pb2.FileDescriptorSet) -> Any:
    """A pool of the message types that a set of files describes.

    Args:
        files: each behind those that it depends on. One that comes again as it was counts once.

    Raises:
        InvalidArgumentError: a file describes what cannot be; its name and the reason.
    """
    pool = descriptor_pool.DescriptorPool()
    known: dict[str, bytes] = {}
    for file in files.file:
        described = file.SerializeToString(deterministic=True)
        if file.name not in known:
            known[file.name] = described
            _add(pool, file, described)
        elif known[file.name] != described:
            raise _refused(file, "another file of the set has the same name")
    return pool


def is_repeated(field: Any) -> bool:
    """Whether a message may have the field several times."""
    # Whatever the version of the library: labels came to an end.
    return isinstance(field.default_value, list)


def _add(pool: Any, file: Any, described: bytes) -> None:
    for fault in _faults(file):
        raise _refused(file, fault)
    try:
        built: Any = pool.AddSerializedFile(described)
    except (TypeError, ValueError) as e:
        raise _refused(file, str(e)) from None
    for fault in _misused_entries(built):
        raise _refused(file, fault)


def _refused(file: Any, why: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"Failed to load FileDescriptorProto: {file.name}: {why}"
    )


# ---------------------------------------------------------------- before types are built
def _faults(file: Any) -> Iterator[str]:
    yield from _faults_of_fields(file.package, file.extension)
    for message in file.message_type:
        yield from _faults_of_message(file.package, message)


def _faults_of_message(scope: str, message: Any) -> Iterator[str]:
    name = _full_name(scope, message)
    yield from _faults_of_fields(name, [*message.field, *message.extension])
    if message.options.map_entry and not _is_entry(message):
        yield (
            f"{name} has the option map_entry, but not the fields of an entry alone: key, of "
            "number 1 and a type that keys have, and value, of number 2, both optional"
        )
    for nested in message.nested_type:
        yield from _faults_of_message(name, nested)


def _faults_of_fields(scope: str, fields: Any) -> Iterator[str]:
    for field in fields:
        if field.label == _Field.LABEL_REPEATED and field.HasField("default_value"):
            yield f"{_full_name(scope, field)} is repeated, and so can't have a default value"


def _full_name(scope: str, part: Any) -> str:
    return f"{scope}.{part.name}" if scope else str(part.name)


def _is_entry(message: Any) -> bool:
    found = [(f.name, f.number, f.label) for f in message.field]
    more = (
        message.nested_type, message.enum_type, message.extension, message.extension_range,
        message.oneof_decl,
    )  # fmt: skip
    return (
        found == [("key", 1, _Field.LABEL_OPTIONAL), ("value", 2, _Field.LABEL_OPTIONAL)]
        and message.field[0].type not in _NO_KEYS
        and not any(more)
    )


# ---------------------------------------------------------------- once names have their types
def _misused_entries(built: Any) -> Iterator[str]:
    for message in built.message_types_by_name.values():
        yield from _misused_in(message)
    yield from _no_maps(built.extensions_by_name.values())


def _misused_in(message: Any) -> Iterator[str]:
    yield from _no_maps(message.extensions)
    yield from _no_maps(f for f in message.fields if not _is_map(f))
    for nested in message.nested_types:
        yield from _misused_in(nested)


def _no_maps(fields: Any) -> Iterator[str]:
    for field in fields:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield f"{field.full_name} has the type of an entry of a map, but is no map"


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and is_repeated(field) and kind.containing_type is field.containing_type
