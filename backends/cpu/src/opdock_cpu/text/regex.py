r"""Regular expressions as RE2 reads them.

The package `google-re2` is RE2 itself: its syntax, and time linear in the string, whatever the
expression. Where it is missing, Python's `re` stands in. It reads most expressions alike, but not
all: it has no `\pN`, `\z`, `\C` or `[[:alpha:]]`, takes look-around and back references, which RE2
refuses, works on bytes rather than UTF-8, and may take exponential time.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

from opdock_cpu.text.arrays import shown
from opdock_cpu.text.automata import Automaton, automaton


@functools.cache
def _re2() -> Any:
    """The package, or None; it is imported when the first expression is."""
    try:
        return importlib.import_module("re2")
    except ImportError:
        return None


class BadPattern(ValueError):
    """A malformed expression; the message is the engine's."""


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes, engine: str = "") -> Any:
    """An expression over bytes, with the methods of `re.Pattern`.

    Args:
        pattern: the expression.
        engine: "re" for Python's; the best one by default.

    Raises:
        BadPattern: it is malformed.
    """
    re2 = None if engine == "re" else _re2()
    if re2 is None:
        try:
            return re.compile(pattern)
        except re.error as e:
            raise BadPattern(str(e)) from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as e:
        # The class hands on the engine's text, as bytes.
        told = e.args[0] if e.args else ""
        raise BadPattern(shown(told) if isinstance(told, bytes) else str(told)) from None


def automaton_of(pattern: bytes) -> Automaton | None:
    """A table that says which strings match, as RE2 does; None without it, or where there is none.

    Args:
        pattern: what `compiled` has read.
    """
    return None if _re2() is None else automaton(pattern)


def replace(pattern: Any, rewrite: bytes, text: bytes, everywhere: bool) -> bytes:
    r"""`text` with its matches replaced as RE2 does it.

    An empty match right behind another match does not count. A rewrite that names a group which
    the expression has not, or has a stray backslash, changes nothing.

    Args:
        pattern: what `compiled` gave.
        rewrite: `\0` to `\9` stand for groups, `\\` for a backslash.
        text: the string.
        everywhere: replace all matches rather than the first.
    """
    pieces = _pieces(rewrite)
    if pieces is None or any(isinstance(p, int) and p > pattern.groups for p in pieces):
        return text
    out, at, last, size = [], 0, -1, len(text)
    while at <= size:
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.start(), match.end()
        out.append(text[at:start])
        if start == end == last:
            # One character further; in UTF-8, past all of its bytes.
            step = _character(text, start)
            out.append(text[start : start + step])
            at, last = start + step, -1
            continue
        out += [p if isinstance(p, bytes) else match.group(p) or b"" for p in pieces]
        at = last = end
        if not everywhere:
            break
    return b"".join(out) + text[at:]


def _character(text: bytes, at: int) -> int:
    end = at + 1
    while end < len(text) and text[end] & 0xC0 == 0x80:
        end += 1
    return end - at


@functools.lru_cache(maxsize=256)
def _pieces(rewrite: bytes) -> tuple[bytes | int, ...] | None:
    """Text and numbers of groups, or None for a stray backslash."""
    out: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        found = rewrite.find(b"\\", at)
        if found < 0:
            out.append(rewrite[at:])
            break
        out.append(rewrite[at:found])
        mark = rewrite[found + 1 : found + 2]
        if mark.isdigit():
            out.append(int(mark))
        elif mark == b"\\":
            out.append(b"\\")
        else:
            return None
        at = found + 2
    return tuple(out)
