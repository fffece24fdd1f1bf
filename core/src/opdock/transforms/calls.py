r"""TensorFlow's way of writing down transforms: "name(option=value, option=\"a,b\") name"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from opdock import errors

__all__ = ["Call", "parse_calls"]

_SPACE: Final = re.compile(r"(?:\s|\\\n)*")
_NAME: Final = re.compile(r"\w+", re.ASCII)
_VALUE: Final = re.compile(r"[\w./-]+", re.ASCII)
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_COMMA: Final = re.compile(r",?")


@dataclass(frozen=True, slots=True)
class Call:
    """A transform by name, with its options as they were written.

    Attributes:
        name: the transform's.
        options: all values of each option, in order.
    """

    name: str
    options: dict[str, list[str]]


def parse_calls(text: str) -> list[Call]:
    """Reads a list of transforms.

    Args:
        text: names with spaces between them, each with options in parentheses or without. A value
            that has other characters than letters, digits and "_-./" stands in double quotes. An
            option may come more than once.

    Raises:
        InvalidArgumentError: the text is malformed; the message has the rest from there on.
    """
    return list(_Reader(text).calls())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def calls(self) -> Iterator[Call]:
        self._take(_SPACE)
        while self._at < len(self._text):
            name = self._expect(_NAME, "transform name")
            options: dict[str, list[str]] = {}
            if self._skip("("):
                self._options(options)
            yield Call(name, options)
            self._take(_SPACE)

    def _options(self, options: dict[str, list[str]]) -> None:
        self._take(_SPACE)
        while not self._skip(")"):
            name = self._expect(_NAME, "parameter name")
            self._take(_SPACE)
            if not self._skip("="):
                raise self._error("=")
            self._take(_SPACE)
            options.setdefault(name, []).append(self._value())
            self._take(_SPACE)
            self._take(_COMMA)
            self._take(_SPACE)

    def _value(self) -> str:
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            return self._expect(_VALUE, "parameter value")
        self._at = quoted.end()
        return re.sub(r"\\(.)", r"\1", quoted.group(1), flags=re.DOTALL)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()

    def _expect(self, pattern: re.Pattern[str], what: str) -> str:
        found = self._take(pattern)
        if not found:
            raise self._error(what)
        return found

    def _skip(self, mark: str) -> bool:
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) * found
        return found

    def _error(self, what: str) -> errors.InvalidArgumentError:
        rest = self._text[self._at :] or "the end"
        return errors.InvalidArgumentError(None, None, f"Looking for {what}, but found {rest}")
