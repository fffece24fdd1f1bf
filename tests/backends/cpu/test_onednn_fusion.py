"""Products with their epilogues: fused equals unfused, NaNs included, whatever changes between."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.backends.cpu.onednn import data, kernels, needs_onednn

pytestmark = needs_onednn

ACTIVATIONS = {
    "": lambda x: x, "Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu,
    "Tanh": tf.tanh, "Sigmoid": tf.sigmoid,
}  # fmt: skip


def unfused():
    options = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
    return tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))


def check(build, op):
    """Compares the fused op with its parts, before and after the variables change."""
    x = data(4, 12, 12, 16).astype(np.float32)
    x[0, 0, 0, 0] = np.nan
    with tf.Graph().as_default() as graph:
        fed = tf.placeholder(tf.float32, x.shape)
        y = build(fed)
        change = [tf.assign(v, v * 1.5) for v in tf.global_variables()]
        init = tf.global_variables_initializer()
        with tf.Session(graph=graph) as one, tf.Session(graph=graph, config=unfused()) as other:
            assert any(op == k for k in kernels(one, y, {fed: x}))
            assert not any(k.startswith("opdock_cpu>") for k in kernels(other, y, {fed: x}))
            for session in (one, other):
                session.run(init)
            for _ in range(2):
                ours, parts = (s.run(y, {fed: x}) for s in (one, other))
                assert np.isnan(parts).any()
                np.testing.assert_allclose(ours, parts, rtol=1e-4, atol=1e-4)
                for session in (one, other):
                    session.run(change)


def variable(name, *shape, positive=False):
    value = data(*shape, seed=len(name)).astype(np.float32)
    return tf.get_variable(name, initializer=np.abs(value) + 0.5 if positive else value)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_convolution_and_bias(name, residual):
    def build(x):
        y = tf.nn.conv2d(x, variable("w", 3, 3, 16, 16), [1, 1, 1, 1], "SAME")
        y = tf.nn.bias_add(y, variable("bb", 16))
        return ACTIVATIONS[name](y + x if residual else y)

    check(build, f"opdock_cpu>Conv2DBias{'Add' if residual else ''}{name}")


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_convolution_and_batch_norm(name, residual):
    def build(x):
        y = tf.nn.conv2d(x, variable("w", 3, 3, 16, 16), [1, 1, 1, 1], "SAME")
        given = [variable(n, 16, positive=True) for n in ("sc", "off", "mean", "varia")]
        y = tf.nn.fused_batch_norm(y, *given, is_training=False)[0]
        return ACTIVATIONS[name](x + y if residual else y)

    check(build, f"opdock_cpu>Conv2DNorm{'Add' if residual else ''}{name}")


@pytest.mark.parametrize("name", ["", "Relu", "Relu6"])
@pytest.mark.parametrize("kind", ["Bias", "Norm"])
def test_depthwise_convolution(name, kind):
    def build(x):
        y = tf.nn.depthwise_conv2d_native(x, variable("w", 3, 3, 16, 2), [1, 2, 2, 1], "SAME")
        if kind == "Bias":
            y = tf.nn.bias_add(y, variable("bb", 32))
        else:
            given = [variable(n, 32, positive=True) for n in ("sc", "off", "mean", "varia")]
            y = tf.nn.fused_batch_norm(y, *given, is_training=False)[0]
        return ACTIVATIONS[name](y)

    check(build, f"opdock_cpu>DepthwiseConv2dNative{kind}{name}")


def test_channels_first():
    def build(x):
        turned = tf.transpose(x, [0, 3, 1, 2])
        y = tf.nn.conv2d(
            turned, variable("w", 3, 3, 16, 8), [1, 1, 1, 1], "SAME", data_format="NCHW"
        )
        return tf.nn.relu(tf.nn.bias_add(y, variable("bb", 8), data_format="NCHW"))

    check(build, "opdock_cpu>Conv2DBiasRelu")


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("columns", [4, 300])
def test_matrix_product(name, columns):
    """Small products go through BLAS inside the fused op, large ones through oneDNN."""

    def build(x):
        y = tf.matmul(tf.reshape(x, [16, 576]), variable("w", 576, columns))
        return ACTIVATIONS[name](tf.nn.bias_add(y, variable("bb", columns)))

    check(build, f"opdock_cpu>MatMulBias{name}")


def _filter_and_bias(x, **more):
    w, b = variable("w", 3, 3, 16, 8), variable("bb", 8)
    strides = [1, 1, 2, 2] if more else [1, 2, 2, 1]
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, strides, "SAME", **more), b, **more)
    dw, db = tf.gradients(y * y, [w, b])
    return tf.concat([tf.reshape(dw, [-1]), db], 0)


def test_gradients_of_filter_and_bias_come_together():
    def build(x):
        return _filter_and_bias(tf.transpose(x, [0, 3, 1, 2]), data_format="NCHW")

    check(build, "opdock_cpu>Conv2DFilterAndBiasGrad")


def test_channels_last_they_do_not():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 12, 12, 16])
        ops = kernels(session, _filter_and_bias(x), {x: data(4, 12, 12, 16)})
    assert "Conv2DBackpropFilter" in ops and "opdock_cpu>Conv2DFilterAndBiasGrad" not in ops


def _added(rows, inner, columns):
    """A product of a transposed matrix, added to another one."""
    a, total = (
        tf.placeholder(tf.float32, [inner, rows]),
        tf.placeholder(tf.float32, [rows, columns]),
    )
    b = tf.placeholder(tf.float32, [inner, columns])
    feeds = {t: data(*t.shape.as_list(), seed=i) for i, t in enumerate((a, b, total))}
    return tf.matmul(a, b, transpose_a=True) + total, feeds


def test_a_weights_gradient_is_added_to_what_is_there():
    with tf.Graph().as_default() as graph:
        y, feeds = _added(96, 40, 128)
        with tf.Session(graph=graph) as one, tf.Session(graph=graph, config=unfused()) as other:
            assert "opdock_cpu>MatMulAdd" in kernels(one, y, feeds)
            a, b, total = feeds.values()
            for session in (one, other):
                got = session.run(y, feeds)
                np.testing.assert_allclose(got, a.T @ b + total, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(total, data(96, 128, seed=2))


@pytest.mark.parametrize("sizes", [(8, 8, 8), (96, 40, 128)])
def test_a_small_product_is_a_matter_of_clusters(sizes):
    with tf.Graph().as_default(), tf.Session() as session:
        y, feeds = _added(*sizes)
        assert ("opdock_cpu>MatMulAdd" in kernels(session, y, feeds)) == (sizes[0] > 8)


def test_a_sum_that_broadcasts_is_not_added_by_the_product():
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.placeholder(tf.float32, [40, 96]), tf.placeholder(tf.float32, [40, 128])
        y = tf.matmul(a, b, transpose_a=True) + tf.constant(data(128), tf.float32)
        feeds = {a: data(40, 96), b: data(40, 128)}
        assert "opdock_cpu>MatMulAdd" not in kernels(session, y, feeds)
        want = feeds[a].T @ feeds[b] + data(128)
        np.testing.assert_allclose(session.run(y, feeds), want, rtol=1e-4, atol=1e-4)


def test_a_factor_that_is_the_sum_too_is_not_written_over():
    """The buffer of a dies where a.T @ a + a is computed, which reads a till the end."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [96, 96])
        a = tf.matmul(x, x)
        y = tf.matmul(a, a, transpose_a=True) + a
        z = tf.matmul(y, y)
        value = data(96, 96) / 10
        assert "opdock_cpu>MatMulAdd" in kernels(session, z, {x: value})
        want = value @ value
        want = want.T @ want + want
        got = session.run(z, {x: value})
        np.testing.assert_allclose(got, want @ want, rtol=1e-3, atol=1e-3)


def test_the_gradient_of_a_loops_weights_is_added_up_in_place():
    turns, rows, width = 5, 32, 96
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [rows, width]), variable("w", width, width)
        y = tf.while_loop(
            lambda i, _: i < turns, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (0, x)
        )[1]
        unrolled = x
        for _ in range(turns):
            unrolled = tf.tanh(tf.matmul(unrolled, w))
        gradient, want = (tf.gradients(tf.reduce_sum(v * v), w)[0] for v in (y, unrolled))
        session.run(w.initializer)
        feeds = {x: data(rows, width)}
        assert "opdock_cpu>MatMulAdd" in kernels(session, gradient, feeds)
        for _ in range(2):
            got, expected = session.run([gradient, want], feeds)
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def test_a_shared_result_is_not_fused_away():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 8, 8, 4])
        y = tf.nn.bias_add(
            tf.nn.conv2d(x, tf.constant(data(3, 3, 4, 4), tf.float32), [1, 1, 1, 1], "SAME"),
            tf.constant([1.0, -1.0, 2.0, 0.0]),
        )
        before, after = session.run([y, tf.nn.relu(y)], {x: data(1, 8, 8, 4)})
        np.testing.assert_array_equal(after, np.maximum(before, 0))
