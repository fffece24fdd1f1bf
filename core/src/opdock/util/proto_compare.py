"""Comparisons of protobuf messages, for tests."""

from __future__ import annotations

import difflib
from typing import Any

__all__ = ["ProtoAssertions", "ProtoEq", "assertProtoEqual"]


def assertProtoEqual(
    test: Any, a: Any, b: Any, check_initialized: bool = True, normalize_numbers: bool = False,
    msg: str | None = None,
) -> None:  # fmt: skip
    """Asserts that two messages are equal.

    Args:
        test: the test case.
        a: a message, or one as text.
        b: a message.
        check_initialized: whether required fields must be there.
        normalize_numbers: whether numbers are rounded, in place, to what a float tells apart.
        msg: for the failure.
    """
    from google.protobuf import text_format

    if isinstance(a, str | bytes):
        a = text_format.Merge(a, type(b)())
    for message in (a, b):
        if check_initialized and (lost := message.FindInitializationErrors()):
            test.fail(f"Initialization errors: {lost}\n{message}")
        if normalize_numbers:
            _round(message)
    ours, theirs = (text_format.MessageToString(each) for each in (a, b))
    if ours != theirs:
        lines = difflib.ndiff(ours.splitlines(keepends=True), theirs.splitlines(keepends=True))
        test.fail(f"{msg or 'The messages differ'} :\n{''.join(lines)}")


def _round(message: Any) -> None:
    """Rounds the numbers of a message and of those in it."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in _messages(field, value):
                _round(inner)
            continue
        digits = {field.CPPTYPE_FLOAT: 6, field.CPPTYPE_DOUBLE: 7}.get(field.cpp_type)
        if digits is None:
            continue
        if _is_repeated(value):
            value[:] = [round(x, digits) for x in value]
        else:
            setattr(message, field.name, round(value, digits))


def _is_repeated(value: Any) -> bool:
    return hasattr(value, "extend")


def _messages(field: Any, value: Any) -> list[Any]:
    if hasattr(value, "MergeFrom") and hasattr(value, "items"):  # a map
        return [v for v in value.values() if hasattr(v, "ListFields")]
    return list(value) if _is_repeated(value) else [value]


def ProtoEq(a: Any, b: Any) -> bool:
    """Whether two messages, or what stands in their fields, are equal, in order."""
    if hasattr(a, "ListFields") and hasattr(b, "ListFields"):
        ours, theirs = ({f.number: v for f, v in m.ListFields()} for m in (a, b))
        return ours.keys() == theirs.keys() and all(ProtoEq(v, theirs[k]) for k, v in ours.items())
    if _is_repeated(a) and _is_repeated(b):
        return len(a) == len(b) and all(map(ProtoEq, a, b))
    return bool(a == b)


class ProtoAssertions:
    """Gives tests the assertion as a method."""

    assertProtoEqual = assertProtoEqual
