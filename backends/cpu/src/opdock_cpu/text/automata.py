"""Regular expressions as tables, by which generated code tells which of many strings match.

To ask RE2 from Python takes a call for each string. What most expressions consist of is exact as a
deterministic automaton over ASCII, a step a byte (K. Thompson, "Regular expression search
algorithm", 1968): letters, classes, groups, alternatives, repetitions, and the ends of the text. Of
an expression with more in it there is no automaton, and of a string with other bytes it says that
it does not know: RE2 is asked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.text.packed import Packed

__all__ = ["Automaton", "automaton"]

_ALL: Final = (1 << 128) - 1
"""A set of characters of ASCII is a number, with a bit for each."""
_PLACES: Final = 1 << 11
"""Places of an expression, repetitions written out, beyond which there is no automaton."""
_WORK: Final = 1 << 15
"""Places that are looked at, for every state and kind of character, while the table is made."""
_DEPTH: Final = 50
"""Groups within each other, likewise."""
_REPEAT: Final = re.compile(rb"\{(\d{1,3})(,(\d{0,3}))?\}")
_GROUP: Final = re.compile(rb"\((\?:|\?P<\w+>|(?!\?))")
_NO, _YES, _UNKNOWN = 0, 1, 2


class _Beyond(Exception):
    """There is something in the expression that these tables do not have."""


# ---------------------------------------------------------------- sets of characters
def _set(characters: Iterable[int]) -> int:
    return sum(1 << c for c in set(characters))


_DIGITS: Final = _set(b"0123456789")
_WORDS: Final = _DIGITS | _set(b"_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SPACES: Final = _set(b" \t\n\f\r")
_CLASSES: Final = {
    b"d": _DIGITS, b"w": _WORDS, b"s": _SPACES,
    b"D": _ALL ^ _DIGITS, b"W": _ALL ^ _WORDS, b"S": _ALL ^ _SPACES,
}  # fmt: skip
_CONTROLS: Final = {b"a": 7, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}
_ANY: Final = _ALL ^ _set(b"\n")


# ---------------------------------------------------------------- expressions
@dataclass(frozen=True)
class _Place:
    """Where a reader of the text stands in the expression.

    Attributes:
        take: the characters that lead on; 0 where none has to be taken.
        to: the places behind it.
        only: "begin" or "end" where it leads on at that end of the text alone.
    """

    take: int
    to: tuple[int, ...]
    only: str = ""


_Part = Callable[[int], int]
"""Writes a part of an expression in front of a place, and says where it begins."""


class _Reader:
    """Reads an expression into places; the first is that behind the whole of it."""

    def __init__(self, text: bytes) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self.places = [_Place(0, ())]
        whole = self._either()
        if self._at < len(text):
            raise _Beyond
        self.start = whole(0)

    def _add(self, place: _Place) -> int:
        if len(self.places) >= _PLACES:
            raise _Beyond
        self.places.append(place)
        return len(self.places) - 1

    def _next(self) -> bytes:
        return self._text[self._at : self._at + 1]

    def _taken(self) -> bytes:
        found = self._next()
        if not found or found[0] > 127:
            raise _Beyond
        self._at += 1
        return found

    def _either(self) -> _Part:
        parts = [self._row()]
        while self._next() == b"|":
            self._at += 1
            parts.append(self._row())
        if len(parts) == 1:
            return parts[0]
        return lambda after: self._add(_Place(0, tuple(part(after) for part in parts)))

    def _row(self) -> _Part:
        parts: list[_Part] = []
        while self._next() not in (b"", b"|", b")"):
            parts.append(self._repeated(self._one()))

        def write(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return write

    def _one(self) -> _Part:
        group = _GROUP.match(self._text, self._at)
        if group is not None:
            self._at = group.end()
            self._depth += 1
            if self._depth > _DEPTH:
                raise _Beyond
            inside = self._either()
            self._depth -= 1
            if self._taken() != b")":
                raise _Beyond
            return inside
        match self._taken():
            case b".":
                return self._character(_ANY)
            case b"[":
                return self._character(self._class())
            case b"^":
                return self._only("begin")
            case b"$":
                return self._only("end")
            case b"\\":
                return self._escaped()
            case b"(" | b"*" | b"+" | b"?" | b"{":
                raise _Beyond
            case other:
                return self._character(1 << other[0])

    def _character(self, which: int) -> _Part:
        return lambda after: self._add(_Place(which, (after,)))

    def _only(self, end: str) -> _Part:
        return lambda after: self._add(_Place(0, (after,), end))

    def _escaped(self) -> _Part:
        ends = {b"A": "begin", b"z": "end"}
        if self._next() in ends:
            return self._only(ends[self._taken()])
        return self._character(self._escape())

    def _escape(self) -> int:
        """The set behind a backslash."""
        letter = self._taken()
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in _CONTROLS:
            return 1 << _CONTROLS[letter]
        if letter.isalnum():
            raise _Beyond
        return 1 << letter[0]

    def _class(self) -> int:
        """The set in brackets, of which the first was taken."""
        negated = self._next() == b"^"
        self._at += negated
        found, first = 0, self._at
        while self._at == first or self._next() != b"]":
            low = self._member(first)
            if self._next() == b"-" and self._text[self._at + 1 : self._at + 2] != b"]":
                self._at += 1
                high = self._member(first)
                if low.bit_count() != 1 or high.bit_count() != 1:
                    raise _Beyond
                low = _set(range(low.bit_length() - 1, high.bit_length()))
            found |= low
        self._at += 1
        return _ALL ^ found if negated else found

    def _member(self, first: int) -> int:
        letter = self._taken()
        if letter == b"\\":
            return self._escape()
        # What RE2 makes of these depends on what stands around them.
        if letter == b"[" or (letter == b"-" and self._at - 1 != first and self._next() != b"]"):
            raise _Beyond
        return 1 << letter[0]

    def _repeated(self, part: _Part) -> _Part:
        simple = {b"*": (0, None), b"+": (1, None), b"?": (0, 1)}
        least: int
        most: int | None
        counted = _REPEAT.match(self._text, self._at)
        if counted is not None:
            self._at = counted.end()
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3]) if counted[3] else None
        elif self._next() in simple:
            least, most = simple[self._taken()]
        else:
            return part
        self._at += self._next() == b"?"  # which of the matches it prefers does not count
        if self._next() in simple or self._next() == b"{":
            raise _Beyond
        return self._times(part, least, most)

    def _times(self, part: _Part, least: int, most: int | None) -> _Part:
        def write(after: int) -> int:
            if most is None:
                at = self._add(_Place(0, (after,)))
                self.places[at] = _Place(0, (part(at), after))
            else:
                at = after
                for _ in range(most - least):
                    at = self._add(_Place(0, (part(at), after)))
            for _ in range(least):
                at = part(at)
            return at

        return write


# ---------------------------------------------------------------- automata
def _reached(places: list[_Place], start: Iterable[int], ends: tuple[str, ...]) -> frozenset[int]:
    """All places to which no character leads, at these ends of the text."""
    found, more = set[int](), list(start)
    while more:
        at = more.pop()
        if at not in found:
            found.add(at)
            place = places[at]
            if not place.take and (not place.only or place.only in ends):
                more += place.to
    return frozenset(found)


def _kinds(sets: Iterable[int]) -> list[int]:
    """The characters in parts, each of which is in a set as a whole or not at all."""
    kinds = [_ALL]
    for one in sets:
        kinds = [part for kind in kinds for part in (kind & one, kind & ~one) if part]
    return kinds


def _walk(
    begin: int, end: int, out: Array, data: Array, bounds: Array, kinds: Array, table: Array,
    verdicts: Array, start: int,
) -> None:  # fmt: skip
    """A state is the place of its row in the table; in the first row nothing matches any more."""
    for i in range(begin, end):
        state, at, last = start, bounds[i], bounds[i + 1]
        while at < last and state > 0:
            state = table[state + kinds[data[at]]]
            at += 1
        out[i] = verdicts[state]


_WALK: Final = Looped(_walk)


class Automaton:
    """A table of states: which one comes after another one by the next byte.

    Raises:
        _Beyond: there is none of the expression.
    """

    def __init__(self, pattern: bytes) -> None:
        read = _Reader(pattern)
        places, kinds = read.places, _kinds({p.take for p in read.places if p.take})
        # The first state has none of the places, the next is behind another byte than ASCII's, and
        # the third is where the text begins.
        nowhere, start = frozenset[int](), _reached(places, [read.start], ("begin",))
        states = [nowhere, nowhere, start]
        numbers, rows, work = {nowhere: 0}, [[0] * len(kinds), [1] * len(kinds)], 0
        while len(rows) < len(states):
            state, row = states[len(rows)], []
            for kind in kinds:
                ahead = [places[at].to[0] for at in state if places[at].take & kind]
                found = _reached(places, ahead, ())
                work += 1 + len(state) + len(found)
                if work > _WORK:
                    raise _Beyond
                if found not in numbers:
                    numbers[found] = len(states)
                    states.append(found)
                row.append(numbers[found])
            rows.append(row)
        width = len(kinds) + 1
        # Behind the kinds of ASCII there is that of all other bytes.
        self._table = np.array([[*row, 1] for row in rows], np.int32).reshape(-1) * width
        self._table[:width] = 0
        self._kinds = np.full(256, len(kinds), np.uint8)
        for i, kind in enumerate(kinds):
            self._kinds[[c for c in range(128) if kind >> c & 1]] = i
        self._verdicts = np.zeros(self._table.size, np.uint8)
        self._verdicts[width] = _UNKNOWN
        for number, state in enumerate(states):
            ends = ("begin", "end") if number == 2 else ("end",)
            if 0 in _reached(places, state, ends):
                self._verdicts[number * width] = _YES
        self._start = 2 * width

    def matching(self, strings: Packed) -> tuple[Array, Array] | None:
        """Which strings match as a whole, and the places of those of which it does not know.

        None if there is no code.
        """
        count, steps = strings.starts.size, strings.data.size + strings.starts.size
        out = np.empty(count, np.uint8)
        tables = self._kinds, self._table, self._verdicts
        if not _WALK(count, steps, out, strings.data, strings.bounds, *tables, self._start):
            return None
        return out == _YES, np.flatnonzero(out == _UNKNOWN)


@functools.lru_cache(maxsize=256)
def automaton(pattern: bytes) -> Automaton | None:
    """The automaton of an expression that RE2 has read; None where there is none."""
    try:
        return Automaton(pattern)
    except _Beyond:
        return None
