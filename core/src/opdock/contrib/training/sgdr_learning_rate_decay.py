"""A learning rate that falls and begins anew."""

from __future__ import annotations

import math
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.control import cond
from opdock.ops.elementary import floor, log
from opdock.ops.trig import cos

__all__ = ["sgdr_decay"]


def sgdr_decay(
    learning_rate: Any, global_step: Any, initial_period_steps: Any, t_mul: Any = 2.0,
    m_mul: Any = 1.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """A learning rate that falls as a cosine, and begins anew (Loshchilov, Hutter 2016).

    Args:
        learning_rate: the rate at the beginning.
        global_step: the step, an integer tensor.
        initial_period_steps: how long the first period is.
        t_mul: how many times longer each period is than the last,
        m_mul: and how many times higher it begins.
        name: a name for the operations.

    Returns:
        A scalar of the type of `learning_rate`.

    Raises:
        ValueError: `global_step` is None.
    """
    if global_step is None:
        raise ValueError("global_step is required for sgdr_decay.")
    with name_scope(name, "SGDRDecay", [learning_rate, global_step, t_mul, m_mul]):
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype
        longer, higher = cast(t_mul, dtype), cast(m_mul, dtype)
        periods = cast(global_step, dtype) / cast(initial_period_steps, dtype)

        def as_long() -> list[Tensor]:
            return [floor(periods), periods - floor(periods)]

        def longer_and_longer() -> list[Tensor]:
            number = floor(log(1 - periods * (1 - longer)) / log(longer))
            before = (1 - longer**number) / (1 - longer)
            return [number, (periods - before) / longer**number]

        number, part = cond(equal(longer, 1), as_long, longer_and_longer)
        found: Tensor = 0.5 * rate * higher**number * (cos(part * math.pi) + 1)
        return found
