"""How the part of the sign in AddSign and PowerSign shrinks with the steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.arithmetic import minimum, mod
from opdock.ops.cast import cast
from opdock.ops.select import where
from opdock.ops.trig import cos

__all__ = ["get_cosine_decay_fn", "get_linear_decay_fn", "get_restart_decay_fn"]


def _float(value: Any) -> Any:
    return cast(convert_to_tensor(value), dtypes.float32)


def _steps(global_step: Any, decay_steps: Any, decay: str) -> Any:
    """The global step, and no more than `decay_steps`."""
    if global_step is None:
        raise ValueError(f"global_step is required for {decay}.")
    return _float(minimum(global_step, decay_steps))


def _half_cosine(fraction: Any) -> Any:
    """1 where the fraction is even, 0 where it is odd."""
    return 0.5 * (1.0 + cos(math.pi * fraction))


def _zero_from(done: Any, end: float | None, decayed: Any) -> Any:
    return decayed if end is None else where(done >= end, 0.0 * decayed, decayed)


def get_linear_decay_fn(decay_steps: Any) -> Callable[[Any], Any]:
    """A function of the global step that falls from 1 to 0 in `decay_steps` steps.

    Raises (the function):
        ValueError: there is no global step.
    """

    def linear_decay_fn(global_step: Any) -> Any:
        return 1.0 - _steps(global_step, decay_steps, "linear_decay") / _float(decay_steps)

    return linear_decay_fn


def get_cosine_decay_fn(
    decay_steps: Any, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """A function of the global step that goes along a cosine, from 1 on.

    Args:
        decay_steps: the number of steps.
        num_periods: how many periods of the cosine they are.
        zero_after: the number of periods after which it stays 0, or None.

    Raises (the function):
        ValueError: there is no global step.
    """

    def cosine_decay_fn(global_step: Any) -> Any:
        done = _steps(global_step, decay_steps, "cosine_decay") / _float(decay_steps)
        halves = 2.0 * num_periods * done
        end = None if zero_after is None else 2 * zero_after
        return _zero_from(halves, end, _half_cosine(halves))

    return cosine_decay_fn


def get_restart_decay_fn(
    decay_steps: Any, num_periods: float = 1, zero_after: float | None = None
) -> Callable[[Any], Any]:
    """A function of the global step that falls along half a cosine and starts again.

    Args:
        decay_steps: the number of steps.
        num_periods: how often it falls in them.
        zero_after: the number of falls after which it stays 0, or None.

    Raises (the function):
        ValueError: there is no global step.
    """

    def restart_decay_fn(global_step: Any) -> Any:
        moved = num_periods * _steps(global_step, decay_steps, "cosine_decay")
        fall = mod(moved, _float(decay_steps)) / _float(decay_steps)
        return _zero_from(moved / _float(decay_steps), zero_after, _half_cosine(fall))

    return restart_decay_fn
