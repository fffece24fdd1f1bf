"""Oracle of Unicode text, by Python's codecs, one malformed part after the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _read(text: bytes, attrs: Attrs) -> list[tuple[int, int]]:
    """(code point, where it begins), as the policy wants them."""
    encoding = attrs["input_encoding"]
    out = []
    at = 0
    while at < len(text):
        # The shortest piece that is a character, or as much as is malformed.
        for end in range(at + 1, len(text) + 1):
            try:
                piece = text[at:end].decode(encoding)
                break
            except UnicodeDecodeError:
                continue
        else:
            piece = ""
        try:
            text[at:].decode(encoding)
            wrong = 0
        except UnicodeDecodeError as e:
            wrong = e.end - e.start if e.start == 0 else 0
        if wrong:
            out.append((attrs["replacement_char"], at, True))
            at += wrong
            continue
        control = attrs["replace_control_characters"] and ord(piece) <= 0x1F
        out.append((attrs["replacement_char"] if control else ord(piece), at, control))
        at = end
    return [(p, i) for p, i, bad in out if not (bad and attrs["errors"] == "ignore")]


@reference("UnicodeDecodeWithOffsets")
def unicode_decode_with_offsets(attrs: Attrs, values: Array) -> tuple[Array, Array, Array]:
    """The rows one after the other."""
    rows = [_read(bytes(s), attrs) for s in np.asarray(values, object).reshape(-1)]
    ends = np.cumsum([0, *map(len, rows)]).astype(attrs["Tsplits"])
    points = np.array([p for row in rows for p, _ in row], np.int32)
    return ends, points, np.array([i for row in rows for _, i in row], np.int64)


@reference("UnicodeDecode")
def unicode_decode(attrs: Attrs, values: Array) -> tuple[Array, Array]:
    """Without the offsets."""
    return unicode_decode_with_offsets(attrs, values)[:2]


def _write(points: list[int], encoding: str) -> bytes:
    return "".join(map(chr, points)).encode(encoding)


@reference("UnicodeTranscode")
def unicode_transcode(attrs: Attrs, values: Array) -> Array:
    """Read, and written."""
    array = np.asarray(values, object)
    out = np.empty(array.shape, object)
    for where in np.ndindex(*array.shape):
        points = [p for p, _ in _read(bytes(array[where]), attrs)]
        out[where] = _write(points, attrs["output_encoding"])
    return out


@reference("UnicodeEncode")
def unicode_encode(attrs: Attrs, values: Array, splits: Array) -> Array:
    """Row by row."""
    out = np.empty(len(splits) - 1, object)
    for i in range(len(out)):
        points = []
        for point in values[splits[i] : splits[i + 1]].tolist():
            if 0 <= point <= 0x10FFFF:
                points.append(point)
            elif attrs["errors"] == "replace":
                points.append(attrs["replacement_char"])
        out[i] = _write(points, attrs["output_encoding"])
    return out


# ICU's numbers of some scripts, by the first word of the names of their letters.
_SCRIPTS = {"LATIN": 25, "GREEK": 14, "CYRILLIC": 8, "HEBREW": 19, "ARABIC": 2, "DEVANAGARI": 10,
            "CJK": 17, "HANGUL": 18, "DIGIT": 0, "COMBINING": 1}  # fmt: skip


@reference("UnicodeScript")
def unicode_script(attrs: Attrs, points: Array) -> Array:
    """By the names of characters."""
    out = np.empty(points.shape, np.int32)
    for where in np.ndindex(*points.shape):
        point = int(points[where])
        known = 0 <= point <= 0x10FFFF
        out[where] = _SCRIPTS[unicodedata.name(chr(point)).split()[0]] if known else -1
    return out
