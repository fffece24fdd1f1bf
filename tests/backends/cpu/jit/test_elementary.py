"""Elementwise ops alone on many elements: generated code gives what the portable kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock_cpu.jit import elementary, llvm, numpy_codes

ROWS, COLUMNS = 129, 257


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ops are generated, as on a processor with AVX2."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(numpy_codes, "wide", lambda function: False)
    monkeypatch.setattr(numpy_codes, "chosen", lambda function: True)


def arguments(op: str) -> list[np.ndarray]:
    """Values of every size, with zeros of both signs, infinities and NaNs among them."""
    rng = np.random.default_rng(3)
    shape = (ROWS, COLUMNS)
    count = len(registry.get(op).definition.inputs)
    found = [rng.normal(0, 3, shape).astype(np.float32) for _ in range(count)]
    for i, one in enumerate(found):
        one[i, :6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30
    if op in ("Log", "Log1p", "Pow", "Rsqrt"):
        found[0] = np.abs(found[0])
    return found


def computed(op: str, values: list[np.ndarray], *, static: bool) -> tuple[np.ndarray, str]:
    """The result, and the kernel that gave it."""
    spec: Any = registry.get(op)
    with tf.Graph().as_default():
        inputs = [tf.placeholder(v.dtype, v.shape if static else None) for v in values]
        out = spec(*inputs)
        feed = dict(zip(inputs, values, strict=True))
        with tf.Session() as session, np.errstate(all="ignore"):
            kernel = next(r.kernel for r in session.explain(out, feed).rows if r.op == op)
            return session.run(out, feed), kernel


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("op", elementary.OPS)
def test_an_op_alone_is_generated(op: str, static: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    values = arguments(op)
    found, kernel = computed(op, values, static=static)
    assert "opdock_cpu.jit.elementary" in kernel
    monkeypatch.setattr(llvm, "available", lambda: False)
    wanted, other = computed(op, values, static=static)
    assert "opdock_cpu.jit" not in other
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-30)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


NAN, INF = np.nan, np.inf
FEATURES = [-INF, -1, -0.0, 0, 1, 6, 7, INF, NAN]
"""Of which the gradients below are those of infinity."""
OF_INFINITY = {
    "ReluGrad": [NAN, NAN, NAN, NAN, INF, INF, INF, INF, NAN],
    "Relu6Grad": [NAN, NAN, NAN, NAN, INF, NAN, NAN, NAN, NAN],
    "LeakyReluGrad": [INF] * 9,
    "EluGrad": [-INF, NAN, INF, INF, INF, INF, INF, INF, INF],
    "SeluGrad": [-INF, INF, INF, INF, INF, INF, INF, INF, INF],
}


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("times", [1, 4000])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("op", OF_INFINITY)
def test_slopes_are_factors_of_what_is_not_finite(
    op: str, fused: bool, times: int, kind: str
) -> None:
    """Alone, in a cluster, in NumPy and generated: what TensorFlow gives, which multiplies."""
    x = np.tile(np.array(FEATURES, kind), times)
    wanted = np.tile(OF_INFINITY[op], times)
    given, features = tf.placeholder(kind, x.shape), tf.placeholder(kind, x.shape)
    out = registry.get(op)(given, features)
    if fused:
        out = 0.5 * (out + out * 3.0)
    with tf.Session() as session, np.errstate(all="ignore"):
        for gradient, expected in ((INF, wanted), (-INF, -wanted), (NAN, NAN * wanted)):
            found = session.run(out, {given: np.full_like(x, gradient), features: x})
            np.testing.assert_array_equal(found, expected)
        zeros = session.run(out, {given: np.full_like(x, -0.0), features: np.ones_like(x)})
        dead = session.run(out, {given: -np.ones_like(x), features: -np.ones_like(x)})
    assert np.signbit(zeros).all()
    if op in ("ReluGrad", "Relu6Grad"):
        assert (dead == 0).all() and np.signbit(dead).all()


def test_shapes_broadcast_and_change() -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    out = tf.squared_difference(x, y)
    rng = np.random.default_rng(4)
    with tf.Session() as session:
        for shape, other in [
            ((300, 200), (200,)),
            ((1, 4), (70_000, 1)),
            ((3,), (2, 1)),
            ((0,), ()),
        ]:
            a, b = (rng.normal(size=s).astype(np.float32) for s in (shape, other))
            np.testing.assert_allclose(session.run(out, {x: a, y: b}), (a - b) ** 2, rtol=1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            session.run(out, {x: np.zeros((300, 200), np.float32), y: np.zeros(7, np.float32)})


def test_more_shapes_than_are_kept() -> None:
    x = tf.placeholder(tf.float32)
    out = tf.tanh(x)
    with tf.Session() as session:
        for extra in range(40):
            value = np.full(33_000 + extra, 0.5, np.float32)
            np.testing.assert_allclose(session.run(out, {x: value}), np.tanh(0.5), rtol=1e-6)


@pytest.mark.parametrize("op", elementary.OPS)
def test_few_elements_of_unknown_number_are_left_to_numpy(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [v[0, 6:] for v in arguments(op)]
    count = tf.placeholder(tf.int32, [])
    inputs = [tf.placeholder(tf.float32, [None]) for _ in values]
    out: Any = registry.get(op)(*(x[:count] for x in inputs))
    feed = dict(zip(inputs, values, strict=True)) | {count: 9}
    with tf.Session() as session:
        kernel = next(r.kernel for r in session.explain(out, feed).rows if r.op == op)
        assert "opdock_cpu.jit.elementary" in kernel
        found = session.run(out, feed)
    monkeypatch.setattr(llvm, "available", lambda: False)
    with tf.Session() as session:
        np.testing.assert_allclose(found, session.run(out, feed), rtol=2e-6)


def test_few_elements_where_the_portable_kernel_takes_no_buffer() -> None:
    """Of a shape that is known when it comes, in a planned buffer or not."""
    x, g = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    (grad,) = tf.gradients(tf.nn.relu6(x), x, g)
    with tf.Session() as session:
        found = session.run(tf.exp(grad), {x: [-1.0, 3.0, 7.0], g: [2.0, 2.0, 2.0]})
    np.testing.assert_allclose(found, np.exp([0.0, 2.0, 0.0]), rtol=1e-6)
