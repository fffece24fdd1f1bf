"""Reductions of large arrays in generated code: what takes it, and that NumPy agrees."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import opdock as tf
from opdock.plugin import NodeSig, as_dtype, errors
from opdock_cpu.jit import reduce as generated

RNG = np.random.default_rng(3)
BIG = (64, 300)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def sig_of(op, shape, axes=None, dtype="float32", keep=False, **attrs):
    kind = as_dtype(dtype)
    consts = {} if axes is None else {1: np.array(axes, np.int32)}
    types = (kind, tf.int32) if op in generated._KINDS else (kind,)
    shapes = (shape, None)[: len(types)]
    return NodeSig(op, "node", {"T": kind, "keep_dims": keep, **attrs}, shapes, types, (None,),
                   (kind,), consts=consts)  # fmt: skip


def whether_it_generates(run, *inputs):
    """Whether a kernel's call goes to generated code, and what it returns."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        original = generated.Generated.__call__
        patch.setattr(
            generated.Generated, "__call__", lambda *a: calls.append(a) or original(*a)
        )  # fmt: skip
        return run(*inputs), bool(calls)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 1)])
def test_what_numpy_computes(op, dtype, keep, axes):
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.asarray(1 + RNG.normal(size=BIG) / 100).astype(kind)
    sig = sig_of(op, BIG, axes, dtype, keep)
    assert generated._when(sig) is True
    got, fast = whether_it_generates(generated._bind(sig), x, np.array(axes), None)
    assert fast
    assert got.dtype == kind
    want = getattr(np, op.lower())(x.astype(np.float64), axis=axes, keepdims=keep)
    rtol = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 1e-2)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=rtol)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_the_gradient_of_a_bias(data_format):
    x = RNG.normal(size=(4, 32, 20, 32)).astype(np.float32)
    sig = sig_of("BiasAddGrad", x.shape, data_format=data_format)
    got, fast = whether_it_generates(generated._bind(sig), x, None)
    assert fast
    axes = (0, 2, 3) if data_format == "NCHW" else (0, 1, 2)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(axis=axes), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_the_sum_of_squares(dtype):
    x = RNG.normal(size=(100, 200)).astype(dtype)
    run = generated._bind(sig_of("L2Loss", x.shape, dtype=dtype))
    got, fast = whether_it_generates(run, x, None)
    assert fast
    np.testing.assert_allclose(got, np.square(x, dtype=np.float64).sum() / 2, rtol=1e-6)


def test_shapes_and_axes_that_are_known_when_it_runs():
    sig = sig_of("Sum", None)
    assert generated._when(sig) is True
    run = generated._bind(sig)
    x = RNG.normal(size=BIG).astype(np.float32)
    for axis in (0, 1, 0):
        got, fast = whether_it_generates(run, x, np.array(axis), None)
        assert fast
        np.testing.assert_allclose(got, x.sum(axis), rtol=1e-4, atol=1e-4)
    got, fast = whether_it_generates(run, x[:2], np.array(0), None)
    assert not fast
    np.testing.assert_allclose(got, x[:2].sum(0), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes", "reason"),
    [
        ((8, 8), (0,), "few elements"),
        ((0, 8), (0,), "few elements"),
        ((10_000, 3), (0,), "few elements in the last dimension"),
        ((2, 100_000), (0,), "as many results as elements"),
    ],
)
def test_what_is_left_to_numpy(shape, axes, reason):
    assert generated._when(sig_of("Sum", shape, axes)) == reason


def test_a_given_buffer_is_filled():
    x, out = RNG.normal(size=BIG).astype(np.float32), np.empty(BIG[0], np.float32)
    assert generated._bind(sig_of("Max", BIG, (1,)))(x, np.array(1), out) is out
    np.testing.assert_array_equal(out, x.max(1))
    small = np.ones((2, 2), np.float32)
    run = generated._bind(sig_of("Max", None))
    assert run(small, np.array(1), out[:2]) is not None
    np.testing.assert_array_equal(out[:2], [1, 1])


def test_numpy_serves_until_the_code_is_there(monkeypatch):
    monkeypatch.setattr(generated.Generated, "ready", False)
    x = RNG.normal(size=BIG).astype(np.float32)
    run = generated._bind(sig_of("Sum", BIG, (0,)))
    got, fast = whether_it_generates(run, x, np.array(0), None)
    assert not fast
    np.testing.assert_allclose(got, x.sum(0), rtol=1e-4, atol=1e-4)


def test_wrong_axes_are_told_as_ever():
    x = tf.placeholder(tf.float32, BIG)
    axis = tf.placeholder(tf.int32, [])
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match="dimension"):
        session.run(tf.reduce_sum(x, axis), {x: np.ones(BIG), axis: 5})


def test_a_session_uses_it():
    x = tf.placeholder(tf.float32, [None, 300])
    with tf.Session() as session:
        y, feeds = tf.reduce_sum(x, 0), {x: np.ones(BIG)}
        (row,) = [r for r in session.explain(y, feeds).rows if r.op == "Sum"]
        assert "jit.reduce" in row.kernel
        np.testing.assert_array_equal(session.run(y, feeds), [64] * 300)
