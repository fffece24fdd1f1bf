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
    np.testing.assert_allclose(loss, exact_loss, rtol=rtol, atol=rtol / 10)  # losses near 0 cancel
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


UNFUSED = tf.ConfigProto(
    graph_options=tf.GraphOptions(
        optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
    )
)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", ["mean", "rows", "scalar"])
def test_the_gradient_is_scaled_in_the_same_pass(sparse: bool, weights: str) -> None:
    rows, classes = 40, 300
    logits = tf.placeholder(tf.float32, [None, classes])
    fed = {logits: RNG.normal(size=(rows, classes)).astype(np.float32)}
    numbers = RNG.integers(0, classes, rows)
    if sparse:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=numbers, logits=logits)
    else:
        labels = np.eye(classes, dtype=np.float32)[numbers]
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    each = tf.constant(RNG.normal(size=rows), tf.float32)
    total = {"mean": tf.reduce_mean(loss), "rows": tf.reduce_sum(loss * each),
             "scalar": tf.reduce_sum(loss) * 0.3}[weights]  # fmt: skip
    fetches = [loss, tf.gradients(total, logits)[0]]
    with tf.Session() as session, tf.Session(config=UNFUSED) as parts:
        ops = {r.op for r in session.explain(fetches, fed).rows}
        assert any(o.startswith("opdock_cpu>") and o.endswith("Scaled") for o in ops)
        for ours, exact in zip(session.run(fetches, fed), parts.run(fetches, fed), strict=True):
            np.testing.assert_allclose(ours, exact, rtol=2e-5, atol=1e-6)


def test_a_factor_that_depends_on_the_loss_stays_apart() -> None:
    """Both could not be computed at once: the factor needs the loss first."""
    logits = tf.placeholder(tf.float32, [40, 300])
    fed = {logits: RNG.normal(size=(40, 300)).astype(np.float32)}
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=RNG.integers(0, 300, 40), logits=logits
    )
    fetches = tf.gradients(tf.reduce_sum(tf.square(loss)), logits)
    with tf.Session() as session, tf.Session(config=UNFUSED) as parts:
        assert not any("Scaled" in r.op for r in session.explain(fetches, fed).rows)
        np.testing.assert_allclose(
            session.run(fetches, fed), parts.run(fetches, fed), rtol=2e-5, atol=1e-6
        )


def test_scaled_rows_of_infinities() -> None:
    """What is infinite or no number in a row stays in it, the class's own element too."""
    logits = RNG.normal(size=(64, 100)).astype(np.float32)
    logits[1, 5], logits[2, 5] = np.nan, np.inf
    labels, gains = np.full(64, 5, np.int32), np.ones((64, 1), np.float32)
    gains[3], gains[4] = np.inf, 0
    loss, back = _Rows(as_dtype(np.float32), as_dtype(np.int32), True)(logits, labels, gains)
    with np.errstate(invalid="ignore"):
        exact_loss, exact = plain.sparse_xent(sig_of("", logits, labels))(logits, labels)
        np.testing.assert_allclose(loss, exact_loss, rtol=1e-5)
        np.testing.assert_allclose(back, exact * gains, rtol=1e-4, atol=1e-7)
