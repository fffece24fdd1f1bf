"""`tf.contrib.integrate`: ordinary differential equations from one time to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import size
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.elementary import ceil, is_finite, sqrt, square
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_all, reduce_mean
from opdock.ops.sums import add_n

__all__ = ["odeint", "odeint_fixed"]

Derivative = Callable[[Any, Any], Any]
"""Of the state and the time: how the state changes."""


class _Tableau(NamedTuple):
    """An explicit Runge-Kutta method with what it takes to know its error, and values within.

    Attributes:
        alpha: the time of each stage but the first, in steps.
        beta: the weights of the stages before it.
        c_sol: the weights of all stages in the result,
        c_mid: in the value at half a step, and
        c_error: in the error.
    """

    alpha: Sequence[float]
    beta: Sequence[Sequence[float]]
    c_sol: Sequence[float]
    c_mid: Sequence[float]
    c_error: Sequence[float]


# Dormand and Prince 1980; Shampine 1986 for the middle.
_DOPRI5: Final = _Tableau(
    alpha=[1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0],
    beta=[
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ],
    c_sol=[35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    c_mid=[
        6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2,
        -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2,
        -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
    ],
    c_error=[
        1951 / 21600 - 35 / 384, 0, 22642 / 50085 - 500 / 1113, 451 / 720 - 125 / 192,
        -12231 / 42400 + 2187 / 6784, 649 / 6300 - 11 / 84, 1 / 60,
    ],
)  # fmt: skip


# ---------------------------------------------------------------- steps of adapted length
class _State(NamedTuple):
    """Where the integration is.

    Attributes:
        y1, f1: the state and its derivative at the end of the last step that counted.
        t0, t1: the times of its beginning and its end.
        dt: the length of the next.
        interp_coeff: a polynomial of the state in between.
    """

    y1: Any
    f1: Any
    t0: Any
    t1: Any
    dt: Any
    interp_coeff: Any


class _History(NamedTuple):
    """The end of each step that was tried, and its error as a part of what is allowed."""

    integrate_points: Any
    error_ratio: Any


def odeint(
    func: Derivative, y0: Any, t: Any, rtol: Any = 1e-6, atol: Any = 1e-12,
    method: str | None = None, options: Mapping[str, Any] | None = None,
    full_output: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The state of dy/dt = func(y, t) at times, with steps as short as the error asks for.

    Args:
        func: the derivative, a function of the state and of a scalar, the time.
        y0: the state at the first time, a floating or complex tensor of any shape.
        t: the times, a floating vector that increases.
        rtol: the error that is allowed in a step, as a part of the state, and
        atol: as a number.
        method: "dopri5", which None means too.
        options: `first_step`, `safety`, `ifactor`, `dfactor`, `max_num_steps`; only with a method.
        full_output: whether to tell of the steps too.
        name: a name for the operations.

    Returns:
        A tensor [times, ...], of the type of `y0`. With `full_output` also a dict of
        `num_func_evals`, `integrate_points` and `error_ratio`.

    Raises:
        ValueError: there is no such method, or there are options without one.
        TypeError: types are not floating.
        InvalidArgumentError: when run, times do not increase, there are more steps between two
            than `max_num_steps`, a step is too short to count, or the state is not finite.
    """
    if method is not None and method != "dopri5":
        raise ValueError(f"invalid method: {method!r}")
    if options and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    with name_scope(name, "odeint", [y0, t, rtol, atol]) as scope:
        y = convert_to_tensor(y0, name="y0")
        times = convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        _check_types(y, times)
        real = abs(y).dtype
        rtol, atol = (
            convert_to_tensor(v, real, name=n) for v, n in ((rtol, "rtol"), (atol, "atol"))
        )
        return _dopri5(func, y, times, rtol, atol, full_output, scope, **(options or {}))


