"""Quotients and remainders of whole numbers, beside Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock_cpu import quotients
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(3)


def _numbers(kind: np.dtype[Any], most: int, count: int = 5000) -> np.ndarray:
    """Numbers of all lengths up to so many bits, none of them zero."""
    sizes = 2 ** RNG.integers(0, most, count)
    found = [int(RNG.integers(n, 2 * n)) for n in sizes.tolist()]
    signs = RNG.choice([-1, 1], count).tolist() if kind.kind == "i" else [1] * count
    return np.array([n * s for n, s in zip(found, signs, strict=True)], kind)


@pytest.mark.parametrize("floored", [True, False])
@pytest.mark.parametrize("remainder", [True, False])
@pytest.mark.parametrize(
    ("dtype", "most"),
    [("int64", 51), ("int64", 62), ("int32", 30), ("uint8", 8), ("int8", 6), ("uint32", 32)],
)
def test_they_are_exact(
    monkeypatch: pytest.MonkeyPatch, dtype: str, most: int, remainder: bool, floored: bool
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    kind = np.dtype(dtype)
    x, y = _numbers(kind, most), _numbers(kind, most)
    y[:900] = x[:900] // np.maximum(RNG.integers(1, 9, 900), 1).astype(kind)
    x[900:1200] = y[900:1200]
    x[1200:1500] = y[1200:1500] - kind.type(1)  # a quotient just below one
    y[y == 0] = 1
    x[-2:], y[-2:] = np.iinfo(kind).min, [1, 1 if kind.kind == "u" else -1]
    found = quotients.divided(x, y, None, remainder, floored)
    assert found is not None
    values, by_zero = found
    assert not by_zero
    for a, b, v in zip(x.tolist(), y.tolist(), values.tolist(), strict=True):
        q = a // b if floored else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        wanted = a - q * b if remainder else q
        assert v == np.array(wanted % 2 ** (8 * kind.itemsize), f"u{kind.itemsize}").view(kind)


@pytest.mark.parametrize("op", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_ops_divide_by_loops(both: Any, op: str, dtype: str) -> None:
    x, y = (_numbers(np.dtype(dtype), 20).reshape(50, 100) for _ in range(2))

    def build() -> list[Any]:
        spec: Any = registry.get(op)
        rows = [given(x), given(y), given(y[0]), given(x[:, :1].copy())]
        return [spec(rows[0], rows[1]), spec(rows[0], rows[2]), spec(rows[3], rows[1])]

    for found, wanted in zip(*both(build, "_divide"), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_a_divisor_of_zero_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    x = np.ones(5000, np.int64)
    y = x.copy()
    y[4999] = 0
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"),
    ):
        session.run(given(x) // given(y))


@pytest.mark.parametrize("most", [20, 62])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_rows_are_divided_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, dtype: str, most: int
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    kind = np.dtype(dtype)
    most = min(most, 30) if dtype == "int32" else most
    target = _numbers(kind, most, 8000).reshape(4, 2000)
    rows = _numbers(kind, min(most, 9), 12000).reshape(6, 2000)
    at = np.array([0, 3, 0, 2, 3, 0])
    target[0, 0], rows[0, 0] = np.iinfo(kind).min, -1
    wanted = [[int(v) for v in row] for row in target]
    for where, row in zip(at.tolist(), rows.tolist(), strict=True):
        wanted[where] = [
            abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            for a, b in zip(wanted[where], row, strict=True)
        ]
    assert quotients.divide_rows(target, at, rows)
    # Of the least number there is no opposite.
    np.testing.assert_array_equal(target[:, 1:], np.array(wanted, object)[:, 1:])
