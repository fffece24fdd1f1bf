"""Loops that are written in Python compute as generated code what they compute as Python."""

from __future__ import annotations

from math import ceil, floor, isnan, sqrt
from typing import Any

import numpy as np
import pytest

from opdock_cpu.jit import llvm, looped
from opdock_cpu.jit.looped import Array, Looped, double, single
from opdock_cpu.jit.translate import core, parameters


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)
    assert llvm.available()


def _walk(begin: int, end: int, out: Array, x: Array, width: int, limit: float) -> None:
    """Every statement, and what decides."""
    for r in range(begin, end):
        total, seen = double(0), 0
        for c in range(width - 1, -1, -1):
            value = x[r * width + c]
            if isnan(value) or (r % 3 == 1 and not value > -1):
                continue
            if value > limit:
                break
            seen += 1
            total += value * 2 if value < 0 else value
        while seen > 3:
            seen = seen // 2
            if seen == 5:
                break
        out[r] = max(total, seen) - abs(min(total, -1)) + (r - 4) // 3 + (r - 4) % -3


def _rounded(begin: int, end: int, out: Array, whole: Array, x: Array) -> None:
    """Types that meet."""
    for i in range(begin, end):
        y = x[i]
        out[i] = sqrt(abs(y)) + floor(double(y)) * ceil(single(y)) / 3
        whole[i] = int(y) * 1000 + (1 if y > 0.5 else 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 7, 90])
def test_statements(dtype: str, rows: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, 11)).astype(dtype)
    x[0, 5], x[-1, 0] = np.nan, -0.0
    found, wanted = np.zeros(rows), np.zeros(rows)
    assert Looped(_walk)(rows, 1 << 20, found, x, 11, 1.5)
    with np.errstate(all="ignore"):
        _walk(0, rows, wanted, x.reshape(-1).astype(np.float64), 11, double(1.5))
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_types() -> None:
    x = np.random.default_rng(3).normal(size=500).astype(np.float32) * 9
    found, wanted = np.zeros(500), np.zeros(500)
    whole, right = np.zeros(500, np.int16), np.zeros(500, np.int16)
    assert Looped(_rounded)(500, 1 << 20, found, whole, x)
    _rounded(0, 500, wanted, right, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_array_equal(whole, right)


def _positive(begin: int, end: int, out: Array, x: Array) -> None:
    for i in range(begin, end):
        out[i] = x[i] > 0


def test_elements_of_all_types_and_arrays_that_are_not_contiguous() -> None:
    for kind in ("int8", "uint8", "int16", "uint32", "int64", "float64", "bool"):
        x = np.arange(-20, 20).astype(kind)[::2]
        out = np.zeros(20, np.bool_)
        assert Looped(_positive)(20, 1 << 20, out, x)
        np.testing.assert_array_equal(out, x > 0)
    assert not Looped(_positive)(20, 1 << 20, out, np.zeros(20, np.complex64))
    assert not Looped(_positive)(20, 1 << 20, out, np.zeros(20, ">f4"))


def test_shares_cover_all_turns() -> None:
    for count in (1, 2, 15, 16, 17, 1000):
        out = np.zeros(count, np.bool_)
        assert Looped(_positive)(count, 1 << 30, out, np.ones(count))
        assert out.all()


_WEIGHTS = (0.5, -2.0, 3.0)
_SHIFT = 7


def _horner(x: float) -> float:
    """Coefficients of the module, one after the other."""
    value = x * 0
    for weight in _WEIGHTS:
        value = value * x + weight
    return value


def _edges(x: Array, at: int, low: float) -> tuple[float, float]:
    """Elements of an array that is passed on, and variables that have names of the caller's."""
    value = x[at] + low
    other = _horner(value) if value > 0 else value
    return value, other


def _noted(out: Array, at: int, value: float) -> None:
    """Nothing comes back."""
    out[at] = value


def _calling(begin: int, end: int, out: Array, x: Array, low: float) -> None:
    for i in range(begin, end):
        value = x[i] + _SHIFT
        first, other = _edges(x, i, low)
        _noted(out, i, value + first * 2 + other * 3 + _horner(first))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_module_are_called(dtype: str) -> None:
    x = np.random.default_rng(5).normal(size=70).astype(dtype)
    found, wanted = np.zeros(70), np.zeros(70)
    assert Looped(_calling)(70, 1 << 20, found, x, 0.25)
    _calling(0, 70, wanted, x.astype(np.float64), 0.25)
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-14)


def _itself(x: float) -> float:
    return _itself(x)


def _nothing(x: float) -> None:
    x += 1


def _changed(x: float) -> float:
    x *= 2
    return x + 1


def _recursion(begin: int, end: int, out: Array) -> None:
    out[0] = _itself(out[0])


def _emptiness(begin: int, end: int, out: Array) -> None:
    out[0] = _nothing(out[0])


def _constancy(begin: int, end: int, out: Array) -> None:
    out[0] = _changed(1.0)


def _literal(begin: int, end: int, out: Array) -> None:
    total = 0.0
    out[0] = total


def _called(begin: int, end: int, out: Array) -> None:
    out[0] = sum(out)


def _decided(begin: int, end: int, out: Array) -> None:
    if out[0]:
        out[1] = 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_literal, "literal"), (_called, "sum"), (_decided, "comparison"),
        (_recursion, "_itself"), (_emptiness, "_nothing"), (_constancy, "literal"),
    ],
)  # fmt: skip
def test_what_is_not_translated_says_so(function: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        core(parameters(function), [np.dtype(np.float32)])


def test_without_llvm_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "available", lambda: False)
    assert not Looped(_positive)(1, 1 << 30, np.zeros(1, np.bool_), np.ones(1))


def test_a_function_without_its_source_does_not_run() -> None:
    names: dict[str, Any] = {}
    exec(
        "def gone(begin: int, end: int, out: Array) -> None:\n    pass",
        names | {"Array": Array},
        names,
    )
    assert not Looped(names["gone"])(1, 1 << 30, np.zeros(1))
