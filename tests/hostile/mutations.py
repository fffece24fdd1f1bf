"""How a valid file is made a hostile one: by its bytes, or by the fields of its messages.

Every change is drawn from the generator that is given, so a case is known by its number.
"""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (
    0, 1, 2, 3, 7, 8, 16, 100, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**24,
    2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -1, -2, -128, -32768, -(2**31), -(2**63),
)  # fmt: skip
"""Where sizes overflow, wrap or are believed."""
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3e38, 1e308, float("inf"), float("-inf"), float("nan"))


# ---------------------------------------------------------------- bytes
def _position(rng: Random, data: bytearray) -> int:
    return rng.randrange(len(data)) if data else 0


def _flip(rng: Random, data: bytearray) -> None:
    if data:
        data[_position(rng, data)] ^= 1 << rng.randrange(8)


def _set(rng: Random, data: bytearray) -> None:
    if data:
        data[_position(rng, data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _cut(rng: Random, data: bytearray) -> None:
    at = _position(rng, data)
    del data[at : at + rng.choice((1, 2, 4, 8, rng.randrange(1, 200)))]


def _end(rng: Random, data: bytearray) -> None:
    del data[_position(rng, data) :]


def _insert(rng: Random, data: bytearray) -> None:
    at = _position(rng, data)
    data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, rng.randrange(1, 64))))


def _repeat(rng: Random, data: bytearray) -> None:
    at = _position(rng, data)
    piece = data[at : at + rng.randrange(1, 64)]
    to = _position(rng, data)
    data[to:to] = piece * rng.choice((1, 2, 50))


def _number(rng: Random, data: bytearray) -> None:
    width, order = rng.choice("BHIQ"), rng.choice("<>")
    packed = struct.pack(order + width, rng.choice(NUMBERS) % (1 << 8 * struct.calcsize(width)))
    at = _position(rng, data)
    data[at : at + len(packed)] = packed


_BYTE_CHANGES: Sequence[Callable[[Random, bytearray], None]] = (
    _flip, _flip, _set, _set, _cut, _end, _insert, _repeat, _number, _number,
)  # fmt: skip


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """The data after one to four changes of its bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        rng.choice(_BYTE_CHANGES)(rng, out)
    return bytes(out)


# ---------------------------------------------------------------- messages
def _messages(message: Any, depth: int = 0) -> list[Any]:
    """A message and all that are in it."""
    found = [message]
    if depth > 12:
        return found
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in sorted(value):
                    found += _messages(value[key], depth + 1)
        elif _is_repeated(value):
            for item in value:
                found += _messages(item, depth + 1)
        else:
            found += _messages(value, depth + 1)
    return found


def _is_repeated(value: Any) -> bool:
    # Descriptors say it in other words from release to release of protobuf.
    return hasattr(value, "extend")


def _texts(messages: Sequence[Any]) -> list[Any]:
    """All strings and bytes of these messages."""
    found: list[Any] = []
    for message in messages:
        for field, value in message.ListFields():
            if field.cpp_type == field.CPPTYPE_STRING:
                found += list(value) if _is_repeated(value) else [value]
    return found


def _scalar(rng: Random, field: Any, texts: Sequence[Any]) -> Any:
    """A value for a field that is no message; it may be one that the field does not take."""
    kind = field.cpp_type
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(FLOATS)
    if kind == field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind == field.CPPTYPE_STRING:
        text = _text(rng, texts)
        if field.type == field.TYPE_BYTES:
            return text.encode() if isinstance(text, str) else text
        return text if isinstance(text, str) else text.decode("utf-8", "replace")
    if kind == field.CPPTYPE_ENUM:
        return rng.choice((*range(30), 101, 120, -1, 2**31 - 1))
    return rng.choice((rng.randrange(-3, 12), rng.choice(NUMBERS)))


def _text(rng: Random, texts: Sequence[Any]) -> Any:
    known = rng.choice(texts) if texts else ""
    choice = rng.randrange(8)
    if choice < 4:
        return known
    if choice == 4:
        return rng.choice(("", "\0", "^", ":0", "a/../b", "%s{}", "é", b"\xff\xfe", "x" * 5000))
    prefix, suffix = (b"^", b":1") if isinstance(known, bytes) else ("^", ":1")
    return prefix + known if choice == 5 else known + suffix if choice == 6 else known[:-1]


def _change_scalars(rng: Random, message: Any, field: Any, texts: Sequence[Any]) -> None:
    value = _scalar(rng, field, texts)
    if not _is_repeated(getattr(message, field.name)):
        setattr(message, field.name, value)
        return
    items = list(getattr(message, field.name))
    choice = rng.randrange(5)
    if choice == 0 or not items:
        items += [value] * rng.choice((1, 1, 1, 2, 300))
    elif choice == 1:
        items.pop(rng.randrange(len(items)))
    elif choice == 2:
        rng.shuffle(items)
    else:
        items[rng.randrange(len(items))] = value
    getattr(message, field.name)[:] = items


def _copy(message: Any) -> Any:
    """A copy: protobuf breaks where a message is copied into a part of itself."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _change_messages(rng: Random, message: Any, field: Any, everything: Sequence[Any]) -> None:
    others = [m for m in everything if m.DESCRIPTOR is field.message_type]
    if not _is_repeated(getattr(message, field.name)):
        if others and rng.random() < 0.7:
            getattr(message, field.name).CopyFrom(_copy(rng.choice(others)))
        else:
            getattr(message, field.name).SetInParent()
        return
    items = getattr(message, field.name)
    choice = rng.randrange(4)
    if choice == 0 and items:
        del items[rng.randrange(len(items))]
    elif choice == 1 and len(items) > 1:
        items.reverse()
    elif others:
        items.add().CopyFrom(_copy(rng.choice(others)))
    else:
        items.add()


