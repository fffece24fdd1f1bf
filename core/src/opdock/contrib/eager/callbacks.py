"""What is called after each operation that runs as it is made: `tfe.add_execution_callback`."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from opdock.eager.modes import eager_graph

__all__ = [
    "ExecutionCallback", "InfOrNanError", "add_execution_callback", "clear_execution_callbacks",
    "errstate", "inf_callback", "inf_nan_callback", "nan_callback", "seterr",
]  # fmt: skip

Callback = Callable[[str, Sequence[Any], Any, Sequence[Any], Any], Any]


class ExecutionCallback:
    """What to do about a result that is infinite or not a number."""

    IGNORE: Final = "ignore"
    PRINT: Final = "print"
    RAISE: Final = "raise"
    WARN: Final = "warn"


_ACTIONS: Final = ("ignore", "print", "raise", "warn")


class InfOrNanError(Exception):
    """A result has elements that are infinite or not a number.

    Args:
        op_type, op_name: of the operation.
        output_index: which of its results.
        num_outputs: of how many.
        value: the result, an array.
    """

    def __init__(
        self, op_type: str, op_name: str | None, output_index: int, num_outputs: int, value: Any
    ) -> None:
        array = np.asarray(value)
        self.inf_count = int(np.isinf(array).sum())
        self.nan_count = int(np.isnan(array).sum())
        which = f"Output {output_index} of {num_outputs}" if num_outputs > 1 else "Output"
        named = f" (name: '{op_name}')" if op_name else ""
        super().__init__(
            f"{which} of operation '{op_type}'{named} has {self.inf_count} inf(s) and "
            f"{self.nan_count} nan(s) among its {array.size} element(s), shape {array.shape}."
        )


def inf_nan_callback(
    op_type: str, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Any], op_name: str | None,
    check_inf: bool = True, check_nan: bool = True, action: str = ExecutionCallback.WARN,
) -> None:  # fmt: skip
    """Looks for infinite results, and for some that are not a number.

    Args:
        op_type, inputs, attrs, outputs, op_name: of an operation that ran.
        check_inf, check_nan: what to look for.
        action: what to do when there is some, one of `ExecutionCallback`.

    Raises:
        InfOrNanError: there is some, and `action` says so.
        ValueError: `action` is unknown.
    """
    del inputs, attrs
    action = _action(action)
    for i, output in enumerate(outputs):
        if not (output.dtype.is_floating or output.dtype.is_complex):
            continue
        value = output.value
        if not (
            (check_inf and bool(np.isinf(value).any()))
            or (check_nan and bool(np.isnan(value).any()))
        ):
            continue
        found = InfOrNanError(op_type, op_name, i, len(outputs), value)
        if action == ExecutionCallback.RAISE:
            raise found
        if action == ExecutionCallback.WARN:
            warnings.warn(str(found), stacklevel=2)
        elif action == ExecutionCallback.PRINT:
            print(f"Warning: {found}")


inf_callback = functools.partial(inf_nan_callback, check_nan=False)
nan_callback = functools.partial(inf_nan_callback, check_inf=False)


def add_execution_callback(callback: Callback) -> None:
    """Has a function called after each operation.

    Args:
        callback: takes the operation's type, inputs, attributes (a tuple of names and values in
            turn), results and name.
    """
    eager_graph().callbacks.append(callback)


def clear_execution_callbacks() -> None:
    """No function is called any longer."""
    eager_graph().callbacks.clear()


def seterr(inf_or_nan: str | None = None) -> dict[str, str]:
    """Says what to do about results that are infinite or not a number.

    Args:
        inf_or_nan: one of `ExecutionCallback`; None changes nothing.

    Returns:
        What was done until now, as {"inf_or_nan": ...}.

    Raises:
        ValueError: `inf_or_nan` is unknown.
    """
    wanted = None if inf_or_nan is None else _action(inf_or_nan)
    callbacks = eager_graph().callbacks
    watching = [c for c in callbacks if getattr(c, "func", c) is inf_nan_callback]
    old = next(
        (getattr(c, "keywords", {}).get("action", ExecutionCallback.WARN) for c in watching),
        ExecutionCallback.IGNORE,
    )
    if wanted is not None:
        callbacks[:] = [c for c in callbacks if c not in watching]
        if wanted != ExecutionCallback.IGNORE:
            callbacks.append(functools.partial(inf_nan_callback, action=wanted))
    return {"inf_or_nan": old}


@contextlib.contextmanager
def errstate(inf_or_nan: str | None = None) -> Iterator[None]:
    """`seterr` for a while."""
    old = seterr(inf_or_nan)
    try:
        yield
    finally:
        seterr(**old)


def _action(given: str) -> str:
    if given not in _ACTIONS:
        raise ValueError(f"Invalid action {given!r}: it must be one of {', '.join(_ACTIONS)}")
    return given
