"""Functions that are put together by operators: what a spec is made of."""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Callable as AnyCallable
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "Callable", "Composable", "Composition", "External", "Function", "Import", "Operator",
    "check_keywords", "debug", "get_positional",
]  # fmt: skip

_QUOTED = re.compile(r""" "([^"\\]|\\.)*" | '([^'\\]|\\.)*' """, re.VERBOSE)
_KEYWORDS = re.compile(r"\b(import|while|def|exec)\b")


def check_keywords(spec: str) -> None:
    """Sees to it that a spec keeps to assignments; it is Python all the same, and no sandbox.

    Raises:
        ValueError: it has `import`, `while`, `def` or `exec` outside of quotes.
    """
    found = _KEYWORDS.search(_QUOTED.sub("", spec))
    if found is not None:
        raise ValueError(f"keyword '{found.group(1)}' found in spec")


def get_positional(
    args: Sequence[Any], kw: Mapping[str, Any], kw_overrides: bool = False
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments of which some were given as `_0=`, `_1=`, as those and the other keywords.

    Args:
        args: what was given by position.
        kw: what was given by name.
        kw_overrides: whether `_0=` leads over what was given by position as well.
    """
    rest = {name: value for name, value in kw.items() if not name.startswith("_")}
    if len(rest) == len(kw):
        return args, kw
    found = list(args)
    for name, value in kw.items():
        if name.startswith("_"):
            index = int(name[1:])
            found += [None] * (index + 1 - len(found))
            if kw_overrides or found[index] is None:
                found[index] = value
    return found, rest


class Composable:
    """A function of one argument: `f | g` is g of f, `f ** n` f n times, `f + g` their sum."""

    def funcall(self, x: Any) -> Any:
        """The function's value."""
        raise NotImplementedError

    def __or__(self, f: Composable) -> Composable:
        return Composition(self, f)

    def __add__(self, g: Composable) -> Composable:
        return Operator(operator.add, self, g)

    def __mul__(self, g: Composable) -> Composable:
        return Operator(operator.mul, self, g)

    def __pow__(self, n: int) -> Composable:
        if n < 0:
            raise ValueError(f"a function is applied 0 times or more, not {n}")
        if n == 0:
            return Function(lambda x: x)
        result: Composable = self
        for _ in range(n - 1):
            result = Composition(result, self)
        return result


class Callable(Composable):
    """A function as it is."""

    def __init__(self, f: AnyCallable[[Any], Any]) -> None:
        self.f = f

    def funcall(self, x: Any) -> Any:
        """The function's value."""
        return self.f(x)


class Operator(Composable):
    """A function of what others make of the same argument."""

    def __init__(self, op: AnyCallable[..., Any], *args: Composable) -> None:
        self.op = op
        self.funs = args

    def funcall(self, x: Any) -> Any:
        """The function's value."""
        return self.op(*(f.funcall(x) for f in self.funs))


class Function(Composable):
    """A function whose other arguments are given first, by calls, and its own by `funcall`.

    Raises:
        ValueError: it cannot be called.
    """

    def __init__(self, f: AnyCallable[..., Any], *args: Any, **kw: Any) -> None:
        if not callable(f):
            raise ValueError(f"{f}: is not callable")
        self.f = f
        self.args = list(args)
        self.kw = kw

    def __call__(self, *args: Any, **kw: Any) -> Function:
        """The function with more of its other arguments: positions before those that it has."""
        return Function(self.f, *args, *self.args, **{**self.kw, **kw})

    def funcall(self, x: Any) -> Any:
        """The function's value."""
        args, kw = get_positional(self.args, self.kw)
        if _telling:
            print("DEBUG:", self.f, x, args, kw)
        return self.f(x, *args, **kw)


class Composition(Composable):
    """One function after another."""

    def __init__(self, f: Composable, g: Composable) -> None:
        self.f = f
        self.g = g

    def funcall(self, x: Any) -> Any:
        """The function's value."""
        return self.g.funcall(self.f.funcall(x))


def External(module_name: str, function_name: str) -> Function:
    """A function of a module, which is imported."""
    return Function(getattr(importlib.import_module(module_name), function_name))


def Import(statements: str) -> Function:
    """The function that Python statements call `f`.

    Raises:
        ValueError: they call nothing so.
    """
    names: dict[str, Any] = {}
    exec(statements, names)  # noqa: S102 - what the spec asks to run
    if "f" not in names:
        raise ValueError(f'failed to define "f": {statements}')
    return Function(names["f"])


_telling = False


def debug(mode: bool = True) -> None:
    """Whether functions print what they are called with."""
    global _telling
    _telling = mode
