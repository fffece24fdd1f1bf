"""Generated cross entropies against float64; infinities and NaNs as NumPy's kernel has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import NodeSig, as_dtype, errors
from opdock_cpu.jit import entropy
from opdock_cpu.jit.entropy import _Rows
from opdock_cpu.kernels import xent as plain
from opdock_cpu.threads import use_threads

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def sig_of(op: str, logits: Any, labels: Any) -> NodeSig:
    dtype, index = as_dtype(logits.dtype), as_dtype(labels.dtype)
    return NodeSig(
        op, "xent", {"T": dtype, "Tlabels": index}, (logits.shape, labels.shape), (dtype, index),
        (logits.shape[:1], logits.shape), (dtype, dtype),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(64, 1000), (300, 17), (5000, 2), (2, 50_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense(shape: tuple[int, int], dtype: Any) -> None:
    logits = (RNG.normal(size=shape) * 5).astype(dtype)
    labels = RNG.dirichlet(np.ones(shape[1]), shape[0]).astype(dtype)
    labels[0, 1:] = 0
    loss, back = _Rows(as_dtype(dtype), None)(logits, labels)
    wide = logits.astype(np.float64)
    exact_loss, exact = plain.xent(sig_of("", wide, wide))(wide, labels.astype(np.float64))
    rtol = 2e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(loss, exact_loss, rtol=rtol)
    np.testing.assert_allclose(back, exact, rtol=rtol, atol=rtol / 100)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse(index: Any, dtype: Any) -> None:
    logits = (RNG.normal(size=(70, 999)) * 5).astype(dtype)
    labels = RNG.integers(0, 999, 70).astype(index)
    loss, back = _Rows(as_dtype(dtype), as_dtype(index))(logits, labels)
    through_kernel = entropy.sparse(sig_of("", logits, labels))(logits, labels)
    np.testing.assert_array_equal(through_kernel[1], back)
    wide = logits.astype(np.float64)
    exact_loss, exact = plain.sparse_xent(sig_of("", wide, labels))(wide, labels)
    rtol = 2e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(loss, exact_loss, rtol=rtol)
    np.testing.assert_allclose(back, exact, rtol=rtol, atol=rtol / 100)


def test_infinities_and_nans_spoil_what_they_spoil_in_numpy() -> None:
    logits = RNG.normal(size=(8, 1000)).astype(np.float32)
    labels = np.zeros_like(logits)
    labels[:, 3] = 1
    logits[0, 5], logits[1, 5], logits[2, 5], logits[3] = -np.inf, np.inf, np.nan, -np.inf
    logits[4, 3] = -np.inf
    with np.errstate(all="ignore"):
        wanted = plain.xent(sig_of("", logits, labels))(logits, labels)
    got = _Rows(as_dtype(np.float32), None)(logits, labels)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("count", [1, 3])
def test_threads(count: int) -> None:
    logits = RNG.normal(size=(101, 1000)).astype(np.float32)
    labels = RNG.integers(0, 1000, 101)
    try:
        use_threads(count)
        loss, _ = _Rows(as_dtype(np.float32), as_dtype(np.int64))(logits, labels)
    finally:
        use_threads(0)
    wanted, _ = plain.sparse_xent(sig_of("", logits, labels))(logits, labels)
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)


def test_a_label_out_of_range_is_an_error_with_the_users_words() -> None:
    logits = np.zeros((10, 1000), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.fill([10], 1000), logits=tf.constant(logits)
        )
        with pytest.raises(errors.InvalidArgumentError, match="label value of 1000"):
            session.run(loss)
