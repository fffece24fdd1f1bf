"""Rows folded by id: generated loops give what sorting and NumPy give, for any number of shares."""

from __future__ import annotations

import numpy as np
import pytest

from opdock_cpu import folds
from opdock_cpu.jit import llvm, looped


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)


UFUNCS = [np.add, np.multiply, np.maximum, np.minimum]


def _folded(ufunc: np.ufunc, rows: np.ndarray, ids: np.ndarray, old: bool = False) -> np.ndarray:
    out = np.full((9, rows.shape[1]), 3, rows.dtype)
    present = np.full(9, old)
    folds.fold_onto(ufunc, out, present, rows, ids)
    return np.concatenate([out, np.repeat(present[:, None], rows.shape[1], 1)])


@pytest.mark.parametrize("ufunc", [*UFUNCS, np.subtract])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "uint64"])
@pytest.mark.parametrize("n", [0, 1, 5, 33, 300])
def test_both_ways_agree(
    ufunc: np.ufunc, dtype: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    rows = rng.integers(1, 3, (n, 5)).astype(dtype)
    ids = rng.integers(-2, 9, n).astype(np.int32 if n % 2 else np.int64)
    old = ufunc is np.subtract
    if ufunc is np.multiply:
        rows[20:] = 1
    found = _folded(ufunc, rows, ids, old)
    monkeypatch.setattr(llvm, "available", lambda: False)
    np.testing.assert_array_equal(found, _folded(ufunc, rows, ids, old))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("many", [3, 400])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply])
def test_rows_are_rounded_one_after_the_other(
    ufunc: np.ufunc, many: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(many)
    rows, ids = rng.uniform(0.9, 1.1, (600, 5)).astype(dtype), rng.integers(-1, many, 600)
    start = rng.uniform(0.9, 1.1, (many, 5)).astype(dtype)
    expected = start.copy()
    for at, row in zip(ids, rows, strict=True):
        if at >= 0:
            expected[at] = ufunc(expected[at], row)
    for there in (True, False):
        monkeypatch.setattr(llvm, "available", lambda there=there: there)
        out = start.copy()
        folds.fold_onto(ufunc, out, np.ones(many, np.bool_), rows, ids)
        np.testing.assert_array_equal(out, expected)


def test_a_row_that_is_nan_stays_and_one_that_is_minus_zero_too() -> None:
    rows = np.array([[1.0, -0.0], [np.nan, -0.0], [2.0, -0.0]])
    for ufunc in (np.maximum, np.minimum, np.add):
        (first, *_) = _folded(ufunc, rows, np.zeros(3, np.int64))
        assert np.isnan(first[0])
        assert np.signbit(first[1])


def test_shares_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows, ids = rng.normal(size=(4000, 64)).astype(np.float32), rng.integers(0, 9, 4000)
    shared = _folded(np.add, rows, ids)
    monkeypatch.setattr(folds, "_SHARED", 1 << 40)
    np.testing.assert_array_equal(shared, _folded(np.add, rows, ids))


def test_picked_rows_are_taken_in_order() -> None:
    rows = np.arange(12.0).reshape(4, 3)
    index, ids = np.array([3, 0, 3]), np.array([1, 1, 0])
    out, present = np.zeros((3, 3)), np.zeros(3, np.bool_)
    folds.fold_onto(np.add, out, present, rows, ids, index)
    np.testing.assert_array_equal(out, [rows[3], rows[3] + rows[0], [0, 0, 0]])
    assert present.tolist() == [True, True, False]