def _dopri5(
    func: Derivative, y0: Tensor, t: Tensor, rtol: Tensor, atol: Tensor, full_output: bool,
    name: str, first_step: Any = None, safety: Any = 0.9, ifactor: Any = 10.0,
    dfactor: Any = 0.2, max_num_steps: Any = 1000,
) -> Any:  # fmt: skip
    first_step = 1.0 if first_step is None else first_step
    first_step, safety, ifactor, dfactor = (
        convert_to_tensor(v, t.dtype) for v in (first_step, safety, ifactor, dfactor)
    )

    def step(state: _State, history: _History, n: Tensor) -> Any:
        with control_dependencies(_checks(state, n, max_num_steps)):
            y1, f1, error, stages = _runge_kutta_step(func, state.y1, state.f1, state.t1, state.dt)
        allowed = atol + rtol * maximum(abs(state.y1), abs(y1))
        ratio = sqrt(reduce_mean(square(abs(error) / allowed)))
        end = state.t1 + state.dt
        kept = [state.y1, state.f1, state.t1, *state.interp_coeff]
        y, f, time, *coefficients = cond(
            ratio <= 1,
            lambda: [identity(v) for v in (y1, f1, end, *_between(state.y1, y1, stages, state.dt))],
            lambda: [identity(v) for v in kept],
        )
        dt = _optimal_step_size(state.dt, ratio, safety, ifactor, dfactor)
        history = _History(
            *(a.write(a.size(), v) for a, v in zip(history, (end, ratio), strict=True))
        )
        return _State(y, f, state.t1, time, dt, coefficients), history, n + 1

    def until(i: Tensor, state: _State, history: _History, found: Any) -> Any:
        state, history, _ = while_loop(
            lambda state, *_: t[i] > state.t1, step, (state, history, 0), name="integrate_loop"
        )
        y = _interp_evaluate(state.interp_coeff, state.t0, state.t1, t[i])
        return i + 1, state, history, found.write(i, y)

    with control_dependencies([_assert_increasing(t)]):
        count = size(t)
    found = TensorArray(y0.dtype, size=count).write(0, y0)
    history = _History(*(TensorArray(v.dtype, size=0, dynamic_size=True) for v in (t, rtol)))
    state = _State(y0, func(y0, t[0]), t[0], t[0], first_step, [y0] * 5)
    _, _, history, found = while_loop(
        lambda i, *_: i < count, until, (1, state, history, found), name="interpolate_loop"
    )
    y = found.stack(name=name)
    y.set_shape(t.shape.concatenate(y0.shape))
    if not full_output:
        return y
    points, ratios = (a.stack() for a in history)
    info = {"integrate_points": points, "error_ratio": ratios}
    return y, {"num_func_evals": 6 * size(points) + 1, **info}


def _checks(state: _State, n: Tensor, max_num_steps: Any) -> list[Any]:
    return [
        Assert(state.t1 + state.dt > state.t1, ["underflow in dt", state.dt]),
        Assert(n < max_num_steps, ["max_num_steps exceeded"]),
        Assert(reduce_all(is_finite(abs(state.y1))), ["non-finite values in state `y`", state.y1]),
    ]


