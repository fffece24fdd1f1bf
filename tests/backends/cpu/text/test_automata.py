"""What automata say of strings is what RE2 says."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import looped, strings
from opdock_cpu.text import regex
from opdock_cpu.text.automata import automaton
from opdock_cpu.text.packed import packed
from tests.backends.cpu.looped import given

pytest.importorskip("re2", reason="automata stand beside RE2, of which they are no part")

ATOMS = [
    *(b"a", b"b", b"0", b"-", b" ", b"]", b"}", b".", b"^", b"$", b"\\A", b"\\z", b"\\.", b"\\-"),
    *(b"\\d", b"\\D", b"\\w", b"\\W", b"\\s", b"\\S", b"\\n", b"\\t", b"[a-c]", b"[^ab]", b"[]a]"),
    *(b"[\\w.]", b"[a-]", b"[-a]", b"[+--]", b"[^\\d\\n]", b"[\\]-a]", b"[\\s\\S]", b"[^]a]"),
]
REPEATS = [b"*", b"+", b"?", b"{2}", b"{1,}", b"{0,2}", b"{1,3}", b"{0}", b"*?", b"+?", b"??"]
LETTERS = b"abcx01 .-\n\t_+]}"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generated code is there for few strings too."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(strings, "_WORTH", 1)
    monkeypatch.setattr(looped, "_SMALL", 0)


def _pattern(chance: random.Random, depth: int) -> bytes:
    kind = chance.random() if depth else 0.0
    if kind < 0.35:
        return chance.choice(ATOMS)
    first, second = (_pattern(chance, depth - 1) for _ in range(2))
    if kind < 0.6:
        return first + second
    if kind < 0.75:
        return chance.choice([b"(", b"(?:"]) + first + b"|" + second + b")"
    part = b"(" + first + b")" if kind < 0.9 else chance.choice(ATOMS)
    return part + chance.choice(REPEATS)


def _array(texts: Sequence[bytes]) -> Any:
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


@pytest.mark.parametrize("seed", range(8))
def test_expressions_of_chance(seed: int) -> None:
    chance = random.Random(seed)
    asked = 0
    for _ in range(100):
        pattern = _pattern(chance, 4)
        texts = [bytes(chance.choices(LETTERS, k=chance.randrange(6))) for _ in range(254)]
        texts += [b"", b"\xc3\xa9", b"a\xff"]
        compiled, found = regex.compiled(pattern), regex.automaton_of(pattern)
        whole = packed(_array(texts))
        assert found is not None and whole is not None
        told = found.matching(whole)
        assert told is not None
        matches, unknown = told
        assert all(max(texts[i]) > 127 for i in unknown)
        for i in np.setdiff1d(np.arange(len(texts)), unknown):
            asked += 1
            assert matches[i] == (compiled.fullmatch(texts[i]) is not None), (pattern, texts[i])
    assert asked > 20000


@pytest.mark.parametrize(
    "pattern",
    [
        *(b"(?i)a", b"\\bword", b"a{1001}", b"\\pN+", b"\\x41", b"[[:alpha:]]", "é+".encode()),
        *(b"(" * 60 + b")" * 60, b"(a{99}){99}", b"(a|b)*a(a|b){12}", b"x{", b"[a-c-e]", b"a**"),
    ],
)
def test_there_is_none_of_what_goes_further(pattern: bytes) -> None:
    assert automaton(pattern) is None


def test_the_beginning_is_no_other_place_of_the_same_kind() -> None:
    """Behind a letter the same is reached as in front of it, but no beginning."""
    found, whole = automaton(b"a*$^"), packed(_array([b"", b"a"] * 200))
    assert found is not None and whole is not None
    told = found.matching(whole)
    assert told is not None and told[0].tolist() == [True, False] * 200


@pytest.mark.parametrize("pattern", ["[a-z]+é?", "(a|bc)*.?", "(?i)A.*", "a(b+c?|.)*$"])
def test_kernels_ask_re2_of_what_is_no_ascii(both: Callable[..., Any], pattern: str) -> None:
    chance = random.Random(3)
    pieces = [b"a", b"b", b"c", b"\xc3\xa9", b"\xff", b"\n", b""]
    texts = _array([b"".join(chance.choices(pieces, k=5)) for _ in range(1200)])

    def build() -> Any:
        x = tf.reshape(given(texts), [300, 4])
        return [tf.strings.regex_full_match(x, pattern), tf.strings.regex_full_match(x, given(
            np.array(pattern.encode(), object)))]  # fmt: skip

    found, wanted = both(build)
    compiled = regex.compiled(pattern.encode())
    asked = [compiled.fullmatch(text) is not None for text in texts]
    assert any(asked) and not all(asked)
    for one in (*found, *wanted):
        assert one.shape == (300, 4) and one.reshape(-1).tolist() == asked
