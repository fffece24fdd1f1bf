"""Code points of strings in any encoding, with what is malformed in them."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.plugin import checks

Array = np.ndarray[Any, Any]
LAST: Final = 0x10FFFF


@dataclass(frozen=True)
class Policy:
    """What becomes of malformed parts of strings.

    Attributes:
        errors: "strict", "replace" or "ignore".
        replacement: the code point to put in their place.
        controls: whether control characters are malformed.
    """

    errors: str
    replacement: int
    controls: bool

    @classmethod
    def of(cls, attrs: Any) -> Policy:
        """The policy in the attributes of an op; InvalidArgumentError for an impossible one."""
        replacement = attrs["replacement_char"]
        if not 0 <= replacement <= LAST:
            raise checks.invalid("replacement_char out of unicode codepoint range")
        return cls(attrs["errors"], replacement, attrs.get("replace_control_characters", False))


def decoder(encoding: str) -> Callable[[bytes], tuple[Array, Array, Array]]:
    """The function that decodes strings of an encoding.

    Returns:
        From a string to its code points, the bytes that each takes, and which are malformed: each
        malformed part counts as one code point.

    Raises:
        InvalidArgumentError: there is no such encoding.
    """
    name = _codec(encoding)
    size_of = _SIZES.get(name)

    def decode(text: bytes) -> tuple[Array, Array, Array]:
        codec, skipped = _byte_order(name, text) if name in _MARKS else (name, 0)
        try:
            good = text[skipped:].decode(codec)
        except UnicodeDecodeError:
            return in_parts(text, codec, skipped)
        found = _points(good)
        each = _taken(good, found, size_of, codec)
        if skipped:
            each[:1] += skipped
        return found, each, np.zeros(len(found), np.bool_)

    def in_parts(text: bytes, codec: str, skipped: int) -> tuple[Array, Array, Array]:
        points: list[Array] = []
        sizes: list[Array] = []
        bad: list[Array] = []
        at = skipped
        while at < len(text):
            rest = text[at:]
            try:
                good, wrong = rest.decode(codec), 0
                end = len(rest)
            except UnicodeDecodeError as e:
                good, wrong, end = rest[: e.start].decode(codec), e.end - e.start, e.start
            found = _points(good)
            points.append(found)
            sizes.append(_taken(good, found, size_of, codec))
            bad.append(np.zeros(len(found), np.bool_))
            if wrong:
                points.append(np.array([0xFFFD], np.int32))
                sizes.append(np.array([wrong], np.int64))
                bad.append(np.array([True]))
            at += end + wrong
        if skipped:
            sizes[0][:1] += skipped
        return np.concatenate(points), np.concatenate(sizes), np.concatenate(bad)

    return decode


def reader(encoding: str) -> Callable[[bytes], str | None]:
    """The function that reads strings of an encoding; it gives None where one is malformed.

    Raises:
        InvalidArgumentError: there is no such encoding.
    """
    name = _codec(encoding)

    def read(text: bytes) -> str | None:
        codec, skipped = _byte_order(name, text) if name in _MARKS else (name, 0)
        try:
            return text[skipped:].decode(codec)
        except UnicodeDecodeError:
            return None

    return read


def _codec(encoding: str) -> str:
    # ICU looks past punctuation and case, as Python does.
    try:
        name = codecs.lookup(encoding).name
        b"".decode(name)
    except (LookupError, ValueError):
        raise checks.invalid(f"Could not create converter for input encoding: {encoding}") from None
    return name


# The marks of little and of big endian strings.
_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def _byte_order(name: str, text: bytes) -> tuple[str, int]:
    """The codec of a string, by its mark, and the bytes that the mark takes."""
    little, big = _MARKS[name]
    if text.startswith(little):
        return f"{name}-le", len(little)
    return f"{name}-be", len(big) if text.startswith(big) else 0


def _points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int32)


_SIZES: Final[dict[str, Callable[[Array], Array]]] = {
    "utf-8": lambda p: 1 + (p > 0x7F).astype(np.int64) + (p > 0x7FF) + (p > 0xFFFF),
    "utf-16": lambda p: 2 + 2 * (p > 0xFFFF).astype(np.int64),
    "utf-16-be": lambda p: 2 + 2 * (p > 0xFFFF).astype(np.int64),
    "utf-16-le": lambda p: 2 + 2 * (p > 0xFFFF).astype(np.int64),
    "utf-32-be": lambda p: np.full(len(p), 4, np.int64),
    "utf-32-le": lambda p: np.full(len(p), 4, np.int64),
}


def _taken(text: str, points: Array, size_of: Callable[[Array], Array] | None, codec: str) -> Array:
    if size_of is not None:
        return size_of(points)
    return np.fromiter((len(c.encode(codec, "replace")) for c in text), np.int64, len(points))


def cleaned(points: Array, sizes: Array, bad: Array, policy: Policy) -> tuple[Array, Array]:
    """Code points as a policy wants them, and the bytes at which each begins."""
    starts = np.cumsum(sizes) - sizes
    if policy.controls:
        bad = bad | (points <= 0x1F)
    if not bad.any():
        return points, starts
    if policy.errors == "ignore":
        return points[~bad], starts[~bad]
    return np.where(bad, np.int32(policy.replacement), points), starts


def malformed() -> Exception:
    """The error of a malformed string."""
    return checks.invalid("Invalid formatting on input string")


def encoded(points: Array, encoding: str) -> bytes:
    """A string of code points in UTF-8, UTF-16-BE or UTF-32-BE.

    Two surrogates that belong together are one character; one alone is U+FFFD in UTF-8.
    """
    raw = np.ascontiguousarray(points, "<u4").tobytes()
    text = raw.decode("utf-32-le", "surrogatepass")
    if ((points >= 0xD800) & (points <= 0xDFFF)).any():
        units = text.encode("utf-16-be", "surrogatepass")
        text = units.decode("utf-16-be", "replace" if encoding == "UTF-8" else "surrogatepass")
    return text.encode(encoding.lower(), "surrogatepass")
