"""What counts as equal."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from opdock.testing.harness.tolerances import FORWARD, GRADIENT, Tolerance, compare, tolerance_for


def test_integers_and_strings_must_be_equal() -> None:
    assert compare(np.int32([1, 2]), np.int32([1, 2]), tolerance_for(np.int32)) is None
    mismatch = compare(np.array([1, 3]), np.array([1, 2]), tolerance_for(np.int64))
    assert mismatch is not None
    assert "[1]" in mismatch.text
    assert compare(np.array([b"a"], object), np.array([b"b"], object), Tolerance(1, 1)) is not None


def test_dtype_and_shape_count() -> None:
    slack = Tolerance(1, 1)
    assert "dtype" in compare(np.float32(1), np.float64(1), slack).text  # type: ignore[union-attr]
    assert "shape" in compare(np.zeros((1, 2)), np.zeros(2), slack).text  # type: ignore[union-attr]
    assert compare(np.zeros((0, 2)), np.zeros((0, 2)), Tolerance(0, 0)) is None


def test_special_values_equal_themselves_only() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0])
    assert compare(special, special.copy(), Tolerance(0, 0)) is None
    assert compare(np.array([np.inf]), np.array([1e30]), Tolerance(1, 1)) is not None
    assert compare(np.array([np.nan]), np.array([0.0]), Tolerance(1, 1)) is not None
    half = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert compare(half, half, tolerance_for(half.dtype)) is None


def test_a_sample_widens_and_never_tightens() -> None:
    base = FORWARD["float32"]
    assert tolerance_for(np.float32, widened=(0.0, 0.0)) == base
    wide = tolerance_for(np.float32, widened=(0.1, 0.0), reason="because")
    assert (wide.rtol, wide.atol, wide.reason) == (0.1, base.atol, "because")
    assert set(FORWARD) == set(GRADIENT)
