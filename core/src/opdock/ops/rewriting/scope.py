"""The scope of a rewritten function: what is around its body, and where Python finds its names."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.effects import after, in_order
from opdock.ops.rewriting.status import ControlStatusCtx, ConversionOptions, Feature, Status
from opdock.ops.rewriting.undefined import Undefined, UndefinedReturnValue

__all__ = [
    "FunctionScope", "eval_in_caller", "names_in_caller", "super_in_caller", "with_function_scope",
]  # fmt: skip


class FunctionScope:
    """The context in which the body of a rewritten function runs.

    Args:
        function_name: the function's name, for a name scope if the options ask for one.
        scope_name: the variable in which the rewritten function keeps this.
        options: how it was converted.
    """

    def __init__(self, function_name: str, scope_name: str, options: ConversionOptions) -> None:
        self.name = scope_name
        self.options = options
        self.callopts = options.call_options()
        self._function_name = function_name
        self._contexts = contextlib.ExitStack()
        self._before: int | None = None

    def __enter__(self) -> Self:
        if self.options.user_requested:
            self._contexts.enter_context(ControlStatusCtx(Status.ENABLED, self.options))
        if self.options.uses(Feature.NAME_SCOPES):
            name = self._function_name
            # A scope at the top begins with a letter.
            self._contexts.enter_context(name_scope("fn" + name if name.startswith("_") else name))
        if self.options.uses(Feature.AUTO_CONTROL_DEPS):
            self._before = len(get_default_graph().get_operations())
        return self

    def __exit__(self, *error: object) -> None:
        self._contexts.close()

    def ret(self, value: Any, did_return: Any) -> Any:
        """What the function returns, once its effects have happened if the options say so."""
        if isinstance(value, UndefinedReturnValue):
            return None
        if self._before is None or value is None:
            return value
        return after(in_order(get_default_graph().get_operations()[self._before :]), value)

    def mark_return_value(self, value: Any) -> Any:
        """`ret` as TensorFlow 1.15 calls it."""
        return self.ret(value, True)


def with_function_scope(
    thunk: Callable[[FunctionScope], Any], scope_name: str, options: ConversionOptions
) -> Any:
    """The value of a lambda's body in its scope."""
    with FunctionScope("lambda_", scope_name, options) as scope:
        return thunk(scope)


def _frames_of(scope: FunctionScope) -> list[FrameType]:
    """The frames of a rewritten function and of its parts, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        if frame.f_locals.get(scope.name) is scope:
            found.append(frame)
        frame = frame.f_back
    assert found
    return found


def _names(scope: FunctionScope) -> dict[str, Any]:
    """The variables that the function has by now, its parts' own ones included."""
    found: dict[str, Any] = {}
    for frame in reversed(_frames_of(scope)):
        found.update(frame.f_locals)
    found.pop(scope.name, None)
    return {name: v for name, v in found.items() if not isinstance(v, Undefined)}


def eval_in_caller(
    evaluate: Callable[..., Any], args: tuple[Any, ...], scope: FunctionScope
) -> Any:
    """`eval` where the rewritten function calls it."""
    around = (_frames_of(scope)[0].f_globals, _names(scope))
    return evaluate(args[0], *args[1:], *around[len(args) - 1 :])


def super_in_caller(of: Callable[..., Any], args: tuple[Any, ...], scope: FunctionScope) -> Any:
    """`super` where the rewritten function calls it."""
    if args:
        return of(*args)
    frame = _frames_of(scope)[-1]
    return of(frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])


def names_in_caller(which: Any, scope: FunctionScope) -> dict[str, Any]:
    """`globals` or `locals` where the rewritten function calls it."""
    return _frames_of(scope)[0].f_globals if which is globals else _names(scope)
