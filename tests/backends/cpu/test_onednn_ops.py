"""Products, pooling, normalization and softmax on oneDNN, and values that are not finite."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import llvm
from tests.backends.cpu.onednn import (
    close_to_float64,
    data,
    instructions,
    kernels,
    needs_onednn,
)  # fmt: skip

pytestmark = needs_onednn


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_matmul(ta, tb):
    a, b = data(70, 90), data(90, 80, seed=1)
    close_to_float64(
        lambda a, b: [tf.matmul(a, b, transpose_a=ta, transpose_b=tb)],
        np.ascontiguousarray(a.T) if ta else a, np.ascontiguousarray(b.T) if tb else b,
        op="MatMul",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b"),
    [((6, 50, 60), (6, 60, 40)), ((3, 1, 50, 60), (2, 60, 40)), ((50, 60), (4, 60, 40))],
)
def test_batch_matmul(a, b):
    close_to_float64(lambda a, b: [tf.matmul(a, b)], data(*a), data(*b, seed=1), op="BatchMatMulV2")


def test_bfloat16_products_add_up_in_float32():
    a, b = data(64, 128).astype(np.float32), data(128, 64, seed=1).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = (tf.cast(tf.constant(v), tf.bfloat16) for v in (a, b))
        exact = tf.matmul(tf.cast(x, tf.float64), tf.cast(y, tf.float64))
        ours, exact = session.run([tf.cast(tf.matmul(x, y), tf.float64), exact])
    np.testing.assert_allclose(ours, exact, rtol=2**-8, atol=1e-2)


def test_small_products_stay_with_numpy():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.placeholder(tf.float32, [4, 5]), tf.placeholder(tf.float32, [5, 6])
        feeds = {a: np.ones([4, 5]), b: np.ones([5, 6])}
        assert "onednn" not in kernels(session, tf.matmul(a, b), feeds)["MatMul"]


@pytest.mark.parametrize("shapes", [((1, 300), (300, 400)), ((70, 300), (300, 1))])
def test_vectors(shapes):
    a, b = (data(*s, seed=i) for i, s in enumerate(shapes))
    close_to_float64(lambda a, b: [tf.matmul(a, b)], a, b, op="MatMul")


@pytest.mark.parametrize("rows", [1, 2, 70])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_matrix_that_stays_is_laid_out_once(rows, transpose, bias):
    """Step after step the same, and right again as soon as the variable is another."""
    x, w = data(rows, 700).astype(np.float32), data(700, 800, seed=1).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.ascontiguousarray(w.T) if transpose else w)
        fed = tf.placeholder(tf.float32, x.shape)
        y = tf.matmul(fed, v, transpose_b=transpose)
        y = tf.nn.relu(tf.nn.bias_add(y, tf.ones([800]))) if bias else y
        double = tf.assign(v, v * 2)
        session.run(tf.global_variables_initializer())
        for times in (1, 2, 4):
            for _ in range(4):
                exact = x.astype(np.float64) @ (times * w.astype(np.float64))
                exact = np.maximum(exact + 1, 0) if bias else exact
                ours = session.run(y, {fed: x})
                np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-3)
            session.run(double)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("pool", "name"), [(tf.nn.max_pool, "MaxPool"), (tf.nn.avg_pool, "AvgPool")]
)
def test_pooling(pool, name, padding, data_format):
    x = data(2, 9, 11, 5)
    sizes = [1, 3, 2, 1]
    if data_format == "NCHW":
        x, sizes = np.ascontiguousarray(np.moveaxis(x, -1, 1)), [1, 1, 3, 2]

    def build(x):
        y = pool(x, sizes, [1, 2, 2, 1] if data_format == "NHWC" else [1, 1, 2, 2], padding,
                 data_format=data_format)  # fmt: skip
        return [y, *tf.gradients(y * y, [x])]

    close_to_float64(build, x, op=name)
    close_to_float64(build, x, op=f"{name}Grad")


@pytest.mark.parametrize(
    ("pool", "reduce", "op"),
    [(tf.nn.max_pool3d, np.nanmax, "MaxPool3D"), (tf.nn.avg_pool3d, np.nanmean, "AvgPool3D")],
)
def test_pooling_of_volumes(pool, reduce, op):
    x = data(2, 5, 6, 7, 3)
    padded = np.pad(x, [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0)], constant_values=np.nan)
    expected = reduce(padded.reshape(2, 3, 2, 3, 2, 4, 2, 3), axis=(2, 4, 6))
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, x.shape)
        y = pool(fed, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME")
        assert "onednn" in kernels(session, y, {fed: x})[op]
        np.testing.assert_allclose(session.run(y, {fed: x}), expected, rtol=1e-5, atol=1e-6)


def both_ways(build, value):
    """A result in float32, which oneDNN computes, and in float64, which NumPy does."""
    out = []
    for dtype in (tf.float32, tf.float64):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(dtype, value.shape)
            out.append(session.run(build(x), {x: value}))
    return out


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_maxima_of_what_is_not_finite(special):
    x = data(1, 6, 6, 16)
    x[0, 2, 2] = special
    x[0, 4:, :, :4] = special

    def build(x):
        y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        return [y, tf.gradients(y, x)[0]]

    ours, exact = both_ways(build, x)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("function", [tf.nn.softmax, tf.nn.log_softmax])
def test_softmax_of_what_is_not_finite(function):
    x = data(8, 100)
    x[0, 3], x[1, 5], x[2], x[3, 7] = np.nan, np.inf, -np.inf, -np.inf
    x[4] = -np.inf
    x[4, 2] = 3
    ours, exact = both_ways(function, x)
    np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-6)


def test_softmax_in_blocks():
    for function, op in ((tf.nn.softmax, "Softmax"), (tf.nn.log_softmax, "LogSoftmax")):
        close_to_float64(lambda x, f=function: [f(x)], data(50, 40_000), op=op)
        close_to_float64(lambda x, f=function: [f(x)], data(3, 4, 100), op=op)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training, data_format, monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "cluster")  # its parts would serve
    x = data(4, 6, 7, 10) * 2 + 5
    x = x if data_format == "NHWC" else np.ascontiguousarray(np.moveaxis(x, -1, 1))
    vectors = [data(10, seed=s) ** 2 + 0.5 for s in range(4)]
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(tf.float32, a.shape) for a in (x, *vectors)]
        given = {} if training else {"mean": inputs[3], "variance": inputs[4]}
        results = tf.nn.fused_batch_norm(
            *inputs[:3], **given, is_training=training, data_format=data_format
        )
        fetches = [*results, *tf.gradients(results[0] ** 2, inputs[:3])]
        feeds = dict(zip(inputs, (x, *vectors), strict=True))
        used = kernels(session, fetches, feeds)
        assert "onednn" in used["FusedBatchNormV3"]
        assert "onednn" in used["FusedBatchNormGradV3"]
        y, mean, variance, dx, dscale, doffset = session.run(fetches, feeds)
    axes = (0, 1, 2) if data_format == "NHWC" else (0, 2, 3)
    shape = [-1] if data_format == "NHWC" else [-1, 1, 1]
    used_mean = x.mean(axes) if training else vectors[2]
    used_variance = x.var(axes) if training else vectors[3]
    scale, offset = (v.reshape(shape) for v in vectors[:2])
    centred = (x - used_mean.reshape(shape)) / np.sqrt(used_variance.reshape(shape) + 1e-3)
    np.testing.assert_allclose(y, centred * scale + offset, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mean, used_mean, rtol=1e-5)
    unbiased = used_variance * (168 / 167 if training else 1)
    np.testing.assert_allclose(variance, unbiased, rtol=1e-5)
    dy = 2 * (centred * scale + offset)
    np.testing.assert_allclose(dscale, (dy * centred).sum(axes), rtol=1e-4)
    np.testing.assert_allclose(doffset, dy.sum(axes), rtol=1e-4)
    gain = scale / np.sqrt(used_variance.reshape(shape) + 1e-3)
    means = [np.mean(v, axes, keepdims=True) for v in (dy, dy * centred)]
    back = dy - means[0] - centred * means[1] if training else dy
    np.testing.assert_allclose(dx, gain * back, rtol=1e-3, atol=1e-3)


def _lrn(x, radius=2):
    """The op has no float64."""
    if x.dtype == tf.float32:
        return tf.nn.lrn(x, depth_radius=radius, bias=1.5, alpha=0.3, beta=0.75)
    return x / (1.5 + 0.3 * _window_sums(x, radius)) ** 0.75


def test_local_response_normalization():
    close_to_float64(lambda x: [_lrn(x)], data(2, 5, 6, 12), op="LRN")


@pytest.mark.parametrize(("channels", "radius"), [(16, 1), (48, 2), (32, 3), (48, 5), (32, 4)])
def test_gradient_of_local_response_normalization(channels, radius):
    def build(x, dy):
        return tf.gradients(_lrn(x, radius), x, dy)

    shape = (2, 7, 6, channels)
    # Only with AVX-512 has oneDNN a gradient that is faster than the plain formula.
    declined = "" if instructions()[0] else "oneDNN has no fast gradient for these sizes"
    close_to_float64(build, data(*shape), data(*shape, seed=1), op="LRNGrad", declined=declined)


@pytest.mark.parametrize(("channels", "radius"), [(5, 0), (32, 0), (2, 1), (20, 3), (40, 5)])
def test_gradients_that_onednn_gets_wrong_stay_away_from_it(channels, radius):
    x, dy = data(2, 3, 4, channels), data(2, 3, 4, channels, seed=1)
    results = []
    for dtype in (tf.float32, tf.float64):
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(dtype, x.shape) for _ in range(2)]
            dx = tf.gradients(_lrn(fed[0], radius), fed[0], fed[1])
            feeds = dict(zip(fed, (x, dy), strict=True))
            assert "onednn" not in kernels(session, dx, feeds).get("LRNGrad", "")
            results.append(session.run(dx[0], feeds))
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


def _window_sums(x, radius):
    channels = x.shape[3].value
    squares = tf.pad(x * x, [[0, 0], [0, 0], [0, 0], [radius, radius]])
    return tf.add_n([squares[..., i : i + channels] for i in range(2 * radius + 1)])


@pytest.fixture
def without_generated_code(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "off")
    llvm.why_not.cache_clear()
    yield
    monkeypatch.undo()
    llvm.why_not.cache_clear()


def test_bias_gradient(without_generated_code):
    def build(x, b, dy):
        return tf.gradients(tf.nn.bias_add(x, b), [b], grad_ys=[dy])

    shape = (40, 60, 32)
    arrays = data(*shape), data(32, seed=1), data(*shape, seed=2)
    close_to_float64(build, *arrays, op="BiasAddGrad")
