"""Learning rates that change with the step."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import executing_eagerly, name_scope

_Schedule = TypeVar("_Schedule", bound=Callable[..., Any])


def _schedule(made: _Schedule) -> _Schedule:
    """A schedule that is a function of no arguments where operations run as they are made.

    A rate of that moment would stay as it is; what optimizers call for each step does not.
    """

    @functools.wraps(made)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not executing_eagerly():
            return made(*args, **kwargs)
        given = inspect.signature(made).bind(*args, **kwargs).arguments
        if given.get("global_step", 0) is None:
            raise ValueError("global_step is required for a decaying learning rate.")
        return functools.partial(made, *args, **kwargs)

    return cast("_Schedule", wrapped)


def _progress(learning_rate: Any, global_step: Any, decay_steps: Any) -> tuple[Any, Any, Any]:
    """The rate, step and length as tensors of the rate's type."""
    if global_step is None:
        raise ValueError("global_step is required for a decaying learning rate.")
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    return rate, _cast(global_step, rate.dtype), _cast(decay_steps, rate.dtype)


def _cast(value: Any, dtype: dtypes.DType) -> Any:
    tensor = convert_to_tensor(value, None if hasattr(value, "dtype") else dtype)
    return (
        tensor
        if tensor.dtype.base_dtype is dtype.base_dtype
        else get("Cast")(tensor, DstT=dtype.base_dtype)
    )


def _periods(step: Any, steps: Any, whole: bool) -> Any:
    return get("Floor")(step / steps) if whole else step / steps


@_schedule
def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """`learning_rate * decay_rate ** (global_step / decay_steps)`; stepwise with `staircase`."""
    with name_scope(name, "ExponentialDecay") as scope:
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        p = _periods(step, steps, staircase)
        return get("Mul")(rate, get("Pow")(_cast(decay_rate, rate.dtype), p), name=scope)


@_schedule
def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """`learning_rate * exp(-decay_rate * global_step / decay_steps)`.

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        staircase: whether it falls at whole periods alone.
        name: a name for the operation.
    """
    factor = get("Exp")(get("Neg")(decay_rate))
    found = exponential_decay(learning_rate, global_step, decay_steps, factor, staircase, name)
    return found() if executing_eagerly() else found


@_schedule
def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Any:
    """`learning_rate / (1 + decay_rate * global_step / decay_steps)`.

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        staircase: whether it falls at whole periods alone.
        name: a name for the operation.
    """
    with name_scope(name, "InverseTimeDecay") as scope:
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        p = _periods(step, steps, staircase)
        return get("RealDiv")(rate, 1 + _cast(decay_rate, rate.dtype) * p, name=scope)


@_schedule
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Any:
    """From the first rate to `end_learning_rate` along a polynomial; repeated with `cycle`.

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        power: the power of the polynomial.
        name: a name for the operation.
    """
    with name_scope(name, "PolynomialDecay") as scope:
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        end, exponent = _cast(end_learning_rate, rate.dtype), _cast(power, rate.dtype)
        if cycle:
            # The length doubles, triples, ... so that the step stays inside it.
            turns = get("Ceil")(step / steps)
            steps = steps * get("Select")(
                get("Equal")(step, _cast(0, rate.dtype)), _cast(1.0, rate.dtype), turns
            )
        else:
            step = get("Minimum")(step, steps)
        part = (rate - end) * get("Pow")(1 - step / steps, exponent)
        return get("Add")(part, end, name=scope)


