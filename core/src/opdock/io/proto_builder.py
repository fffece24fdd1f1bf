"""Makes classes of protobuf messages from short descriptions of them.

A message is a line of fields, `name:type=number`. A trailing `*` is repeated, `[oneof]` puts the
field into a oneof, `{type}` is a map from string and `{int64:type}` one from numbers.
`#Name.VALUE=number` declares a value of a nested enum; enums of the whole file are given beside the
messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

__all__ = ["build"]

_FD: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "int32": _FD.TYPE_INT32, "int64": _FD.TYPE_INT64, "fixed32": _FD.TYPE_FIXED32,
    "float": _FD.TYPE_FLOAT, "double": _FD.TYPE_DOUBLE, "bool": _FD.TYPE_BOOL,
    "string": _FD.TYPE_STRING, "bytes": _FD.TYPE_BYTES, "uint64": _FD.TYPE_UINT64,
}  # fmt: skip


def build(
    path: str,
    package: str,
    messages: Mapping[str, str],
    *,
    enums: Mapping[str, str] | None = None,
    foreign: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The classes of a file's outermost messages, and its enums, by name.

    Args:
        path: a name for the file, which no other has.
        package: the protobuf package.
        messages: full names, as `Outer.Inner`, and their fields.
        enums: names and values, as `"LEFT=0 RIGHT=1"`.
        foreign: the file descriptors of types of other files, by the types' names.
    """
    return _File(path, package, messages, enums or {}, foreign or {}).built()


class _File:
    """A file that is being described."""

    def __init__(
        self,
        path: str,
        package: str,
        messages: Mapping[str, str],
        enums: Mapping[str, str],
        foreign: Mapping[str, Any],
    ) -> None:
        self._package, self._messages, self._foreign = package, messages, foreign
        self._file = descriptor_pb2.FileDescriptorProto(name=path, package=package, syntax="proto3")
        self._file.dependency.extend(dict.fromkeys(file.name for file in foreign.values()))
        self._outermost_enums = enums
        self._enums = {*enums, *(n for n, f in foreign.items() if n in f.enum_types_by_name)}

    def built(self) -> dict[str, Any]:
        """What the file defines."""
        for name, values in self._outermost_enums.items():
            _add_values(self._file.enum_type.add(name=name), values.split())
        made: dict[str, Any] = {}
        for full_name in sorted(self._messages, key=lambda n: n.count(".")):
            outer, _, name = full_name.rpartition(".")
            made[full_name] = (made[outer].nested_type if outer else self._file.message_type).add(
                name=name
            )
            self._add_enums(made[full_name], full_name)
        for full_name, message in made.items():
            for text in self._messages[full_name].split():
                if not text.startswith("#"):
                    self._add_field(message, full_name, text)
        pool = descriptor_pool.Default()
        pool.AddSerializedFile(self._file.SerializeToString())
        return self._classes(pool)

    def _classes(self, pool: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self._messages:
            if "." not in name:
                message = pool.FindMessageTypeByName(f"{self._package}.{name}")
                found[name] = message_factory.GetMessageClass(message)
        for name in self._outermost_enums:
            enum = pool.FindEnumTypeByName(f"{self._package}.{name}")
            found[name] = EnumTypeWrapper(enum)
            found |= {value.name: value.number for value in enum.values}
        return found

    def _add_enums(self, message: Any, full_name: str) -> None:
        by_name: dict[str, list[str]] = {}
        for text in self._messages[full_name].split():
            if text.startswith("#"):
                enum_name, _, value = text[1:].partition(".")
                by_name.setdefault(enum_name, []).append(value)
        for enum_name, values in by_name.items():
            self._enums.add(f"{full_name}.{enum_name}")
            _add_values(message.enum_type.add(name=enum_name), values)

    def _add_field(self, message: Any, full_name: str, text: str) -> None:
        head, _, number = text.partition("=")
        number, _, oneof = number.partition("[")
        name, _, type_name = head.partition(":")
        field = message.field.add(name=name, number=int(number))
        repeated = type_name.endswith("*") or type_name.startswith("{")
        field.label = _FD.LABEL_REPEATED if repeated else _FD.LABEL_OPTIONAL
        if type_name.startswith("{"):
            entry = message.nested_type.add(name=_camel(name) + "Entry")
            entry.options.map_entry = True
            key, _, value = type_name[1:-1].rpartition(":")
            for i, part in enumerate(("key", "value"), 1):
                inner = entry.field.add(name=part, number=i, label=_FD.LABEL_OPTIONAL)
                self._set_type(inner, (key or "string") if part == "key" else value)
            field.type = _FD.TYPE_MESSAGE
            field.type_name = f".{self._package}.{full_name}.{entry.name}"
            return
        self._set_type(field, type_name.rstrip("*"))
        if oneof:
            names = [o.name for o in message.oneof_decl]
            if (oneof := oneof.rstrip("]")) not in names:
                message.oneof_decl.add(name=oneof)
                names.append(oneof)
            field.oneof_index = names.index(oneof)

    def _set_type(self, field: Any, type_name: str) -> None:
        scalar = _SCALARS.get(type_name)
        if scalar is not None:
            field.type = scalar
            return
        field.type = _FD.TYPE_ENUM if type_name in self._enums else _FD.TYPE_MESSAGE
        known = self._foreign.get(type_name)
        package = self._package if known is None else known.package
        field.type_name = f".{package}.{type_name}"


def _add_values(enum: Any, values: list[str]) -> None:
    for text in values:
        name, _, number = text.partition("=")
        enum.value.add(name=name, number=int(number))


def _camel(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))
