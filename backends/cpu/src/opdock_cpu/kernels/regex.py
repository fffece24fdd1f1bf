"""Kernels of regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.text import regex
from opdock_cpu.text.arrays import Array, array_of, as_bytes, each_distinct, one, shown
from opdock_cpu.text.packed import packed

__all__ = ["table"]

table = KernelTable()

_MANY: Final = 1 << 8
"""Strings for which it pays to make a table of an expression."""


def _compiled(pattern: bytes) -> Any:
    try:
        return regex.compiled(pattern)
    except regex.BadPattern as e:
        raise checks.invalid(f"Invalid pattern: {shown(pattern)}, error: {e}") from None


def _scalar(value: Array, what: str) -> bytes:
    if np.ndim(value) != 0:
        shape = checks.dims(np.shape(value))
        raise checks.invalid(f"{what} must be scalar, but received {shape}")
    return one(value)


def _matches(expression: bytes, strings: Array) -> Array:
    full, shape = _compiled(expression).fullmatch, np.shape(strings)
    automaton = regex.automaton_of(expression) if np.size(strings) >= _MANY else None
    whole = None if automaton is None else packed(strings)
    told = None if automaton is None or whole is None else automaton.matching(whole)
    if told is None:
        found = each_distinct(lambda s: full(s) is not None, strings)
        return np.array(found, np.bool_).reshape(shape)
    out, unknown = told
    if unknown.size:
        asked = np.asarray(strings, object).reshape(-1)[unknown]
        out[unknown] = each_distinct(lambda s: full(s) is not None, asked)
    return out.reshape(shape)


def _replaced(pattern: Any, rewrite: bytes, strings: Array, everywhere: bool) -> Array:
    def one_string(text: bytes) -> bytes:
        return regex.replace(pattern, rewrite, text, everywhere)

    return array_of(each_distinct(one_string, strings), np.shape(strings))


@table.binder("StaticRegexFullMatch")
def static_regex_full_match(sig: NodeSig) -> Callable[[Array], Array]:
    """Which strings match a fixed expression."""
    pattern = as_bytes(sig.attrs["pattern"])
    _compiled(pattern)
    return lambda strings: _matches(pattern, strings)


@table.kernel("RegexFullMatch")
def regex_full_match(ctx: Any, strings: Array, pattern: Array) -> Array:
    """Which strings match an expression."""
    return _matches(_scalar(pattern, "Pattern"), strings)


@table.binder("StaticRegexReplace")
def static_regex_replace(sig: NodeSig) -> Callable[[Array], Array]:
    """Replaces the matches of a fixed expression."""
    pattern = _compiled(as_bytes(sig.attrs["pattern"]))
    rewrite, everywhere = as_bytes(sig.attrs["rewrite"]), sig.attrs["replace_global"]
    return lambda strings: _replaced(pattern, rewrite, strings, everywhere)


@table.binder("RegexReplace")
def regex_replace(sig: NodeSig) -> Callable[..., Array]:
    """Replaces the matches of an expression."""
    everywhere = sig.attrs["replace_global"]

    def run(strings: Array, pattern: Array, rewrite: Array) -> Array:
        expression = _compiled(_scalar(pattern, "Pattern"))
        text = _scalar(rewrite, "Rewrite")
        return _replaced(expression, text, strings, everywhere)

    return run
