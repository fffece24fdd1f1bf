"""Docstrings of families: functions that take the same arguments explain them in the same words."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_WIDTH = 96


def explained(words: Mapping[str, str], **own: str) -> Callable[[_F], _F]:
    """A decorator that adds the sections Args, Returns and Raises to a docstring.

    Args:
        words: what each argument of the family is; also what its functions return and when they
            raise, under "returns" and "raises".
        own: what differs in this function.
    """
    texts = {**words, **own}

    def complete(function: _F) -> _F:
        if function.__doc__ is not None:  # there is none under -OO
            code = function.__code__
            names = code.co_varnames[: code.co_argcount]
            args = textwrap.indent("\n".join(_entries(names, texts)), "    ")
            sections = [textwrap.dedent(function.__doc__).strip(), f"Args:\n{args}"]
            for title in ("Returns", "Raises"):
                text = texts.get(title.lower())
                if text:
                    sections.append(f"{title}:\n" + textwrap.indent(_wrapped(text, ""), "    "))
            function.__doc__ = "\n\n".join(sections)
        return function

    return complete


def _entries(names: tuple[str, ...], texts: Mapping[str, str]) -> Iterator[str]:
    """A paragraph for each argument, or for several in a row of which the same is said."""
    start = 0
    for i, name in enumerate(names):
        if i + 1 == len(names) or texts[names[i + 1]] != texts[name]:
            yield _wrapped(f"{', '.join(names[start : i + 1])}: {texts[name]}", "    ")
            start = i + 1


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent)
