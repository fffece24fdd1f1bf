"""Parsed op definitions: TF's OpDef mini-language to frozen records."""

from __future__ import annotations

import ctypes
import re
from dataclasses import field
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.fields import check_values
from opdock.late import record

_TYPE_SETS: Final[dict[str, tuple[DType, ...]]] = {
    name: tuple(sorted(types, key=int))
    for name, types in {
        "numbertype": dtypes.NUMBERS | {dtypes.qint8, dtypes.quint8, dtypes.qint32},
        "realnumbertype": dtypes.REALS,
        "quantizedtype": dtypes.QUANTIZED,
    }.items()
}
_ATTR_RE: Final = re.compile(r"\s*(\w+)\s*:\s*")
_OP_NAME: Final = re.compile(r"\w[\w.>/-]*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@record(frozen=True, slots=True, eq=False)
class ArgDef:
    """One input or output argument: a tensor, N tensors of one type, or a typed list.

    Each is itself and nobody else, so that the compiler may look things up by arguments quickly.
    """

    name: str
    dtype: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        """Whether the argument stands for a list of tensors."""
        return bool(self.number_attr or self.type_list_attr)


@record(frozen=True, slots=True)
class AttrDef:
    """One attribute: its type, default, allowed values and minimum."""

    name: str
    type: str
    default: Any = None
    has_default: bool = False
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None


@record(frozen=True, slots=True)
class OpDef:
    """A parsed definition."""

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: dict[str, AttrDef]
    inferred: frozenset[str] = field(default_factory=frozenset)


def parse(name: str, signature: str, attrs: str) -> OpDef:
    """Parses a signature ("a: T, b: T -> product: T") and attributes ("T: {float, double}").

    Raises:
        ValueError: the text is malformed or names an unknown attribute.
    """
    try:
        if not _OP_NAME.fullmatch(name):
            raise ValueError("the name must be of letters, digits and _.>/-")
        listed = _parse_attrs(attrs)
        attr_defs = {a.name: a for a in listed}
        left, _, right = signature.partition("->")
        inputs, outputs = _parse_args(left, attr_defs), _parse_args(right, attr_defs)
        _check_names([a.name for a in listed] + [a.name for a in (*inputs, *outputs)])
    except (ValueError, KeyError, IndexError) as e:
        raise ValueError(f"Malformed definition of op '{name}': {e}") from e
    inferred = frozenset(
        a for arg in inputs for a in (arg.type_attr, arg.number_attr, arg.type_list_attr) if a
    )
    return OpDef(name, inputs, outputs, attr_defs, inferred)


def _check_names(names: list[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an argument or an attribute")
        if names.count(name) > 1:
            raise ValueError(f"the name '{name}' is there twice")


def _parse_args(text: str, attrs: dict[str, AttrDef]) -> tuple[ArgDef, ...]:
    return tuple(_parse_arg(part, attrs) for part in _split(text, ",") if part.strip())


def _parse_arg(text: str, attrs: dict[str, AttrDef]) -> ArgDef:
    name, _, kind = (p.strip() for p in text.partition(":"))
    number = ""
    if "*" in kind:
        number, kind = (p.strip() for p in kind.split("*"))
        if number not in attrs or attrs[number].type != "int":
            raise ValueError(f"argument '{name}' has no attribute '{number}: int' for its number")
    is_ref = kind.startswith("Ref(")
    if is_ref:
        kind = kind[4:-1].strip()
    if kind in attrs:
        if attrs[kind].type == "list(type)":
            return ArgDef(name, type_list_attr=kind, is_ref=is_ref)
        return ArgDef(name, type_attr=kind, number_attr=number, is_ref=is_ref)
    dtype = dtypes.PROTO_NAMES.get(kind)
    if dtype is None:
        raise ValueError(f"argument '{name}' has unknown type '{kind}'")
    return ArgDef(name, dtype=dtype, number_attr=number, is_ref=is_ref)


def _parse_attrs(text: str) -> list[AttrDef]:
    return [_parse_attr(part) for part in _split(text, ",") if part.strip()]


def _parse_attr(text: str) -> AttrDef:
    match = _ATTR_RE.match(text)
    if match is None:
        raise ValueError(f"attribute {text!r}")
    name, rest = match.group(1), text[match.end() :].strip()
    head, eq, default_text = _cut(rest, "=")
    minimum = None
    if ">=" in rest:
        head, _, tail = rest.partition(">=")
        minimum_text, eq, default_text = tail.partition("=")
        minimum = int(minimum_text)
    kind, allowed = _parse_kind(head.strip())
    default = parse_literal(default_text.strip(), kind) if eq else None
    return AttrDef(name, kind, default, bool(eq), allowed, minimum)


def _parse_kind(text: str) -> tuple[str, tuple[Any, ...] | None]:
    if text.startswith("list(") and text.endswith(")"):
        kind, allowed = _parse_kind(text[5:-1].strip())
        return f"list({kind})", allowed
    if text in _TYPE_SETS:
        return "type", _TYPE_SETS[text]
    if text.startswith("{"):
        items = [i.strip() for i in _split(text[1:-1], ",") if i.strip()]
        if items[0][0] in "\"'":
            return "string", tuple(i[1:-1] for i in items)
        allowed_types: list[DType] = []
        for item in items:
            allowed_types += _TYPE_SETS.get(item) or (_type_named(item),)
        return "type", tuple(dict.fromkeys(allowed_types))
    if text not in ("int", "float", "bool", "string", "type", "shape", "tensor", "func"):
        raise ValueError(f"unknown attribute type '{text}'")
    return text, None


def _type_named(name: str) -> DType:
    found = dtypes.PROTO_NAMES.get(name)
    if found is None:
        raise ValueError(f"there is no element type '{name}'")
    return found


def float_attr(value: Any) -> float:
    """`value` as an attribute holds it: TF's protobuf has 32 bits for it, infinite beyond them.

    Raises:
        TypeError, ValueError: the value is no number.
    """
    return ctypes.c_float(float(value)).value


def parse_literal(text: str, kind: str) -> Any:
    """A default value in TF's OpDef spelling, as a native value."""
    if kind.startswith("list("):
        inner = text.strip()[1:-1]
        return [parse_literal(p.strip(), kind[5:-1]) for p in _split(inner, ",") if p.strip()]
    if kind == "int":
        return int(text)
    if kind == "float":
        return float_attr(text)
    if kind == "bool":
        return text.lower() == "true"
    if kind == "string":
        return text[1:-1]
    if kind == "type":
        return _type_named(text.removeprefix("DT_").lower())
    if kind == "shape":
        if text in ("?", "unknown", "None", "{ unknown_rank: true }"):
            return None
        return tuple(
            None if d.strip() in ("?", "-1") else int(d) for d in text[1:-1].split(",") if d.strip()
        )
    if kind == "tensor":
        dtype, _, body = text.partition(" ") if "[" not in text else text.partition("[")
        values = [float(v) for v in body.rstrip("]").split(",") if v.strip()]
        array = np.array(values).astype(_type_named(dtype.strip()).np)
        return array if "[" in text else array.reshape(())
    raise ValueError(f"no literal of type '{kind}'")


def _cut(text: str, mark: str) -> tuple[str, str, str]:
    """Partition at the first `mark` outside brackets and quotes."""
    parts = _split(text, mark)
    if len(parts) == 1:
        return text, "", ""
    return parts[0], mark, mark.join(parts[1:])


def _split(text: str, mark: str) -> list[str]:
    parts, depth, quote, start = [], 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == mark and depth == 0 and text[i - 1 : i] != ">":
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


def check_arguments(
    name: str, signature: str, attrs: str, expr: str | None, **flags: bool
) -> None:  # fmt: skip
    """Looks at the types of what `define_op` is given; TypeError for what is of another."""
    check_values("define_op: ", "str", name=name, signature=signature, attrs=attrs)
    check_values(f"Op '{name}': ", "bool", **flags)
    check_values(f"Op '{name}': ", "str | None", expr=expr)