def _runge_kutta_step(
    func: Derivative, y0: Tensor, f0: Tensor, t0: Tensor, dt: Tensor
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """The state after a step, its derivative there, the error, and all derivatives on the way."""
    stages = [f0]
    y = y0
    length = cast(dt, y0.dtype)
    for alpha, beta in zip(_DOPRI5.alpha, _DOPRI5.beta, strict=True):
        y = y0 + _weighted(length, beta, stages)
        stages.append(convert_to_tensor(func(y, t0 + alpha * dt)))
    # The last stage is at the result, so that the next step begins with what this one ends with.
    return y, stages[-1], _weighted(length, _DOPRI5.c_error, stages), stages


def _weighted(scale: Any, weights: Sequence[float], values: Sequence[Any]) -> Tensor:
    return add_n([scale * w * v for w, v in zip(weights, values, strict=True) if w != 0])


def _between(y0: Tensor, y1: Tensor, stages: list[Tensor], dt: Tensor) -> list[Any]:
    length = cast(dt, y0.dtype)
    middle = y0 + _weighted(length, _DOPRI5.c_mid, stages)
    return _interp_fit(y0, y1, middle, stages[0], stages[-1], length)


def _interp_fit(y0: Any, y1: Any, y_mid: Any, f0: Any, f1: Any, dt: Any) -> list[Any]:
    """The polynomial of degree 4 through three values with two slopes, highest power first."""
    return [
        -2 * dt * f0 + 2 * dt * f1 - 8 * y0 - 8 * y1 + 16 * y_mid,
        5 * dt * f0 - 3 * dt * f1 + 18 * y0 + 14 * y1 - 32 * y_mid,
        -4 * dt * f0 + dt * f1 - 11 * y0 - 5 * y1 + 16 * y_mid,
        dt * f0,
        y0,
    ]


def _interp_evaluate(coefficients: Sequence[Any], t0: Any, t1: Any, t: Any) -> Tensor:
    """Such a polynomial between two times, at a time."""
    t0, t1, t = convert_to_tensor(t0), convert_to_tensor(t1), convert_to_tensor(t)
    inside = (t0 <= t) & (t <= t1)
    check = Assert(inside, ["invalid interpolation, fails `t0 <= t <= t1`:", t0, t, t1])
    first, *rest = [convert_to_tensor(c) for c in coefficients]
    with control_dependencies([check]):
        x = cast((t - t0) / (t1 - t0), first.dtype)
    y = first
    for coefficient in rest:
        y = y * x + coefficient
    return y


def _optimal_step_size(
    last_step: Tensor, error_ratio: Tensor, safety: Any = 0.9, ifactor: Any = 10.0,
    dfactor: Any = 0.2, order: int = 5,
) -> Tensor:  # fmt: skip
    """How long a step may be for an error as large as it may be, within bounds."""
    ratio = cast(error_ratio, last_step.dtype)
    wanted = ratio ** constant(1 / order, last_step.dtype) / safety
    return last_step / maximum(1 / ifactor, minimum(wanted, 1 / dfactor))


# ---------------------------------------------------------------- steps of given length
def odeint_fixed(
    func: Derivative, y0: Any, t: Any, dt: Any = None, method: str = "rk4",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The state of dy/dt = func(y, t) at times, with steps of given lengths.

    Args:
        func: the derivative, a function of the state and of a scalar, the time.
        y0: the state at the first time, a floating or complex tensor of any shape.
        t: the times, a floating vector that increases.
        dt: the length of steps between each two times, or one for all; they are made a bit shorter
            where they do not fit. One step from time to time when None.
        method: "midpoint" or "rk4".
        name: a name for the operations.

    Returns:
        A tensor [times, ...], of the type of `y0`.

    Raises:
        ValueError: there is no such method, or as many lengths as times, less one.
        TypeError: types are not floating.
        InvalidArgumentError: when run, times do not increase.
    """
    if method not in _FIXED:
        raise ValueError(f"method not supported: {method}")
    change = _FIXED[method]
    with name_scope(name, "odeint_fixed", [y0, t, dt]):
        times = convert_to_tensor(t, preferred_dtype=dtypes.float64, name="t")
        y = convert_to_tensor(y0, name="y0")
        intervals = times[1:] - times[:-1]
        wanted = convert_to_tensor(
            intervals if dt is None else dt, preferred_dtype=dtypes.float64, name="dt"
        )
        _check_types(y, times, wanted)
        steps = ceil(intervals / wanted)
        lengths = intervals / steps
        _check_sizes(times, lengths)
        counts = cast(steps, dtypes.int32)

        def until(i: Tensor, y: Tensor, found: Any) -> Any:
            length = lengths[i - 1]

            def step(n: Tensor, time: Tensor, y: Tensor) -> Any:
                return n + 1, time + length, y + cast(change(func, y, time, length), y.dtype)

            _, _, y = while_loop(lambda n, *_: n < counts[i - 1], step, (0, times[i - 1], y))
            return i + 1, y, found.write(i, y)

        with control_dependencies([_assert_increasing(times)]):
            count = size(times)
        found = TensorArray(y.dtype, size=count).write(0, y)
        _, _, found = while_loop(lambda i, *_: i < count, until, (1, y, found))
        out: Tensor = found.stack()
        out.set_shape(times.shape.concatenate(y.shape))
        return out


def _midpoint(func: Derivative, y: Tensor, t: Tensor, dt: Tensor) -> Any:
    length = cast(dt, y.dtype)
    return length * func(y + func(y, t) * length / 2, t + dt / 2)


def _rk4(func: Derivative, y: Tensor, t: Tensor, dt: Tensor) -> Any:
    length = cast(dt, y.dtype)
    first = func(y, t)
    second = func(y + length * first / 2, t + dt / 2)
    third = func(y + length * second / 2, t + dt / 2)
    last = func(y + length * third, t + dt)
    return add_n([first, 2 * second, 2 * third, last]) * (length / 6)


_FIXED: Final[Mapping[str, Callable[..., Any]]] = {"midpoint": _midpoint, "rk4": _rk4}


# ---------------------------------------------------------------- checks
def _check_types(y0: Tensor, *times: Tensor) -> None:
    if not (y0.dtype.is_floating or y0.dtype.is_complex):
        raise TypeError("`y0` must have a floating point or complex floating point dtype")
    for name, time in zip(("t", "dt"), times, strict=False):
        if not time.dtype.is_floating:
            raise TypeError(f"`{name}` must have a floating point dtype")


def _check_sizes(t: Tensor, dt: Tensor) -> None:
    for tensor, name in ((t, "t"), (dt, "dt")):
        if tensor.shape.ndims is not None and tensor.shape.ndims > 1:
            raise ValueError(f"{name} must be a 1D tensor")
    if not t[1:].shape.is_compatible_with(dt.shape):
        raise ValueError("t and dt have incompatible lengths, must be N and N-1")


def _assert_increasing(t: Tensor) -> Any:
    return Assert(reduce_all(t[1:] > t[:-1]), ["`t` must be monotonic increasing"])