@_schedule
def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Any:
    """`values[i]` for `x` up to `boundaries[i]`, the last one above all.

    Raises:
        ValueError: there is not one more value than boundaries, or types differ.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name, "PiecewiseConstant"):
        position = convert_to_tensor(x)
        levels = [convert_to_tensor(v) for v in values]
        if len({v.dtype for v in levels}) > 1:
            raise ValueError(
                "Values must have elements all with the same dtype, got "
                f"{[v.dtype.name for v in levels]}."
            )
        out = levels[-1]
        for boundary, level in reversed(list(zip(boundaries, levels, strict=False))):
            limit = _cast(boundary, position.dtype)
            out = get("Select")(get("LessEqual")(position, limit), level, out)
        return out


piecewise_constant_decay = piecewise_constant


def _above(rate: Any, wave: Any, alpha: Any, name: str | None) -> Any:
    return get("Mul")(rate, (1 - alpha) * wave + alpha, name=name)


def _wave(rate: Any, angle: float, fraction: Any) -> Any:
    return 0.5 * (1.0 + get("Cos")(_cast(angle, rate.dtype) * fraction))


@_schedule
def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Any:
    """Half a cosine from `learning_rate` to `alpha * learning_rate` (Loshchilov & Hutter 2016).

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        alpha: the least rate, as a share of the first.
        name: a name for the operation.
    """
    with name_scope(name, "CosineDecay"):
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        wave = _wave(rate, math.pi, get("Minimum")(step, steps) / steps)
        return _above(rate, wave, alpha, None)


@_schedule
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Any:
    """Cosine decay that restarts, each period `t_mul` times as long (Loshchilov & Hutter 2016).

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        first_decay_steps: the number of steps of the first period.
        t_mul: the factor of a period's length by that of the period before.
        m_mul: the factor of a period's first rate by that of the period before.
        alpha: the least rate, as a share of the first.
        name: a name for the operation.
    """
    with name_scope(name, "SGDRDecay") as scope:
        rate, step, first = _progress(learning_rate, global_step, first_decay_steps)
        growth, shrink = _cast(t_mul, rate.dtype), _cast(m_mul, rate.dtype)
        done = step / first
        one = _cast(1.0, rate.dtype)
        # With growing periods, restart k comes at (t^k - 1) / (t - 1) first periods.
        geometric = get("NotEqual")(growth, one)
        safe = get("Select")(geometric, growth, _cast(2.0, rate.dtype))
        k_grown = get("Floor")(get("Log")(1.0 - done * (1.0 - safe)) / get("Log")(safe))
        length = get("Pow")(safe, k_grown)
        grown = (done - (1.0 - length) / (1.0 - safe)) / length
        k_plain = get("Floor")(done)
        k = get("Select")(geometric, k_grown, k_plain)
        fraction = get("Select")(geometric, grown, done - k_plain)
        return _above(rate, get("Pow")(shrink, k) * _wave(rate, math.pi, fraction), alpha, scope)


@_schedule
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Any:
    """Linear decay times a cosine (Bello et al. 2017).

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        num_periods: the number of periods of the cosine.
        alpha: the least rate, as a share of the first.
        beta: what is added, as a share of the first.
        name: a name for the operation.
    """
    with name_scope(name, "LinearCosineDecay") as scope:
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        step = get("Minimum")(step, steps)
        linear = (steps - step) / steps
        wave = _wave(rate, 2.0 * num_periods * math.pi, step / steps)
        return get("Mul")(rate, (alpha + linear) * wave + beta, name=scope)


@_schedule
def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: float = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Any:
    """`linear_cosine_decay` with decaying noise on the linear part (Bello et al. 2017).

    Args:
        learning_rate: the rate to begin with, a number or a tensor.
        global_step: the number of steps so far, a tensor or a variable.
        decay_steps: the number of steps over which it falls.
        initial_variance: the variance of the noise at the first step.
        variance_decay: the power with which the variance falls.
        num_periods: the number of periods of the cosine.
        alpha: the least rate, as a share of the first.
        beta: what is added, as a share of the first.
        name: a name for the operation.
    """
    from importlib import import_module

    with name_scope(name, "NoisyLinearCosineDecay") as scope:
        rate, step, steps = _progress(learning_rate, global_step, decay_steps)
        step = get("Minimum")(step, steps)
        variance = initial_variance / get("Pow")(1.0 + step, _cast(variance_decay, rate.dtype))
        noise = import_module("opdock.ops.random").random_normal(
            linear_shape(step), stddev=get("Sqrt")(variance)
        )
        linear = (steps - step) / steps + noise
        wave = _wave(rate, 2.0 * num_periods * math.pi, step / steps)
        return get("Mul")(rate, (alpha + linear) * wave + beta, name=scope)


def linear_shape(step: Tensor) -> list[int]:
    """The shape of a schedule: that of its step."""
    return [] if step.raw_shape is None else [d or 1 for d in step.raw_shape]
