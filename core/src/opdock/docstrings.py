"""Docstrings of families: functions that take the same arguments explain them in the same words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_WIDTH = 96

ELEMENTWISE: Mapping[str, str] = {
    **dict.fromkeys(("x", "input"), "a tensor, or what converts to one."),
    "name": "a name for the operation.",
    "returns": "A tensor of the same shape.",
    "raises": "TypeError: the elements are of a type that is not allowed.",
}
"""What functions of each element say."""
PAIRWISE: Mapping[str, str] = {
    "x": "a tensor, or what converts to one.",
    "y": "a tensor of the same type, whose shape broadcasts.",
    "name": "a name for the operation.",
    "returns": "A tensor of the shape to which both broadcast.",
    "raises": "TypeError: the types differ, or are not allowed.\n"
    "ValueError: the shapes do not broadcast (InvalidArgumentError where only a step shows it).",
}
"""What functions of pairs of elements say."""


def explained(words: Mapping[str, str], **own: str) -> Callable[[_F], _F]:
    """A decorator that adds the sections Args, Returns and Raises to a docstring.

    It stands below decorators that wrap the function, since it asks the function for its arguments.

    Args:
        words: what each argument of the family is; also what its functions return and when they
            raise, under "returns" and "raises", a line for each error.
        own: what differs in this function.
    """
    texts = {**words, **own}

    def complete(function: _F) -> _F:
        doc = function.__doc__
        if doc is not None:  # there is none under -OO
            code = function.__code__
            names = code.co_varnames[: code.co_argcount]
            summary = inspect.cleandoc(doc) if "\n" in doc else doc
            sections = [summary, f"Args:{_indented(_entries(names, texts))}"]
            for title in ("Returns", "Raises"):
                text = texts.get(title.lower())
                if text:
                    indent = "    " if title == "Raises" else ""
                    entries = (_wrapped(line, indent) for line in text.split("\n"))
                    sections.append(f"{title}:{_indented(entries)}")
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


def _indented(paragraphs: Iterable[str]) -> str:
    return "".join(f"\n    {p}" for p in paragraphs)


@functools.lru_cache(maxsize=1024)
def _wrapped(text: str, indent: str) -> str:
    """A paragraph in an indented section, its lines after the first indented further.

    Modules do this for all their functions when they are imported, hence not by `textwrap`.
    """
    lines, line, start = [], "", ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line, start = "", indent
        line = f"{line} {word}" if line else start + word
    return "\n    ".join([*lines, line])
