"""`tf.autograph`: Python's control flow runs while a graph is built; no code is rewritten."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn

from opdock import errors

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]


def _none(name: str) -> NoReturn:
    raise errors.UnimplementedError(
        None, None,
        f"tf.autograph.{name}: opdock does not rewrite Python code. Write `if` and `while` over "
        "tensors as tf.cond and tf.while_loop.",
    )  # fmt: skip


def to_graph(
    entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None,
    experimental_optional_features: Any = None,
) -> NoReturn:  # fmt: skip
    """Raises UnimplementedError: opdock does not rewrite Python code."""
    _none("to_graph")


def to_code(
    entity: Any, recursive: bool = True, arg_values: Any = None, arg_types: Any = None,
    indentation: str = "  ", experimental_optional_features: Any = None,
) -> NoReturn:  # fmt: skip
    """Raises UnimplementedError: opdock does not rewrite Python code."""
    _none("to_code")


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: there is no conversion that could tell of itself."""


def trace(*args: Any) -> None:
    """Prints its arguments, as it does in code that is not converted."""
    print(*args)


class _Feature(enum.Enum):
    """Parts of AutoGraph that could be chosen."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


class experimental:
    """`tf.autograph.experimental`."""

    Feature = _Feature

    @staticmethod
    def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
        """Decorator that leaves a function as it is: nothing is converted."""
        return experimental.do_not_convert if func is None else func

    @staticmethod
    def set_loop_options(
        parallel_iterations: Any = None, back_prop: Any = None, swap_memory: Any = None,
        maximum_iterations: Any = None,
    ) -> None:  # fmt: skip
        """Does nothing, as outside of converted loops."""
