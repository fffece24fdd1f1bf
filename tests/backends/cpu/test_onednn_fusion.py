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


def test_a_shared_result_is_not_fused_away():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 8, 8, 4])
        y = tf.nn.bias_add(
            tf.nn.conv2d(x, tf.constant(data(3, 3, 4, 4), tf.float32), [1, 1, 1, 1], "SAME"),
            tf.constant([1.0, -1.0, 2.0, 0.0]),
        )
        before, after = session.run([y, tf.nn.relu(y)], {x: data(1, 8, 8, 4)})
        np.testing.assert_array_equal(after, np.maximum(before, 0))