def _change_map(rng: Random, message: Any, field: Any, texts: Sequence[Any]) -> None:
    entries = getattr(message, field.name)
    key_field, value_field = (field.message_type.fields_by_name[n] for n in ("key", "value"))
    keys = sorted(entries, key=repr)
    if keys and rng.random() < 0.5:
        del entries[rng.choice(keys)]
        return
    key = _scalar(rng, key_field, [*texts, *keys])
    if value_field.message_type is None:
        entries[key] = _scalar(rng, value_field, texts)
    elif keys:
        entries[key].CopyFrom(entries[rng.choice(keys)])
    else:
        entries[key].SetInParent()


def mutate_message(rng: Random, message: Any) -> Any:
    """A copy of the message after one to four changes of its fields."""
    copy = _copy(message)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        everything = _messages(copy)
        target = rng.choice(everything)
        fields = target.DESCRIPTOR.fields
        used = [f for f, _ in target.ListFields()]
        field = rng.choice(used if used and rng.random() < 0.8 else fields)
        texts = _texts(everything)
        if rng.random() < 0.05:
            target.ClearField(field.name)
            continue
        try:
            if field.message_type is None:
                _change_scalars(rng, target, field, texts)
            elif field.message_type.GetOptions().map_entry:
                _change_map(rng, target, field, texts)
            else:
                _change_messages(rng, target, field, everything)
        except (ValueError, TypeError):
            continue  # the field takes no such value, so no file has it either
    return copy


# ---------------------------------------------------------------- JSON
_VALUES = (
    None, True, False, "", "x", "a:0", "\0", [], {}, [[]], 0.5, 1e308, float("nan"), float("inf"),
    10**30,
)  # fmt: skip


_DEEP = "many lists, one in the other"


def _places(value: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Where values stand in what JSON says: (list or object, index or key)."""
    if depth > 50 or not isinstance(value, list | dict):
        return []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    return [(value, k) for k in keys] + [p for k in keys for p in _places(value[k], depth + 1)]


def mutate_json(rng: Random, text: bytes) -> bytes:
    """The text by its values three times of four, else by its bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, text)
    value = [json.loads(text)]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        places = _places(value)
        if not places:
            break
        owner, key = rng.choice(places)
        choice = rng.randrange(6)
        if choice == 0:
            del owner[key]
        elif choice == 1:
            owner[key] = rng.choice((*_VALUES, *NUMBERS))
        elif choice == 2:
            other, at = rng.choice(places)
            owner[key] = copy.deepcopy(other[at])
        elif choice == 3 and isinstance(owner, dict):
            owner[rng.choice(("", "x", str(key) + "x"))] = owner.pop(key)
        elif choice == 4:
            owner[key] = _DEEP
        elif isinstance(owner[key], int | float):
            owner[key] = rng.choice((rng.randrange(-3, 12), *NUMBERS))
        elif isinstance(owner[key], str):
            owner[key] = mutate_bytes(rng, owner[key].encode()).decode("latin-1")
    depth = rng.choice((1, 3, 500, 100_000))
    text = json.dumps(value[0] if value else None).encode()
    return text.replace(json.dumps(_DEEP).encode(), b"[" * depth + b"]" * depth)
