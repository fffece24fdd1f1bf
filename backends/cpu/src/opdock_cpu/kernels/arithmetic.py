"""Arithmetic that a call of NumPy, or a loop, does in fewer passes than the scalar expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import COMPLEX, FLOATS, INTS, KernelTable, NodeSig, checks, dtypes
from opdock_cpu import halves
from opdock_cpu.quotients import divided
from opdock_cpu.stepping import next_after

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one
Binary = Callable[..., Array]

table = KernelTable()

_INEXACT = FLOATS | COMPLEX
_STRING = frozenset({dtypes.string})


def _reuse(value: Any) -> Any:
    """`value` as the place of the next result: None for the scalar that a 0-d call returns."""
    return value if isinstance(value, np.ndarray) else None


@table.binder("Add", T=_STRING)
def _concatenate(sig: NodeSig) -> Binary:
    def run(x: Array, y: Array) -> Array:
        return np.asarray(np.add(x, y), object)

    return run


# ---------------------------------------------------------------- division
def _check_divisor(x: Array, y: Array) -> None:
    # Nothing is divided where there is nothing to divide.
    if not np.all(y) and np.size(x):
        raise _division_by_zero()


def _division_by_zero() -> Exception:
    return checks.invalid("Integer division by zero")


def _checked(ufunc: Binary, remainder: bool, floored: bool) -> Callable[[NodeSig], Binary]:
    """A binder for integers: what `ufunc` gives, unless a divisor is zero."""

    def bind(sig: NodeSig) -> Binary:
        divisor = sig.const(1)
        safe = divisor is not None and bool(np.all(divisor))
        # By one number NumPy divides with products, which are quicker.
        if safe and np.size(np.asarray(divisor)) == 1 and ufunc is np.floor_divide:
            return ufunc

        def run(x: Array, y: Array, out: Array | None = None) -> Array:
            found = divided(x, y, out, remainder, floored)
            if found is None:
                if not safe:
                    _check_divisor(x, y)
                return ufunc(x, y, out)
            result, by_zero = found
            if by_zero:
                raise _division_by_zero()
            return result

        return run

    bind.__qualname__ = f"integer_{ufunc.__name__}"
    return bind


def _truncate_divide(x: Array, y: Array, out: Array | None = None) -> Array:
    # What is left after taking off the truncated remainder divides exactly.
    exact = np.fmod(x, y)
    exact = np.subtract(x, exact, _reuse(exact))
    return np.floor_divide(exact, y, out)


table.binder("FloorDiv", T=INTS, out=True)(_checked(np.floor_divide, False, True))
table.binder("FloorMod", T=INTS, out=True)(_checked(np.remainder, True, True))
table.binder("TruncateMod", "Mod", T=INTS, out=True)(_checked(np.fmod, True, False))
table.binder("Div", "TruncateDiv", T=INTS, out=True)(_checked(_truncate_divide, False, False))


@table.binder("TruncateMod", "Mod", T=FLOATS, out=True)
def _truncate_mod(sig: NodeSig) -> Binary:
    return np.fmod


@table.binder("FloorDiv", T=FLOATS, out=True)
def _floor_divide(sig: NodeSig) -> Binary:
    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        quotient = np.divide(x, y, out)
        return np.floor(quotient, _reuse(quotient))

    def rounded_first(x: Array, y: Array, out: Array | None = None) -> Array:
        quotient = halves.applied(np.divide, x, y)
        return halves.converted(np.floor(halves.widened(quotient)), quotient.dtype, out)

    return rounded_first if sig.out_dtypes[0] is dtypes.float16 else run


# ---------------------------------------------------------------- where zero wins
def _zeroed(value: Any, mask: Any) -> Array:
    """`value` with zeros where `mask` is true; an array is changed in place."""
    if isinstance(value, np.ndarray):
        np.copyto(value, 0, where=mask)
        return value
    return value.dtype.type(0) if mask else value


def _zero_where(ufunc: np.ufunc, operand: int) -> Callable[[NodeSig], Binary]:
    """A binder for `ufunc` whose result is 0 where the given operand is."""

    def bind(sig: NodeSig) -> Binary:
        def run(x: Array, y: Array, out: Array | None = None) -> Array:
            mask = np.equal(y if operand else x, 0)
            return _zeroed(ufunc(x, y, out), mask)

        return run

    bind.__qualname__ = f"{ufunc.__name__}_zero_where_{'xy'[operand]}"
    return bind


table.binder("DivNoNan", T=_INEXACT, out=True)(_zero_where(np.divide, 1))
table.binder("MulNoNan", T=_INEXACT, out=True)(_zero_where(np.multiply, 1))
table.binder("Xdivy", T=_INEXACT, out=True)(_zero_where(np.divide, 0))


@table.binder("Xlogy", T=_INEXACT, out=True)
def _xlogy(sig: NodeSig) -> Binary:
    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        mask = np.equal(x, 0)
        return _zeroed(np.multiply(x, np.log(y), out), mask)

    return run


# ---------------------------------------------------------------- neighbours
@table.binder("NextAfter", out=True)
def _next_after(sig: NodeSig) -> Binary:
    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        found = next_after(x, y, out)
        return np.nextafter(x, y, out) if found is None else found

    return run
