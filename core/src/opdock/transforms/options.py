"""Options of transforms: the keyword-only arguments of their functions, with their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, get_args, get_origin

from opdock import errors

__all__ = ["Option", "options_of", "read_options"]

REQUIRED: Final = inspect.Parameter.empty
_WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
_SINGLE: Final = {str: "string", int: "number", float: "float number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a transform.

    Attributes:
        name: how it is written.
        kind: `str`, `int`, `float` or `bool`.
        many: whether it may come more than once; then its value is a tuple.
        default: the value when it is not given, `REQUIRED` if it must be.
    """

    name: str
    kind: type
    many: bool
    default: Any

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def read(self, transform: str, texts: Sequence[str]) -> Any:
        """The value that the texts of a call say.

        Raises:
            InvalidArgumentError: a text is no such value, or there are several.
        """
        if self.many:
            return tuple(self._one(transform, text) for text in texts)
        if len(texts) != 1:
            raise errors.InvalidArgumentError(
                None, None,
                f"{transform}: Expected a single '{self.name}' parameter, but found {len(texts)} "
                "occurrences",
            )  # fmt: skip
        return self._one(transform, texts[0])

    def _one(self, transform: str, text: str) -> Any:
        if self.kind is str:
            return text
        try:
            return _WORDS[text.lower()] if self.kind is bool else self.kind(text)
        except (ValueError, KeyError):
            expected = " (expected true, false, 0 or 1)" if self.kind is bool else ""
            raise errors.InvalidArgumentError(
                None, None,
                f"{transform}: Couldn't interpret the {self.name} argument as a "
                f"{_SINGLE[self.kind]}:{text}{expected}",
            ) from None  # fmt: skip


def options_of(function: Callable[..., Any]) -> dict[str, Option]:
    """The options that the keyword-only arguments of a function stand for.

    Their annotations are `str`, `int`, `float`, `bool`, one of these or None, or a tuple of any
    number of one of these.

    Raises:
        TypeError: an annotation is something else.
    """
    out = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        kind = parameter.annotation
        many = get_origin(kind) is tuple
        if many or isinstance(kind, UnionType):  # the other part of which is None
            kind = get_args(kind)[0]
        if kind not in _SINGLE:
            raise TypeError(
                f"option {name!r} has the type {kind!r}; expected str, int, float, bool"
            )
        out[name] = Option(name, kind, many, parameter.default)
    return out


def read_options(
    transform: str, options: Mapping[str, Option], given: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The arguments of a transform's function.

    Args:
        transform: its name, for messages.
        options: those that it has.
        given: the values of each option as they were written.

    Raises:
        InvalidArgumentError: there is no such option, one is missing, or a value is malformed.
    """
    for name in given:
        if name not in options:
            known = ", ".join(sorted(options)) or "none"
            raise errors.InvalidArgumentError(
                None, None, f"{transform} has no option '{name}'; it has: {known}"
            )
    for name, option in options.items():
        if option.required and name not in given:
            how = "at least one" if option.many else "exactly one"
            raise errors.InvalidArgumentError(
                None, None,
                f"{transform} expects {how} '{name}' argument, e.g. {transform}({name}=...)",
            )  # fmt: skip
    return {name: options[name].read(transform, texts) for name, texts in given.items()}
