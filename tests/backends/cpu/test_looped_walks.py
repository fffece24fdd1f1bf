"""Running folds, angles and small LSTMs by generated loops are what NumPy's passes give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.backends.cpu.looped import given

Both = Callable[..., Any]
RNG = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (True, True)])
def test_running_logarithms_of_sums(
    both: Both, dtype: Any, axis: int, exclusive: bool, reverse: bool
) -> None:
    x = (RNG.normal(size=(7, 9, 300)) * 5).astype(dtype)
    x[0, 0, :5] = [np.inf, -np.inf, np.nan, 0, 0]
    x[1:3, 0, :2] = -np.inf

    def build() -> Any:
        return tf.math.cumulative_logsumexp(given(x), axis, exclusive=exclusive, reverse=reverse)

    ((found,), (wanted,)) = both(build, "_running")
    assert found.dtype == wanted.dtype
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(found, wanted, 4 * unit, 16 * unit)


@pytest.mark.parametrize(("dtype", "unit"), [(np.complex64, 2e-7), (np.complex128, 4e-16)])
def test_angles(both: Both, dtype: Any, unit: float) -> None:
    x = (RNG.normal(size=(40, 60)) + 1j * RNG.normal(size=(40, 60))).astype(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    with np.errstate(invalid="ignore"):
        x[:7, :7] = [[complex(a, b) for a in edges] for b in edges]
    ((found,), (wanted,)) = both(lambda: tf.angle(given(x)), "_angles")
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, 4 * unit)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize(("op", "words"), [
    (tf.raw_ops.BlockLSTM, {"forget_bias": 0.7, "cell_clip": 0.3}),
    (tf.raw_ops.BlockLSTM, {"forget_bias": -1.0, "cell_clip": -1.0}),
    (tf.raw_ops.BlockLSTMV2, {"cell_clip": 0.0}),
])  # fmt: skip
@pytest.mark.parametrize("length", [1, 4, 6])
def test_lstms(both: Both, op: Any, words: dict[str, float], length: int) -> None:
    batch, width, cells = 5, 3, 11
    shapes = [(6, batch, width), (batch, cells), (batch, cells), (width + cells, 4 * cells),
              (cells,), (cells,), (cells,), (4 * cells,)]  # fmt: skip
    names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
    values = [RNG.normal(size=s).astype(np.float32) for s in shapes]

    def build() -> Any:
        inputs = dict(zip(names, map(given, values), strict=True))
        count = tf.constant(length, tf.int64)
        return list(op(seq_len_max=count, use_peephole=False, **words, **inputs))

    for found, wanted in zip(*both(build, "_forward"), strict=True):
        assert found.shape == wanted.shape and not found[length:].any()
        np.testing.assert_allclose(found, wanted, 1e-5, 2e-6)
