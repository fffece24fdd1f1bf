"""cuDNN's graphs on the stand-in: what is planned, when it declines, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture
def planned(gpu):
    import cudnn

    cudnn.PLANNED.clear()
    gpu.dnn._graphs.clear()
    return cudnn.PLANNED


def run(build, device="/device:CUDA:0"):
    with tf.Graph().as_default(), tf.device(device):
        fetches = build()
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as sess:
            return sess.run(fetches)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def network(padding, strides):
    x, w, b = (tf.Variable(normal(*s)) for s in ((2, 8, 7, 4), (3, 3, 4, 6), (6,)))

    def build():
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, strides, strides, 1], padding), b))
        return [y, *tf.gradients(tf.reduce_sum(y * y), [x, w, b])]

    return build()


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [1, 2])
def test_convolution_with_bias_and_relu_and_gradients(planned, padding, strides):
    def build():
        fetches = network(padding, strides)
        init = tf.global_variables_initializer()
        with tf.control_dependencies([init]):
            return [tf.identity(f) for f in fetches], init

    def values(device):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as sess:
            fetches = network(padding, strides)
            sess.run(tf.global_variables_initializer())
            return sess.run(fetches)

    for got, want in zip(values("/device:CUDA:0"), values("/cpu:0"), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    kinds = {kind for ops, _ in planned for kind in ops}
    assert {"conv_dgrad", "conv_wgrad"} <= kinds and kinds & {"conv_fprop"}


def test_one_graph_for_convolution_bias_and_relu(planned):
    def build():
        x = tf.random_normal([1, 5, 5, 2], seed=1)
        w, b = (tf.constant(normal(*s)) for s in ((3, 3, 2, 4), (4,)))
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))

    run(build)
    import cudnn

    assert planned == [(("conv_fprop", "bias", "relu"), (cudnn.numerical_note.TENSOR_CORE,))]


def test_only_what_is_deterministic_where_that_is_asked_for(planned, monkeypatch):
    monkeypatch.setenv("TF_DETERMINISTIC_OPS", "1")
    run(lambda: tf.nn.conv2d(tf.random_normal([2, 7, 7, 2]), normal(3, 3, 2, 4), 1, "SAME"))
    import cudnn

    ((_, refused),) = planned
    assert cudnn.numerical_note.NONDETERMINISTIC in refused


def test_tensor_cores_where_tf32_is_allowed(planned, gpu):
    config = tf.ConfigProto()
    extra = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    extra.parameter_map["allow_tf32"].b = True
    with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session(config=config) as sess:
        x = tf.placeholder(tf.float32, [1, 5, 5, 2])
        y = tf.nn.conv2d(x, normal(3, 3, 2, 4), [1, 1, 1, 1], "SAME")
        sess.run(y, {x: normal(1, 5, 5, 2)})
    gpu.configure({})
    assert planned == [(("conv_fprop",), ())]


def test_without_cudnn_the_shared_kernels_serve(gpu, monkeypatch):
    from opdock_cuda import dnn

    monkeypatch.setattr(dnn, "_frontend", lambda: "cuDNN does not start: no library")
    with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [1, 5, 5, 2])
        y = tf.nn.conv2d(x, normal(3, 3, 2, 4), [1, 1, 1, 1], "SAME", name="conv")
        (row,) = [r for r in sess.explain(y, {x: normal(1, 5, 5, 2)}).rows if r.node == "conv"]
        assert row.kernel.startswith("opdock_ckernels")
        assert any("cuDNN does not start: no library" in r for r in row.rejections)


def test_a_graph_without_an_engine_leaves_the_node_to_the_shared_kernel(planned, gpu, monkeypatch):
    import cudnn

    def declined(self):
        raise cudnn.cudnnGraphNotSupportedError("no engine")

    monkeypatch.setattr(cudnn.pygraph, "check_support", declined)
    x, w = normal(1, 5, 5, 2), normal(3, 3, 2, 4)

    def build():
        held = tf.placeholder_with_default(x, x.shape)
        return tf.nn.conv2d(held, w, [1, 1, 1, 1], "SAME")

    np.testing.assert_allclose(run(build), run(build, "/cpu:0"), rtol=1e-4, atol=1e-5)
    assert planned == []
