"""Pools: masks and sums move before the gradient of a maximum pool, and results stay the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.compiler.clean.prune import prune, refine_shapes
from opdock.compiler.rules import pools
from opdock.compiler.rules.rewrite import rewrite


def gradients(x, bias, window, activation=tf.nn.relu, summed=tf.nn.bias_add):
    """By x and by bias, of the squares of activated and pooled x + bias."""
    pooled = tf.nn.max_pool(activation(summed(x, bias)), **window)
    return tf.gradients(pooled * pooled, [x, bias])


def window(size=2, stride=2, padding="SAME", data_format="NHWC", depth=1):
    dims = {"N": 1, "C": depth}
    return {
        "ksize": [dims.get(d, size) for d in data_format],
        "strides": [dims.get(d, stride) for d in data_format],
        "padding": padding, "data_format": data_format,
    }  # fmt: skip


def rewritten(fetches, feeds):
    """The nodes after the rules of this pass alone, and which it took."""
    block = prune(fetches, [], [(f, f.dtype, tuple(f.shape.as_list())) for f in feeds])
    refine_shapes(block)
    rewrite(block, {"pools": pools.RULES})
    return block.nodes, [op for _, op, _ in block.folded]


def sizes(nodes, *ops):
    return [math.prod(n.inputs[0].shape) for n in nodes if n.op in ops]


def add(x, bias):
    return x + bias


@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.relu6])
@pytest.mark.parametrize("summed", [tf.nn.bias_add, add])
def test_masks_and_sums_see_the_maxima(activation, summed):
    x, bias = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.float32, [3])
    nodes, _ = rewritten(gradients(x, bias, window(), activation, summed), [x, bias])
    assert sizes(nodes, "MaxPoolGrad") == [2 * 8 * 8 * 3]
    assert sizes(nodes, "ReluGrad", "Relu6Grad") == [2 * 4 * 4 * 3]
    assert sizes(nodes, "BiasAddGrad", "Sum") == [2 * 4 * 4 * 3]


def test_what_reads_variables_moves_too(compiled):
    """Each step of training reads them anew, but the maxima hold all that the mask needs."""
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    weights = tf.get_variable("w", [3, 3, 3, 4])
    bias = tf.get_variable("b", [4])
    images = tf.nn.conv2d(x, weights, [1] * 4, "SAME")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fetches = tf.gradients(
            tf.nn.max_pool(tf.nn.relu(tf.nn.bias_add(images, bias)), **window()), [weights, bias]
        )
        program = compiled(session, fetches, {x: np.ones((2, 8, 8, 3))})
        took = {op for _, op, why in program.block.folded if why.startswith("pools:")}
    assert took == {"ReluGrad", "BiasAddGrad"}


def test_volumes():
    x = tf.placeholder(tf.float32, [1, 4, 4, 4, 2])
    pooled = tf.nn.max_pool3d(tf.nn.relu(x), [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "VALID")
    nodes, took = rewritten(tf.gradients(pooled, [x]), [x])
    assert took == ["ReluGrad"] and sizes(nodes, "ReluGrad") == [2 * 2 * 2 * 2]


def test_sums_of_single_rows_and_across_channels_stay():
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    h = tf.nn.relu(x)
    for axes, where in (([0, 1], window()), ([3], window()), (None, window(depth=3, stride=2))):
        into = tf.gradients(tf.nn.max_pool(h, **where), [x])[0]
        _, took = rewritten([tf.reduce_sum(into, axes)], [x])
        whole = axes is None and where["ksize"][3] == 1
        assert took == ["ReluGrad"] + ["Sum"] * whole
    into = tf.gradients(tf.nn.max_pool(h, **window()), [x])[0]
    assert rewritten([tf.reduce_sum(into)], [x])[1] == ["ReluGrad", "Sum"]


def test_maxima_of_something_else_stay():
    """MaxPoolGrad takes any array for the maxima, and looks for winners itself."""
    x, other = (tf.placeholder(tf.float32, [2, 4, 4, 3]) for _ in range(2))
    g = tf.placeholder(tf.float32, [2, 2, 2, 3])
    raw = {**window(), "name": None}
    h = tf.nn.relu(x)
    for maxima in (tf.nn.max_pool(other, **window()), tf.nn.max_pool(h, **window(size=3))):
        into = tf.raw_ops.MaxPoolGrad(orig_input=h, orig_output=maxima, grad=g, **raw)
        masked = tf.raw_ops.ReluGrad(gradients=into, features=h)
        assert rewritten([masked], [x, other, g])[1] == []
    maxima = tf.nn.max_pool(h, **window())
    into = tf.raw_ops.MaxPoolGrad(orig_input=h, orig_output=maxima, grad=g, **raw)
    assert rewritten([tf.raw_ops.ReluGrad(gradients=into, features=other)], [x, other, g])[1] == []
    # Without a mask a window of NaNs may lose its gradient, which a sum before would not.
    assert rewritten([tf.reduce_sum(into)], [x, g])[1] == []


@settings(max_examples=30)
@given(
    st.sampled_from(["NHWC", "NCHW"]), st.sampled_from(["SAME", "VALID"]), st.integers(1, 3),
    st.integers(1, 3), st.integers(3, 7), st.integers(0, 2**16),
    st.sampled_from([tf.nn.relu, tf.nn.relu6]),
)  # fmt: skip
def test_results_are_the_same(data_format, padding, size, stride, side, seed, activation):
    """Windows that overlap, leave elements out, hold ties, NaNs and infinities."""
    rng = np.random.default_rng(seed)
    shape = [{"N": 2, "C": 3}.get(d, side) for d in data_format]
    # Eighths: sums of them are exact in any order.
    image = (rng.integers(-16, 64, shape) / 8).astype(np.float32)
    image.flat[rng.integers(0, image.size, 2)] = [np.nan, np.inf]
    where = window(size, stride, padding, data_format)

    def outcome(off):
        with pytest.MonkeyPatch.context() as patch, tf.Graph().as_default():
            patch.setenv("OPDOCK_DISABLE_PASSES", off)
            x = tf.placeholder(tf.float32, shape)
            h = activation(tf.nn.bias_add(x, [0.0, 0.5, -0.25], data_format=data_format))
            pooled = tf.nn.max_pool(h, **where)
            g = tf.placeholder(tf.float32, pooled.shape)
            into = tf.gradients(pooled, [x], g)[0]
            by_bias = tf.raw_ops.BiasAddGrad(out_backprop=into, data_format=data_format)
            weights = np.resize(np.arange(-8.0, 8.0) / 8, pooled.shape.as_list())
            config = tf.ConfigProto(allow_soft_placement=True)
            with tf.Session(config=config) as session:
                return session.run([into, by_bias], {x: image, g: weights})

    for ours, plain in zip(outcome(""), outcome("pools"), strict=True):
        np.testing.assert_array_equal(ours, plain)


def test_known_windows_become_attributes():
    x, grad = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.float32, [2, 4, 4, 3])
    size = tf.constant([1, 2, 2, 1])
    pooled = tf.raw_ops.MaxPoolV2(input=x, ksize=size, strides=size, padding="SAME")
    back = tf.raw_ops.MaxPoolGradV2(
        orig_input=x, orig_output=pooled, grad=grad, ksize=size, strides=size, padding="SAME"
    )
    nodes, rules = rewritten([pooled, back], [x, grad])
    assert {n.op for n in nodes} >= {"MaxPool", "MaxPoolGrad"}
    assert rules == ["MaxPoolV2", "MaxPoolGradV2"]


def test_windows_that_are_fed_stay_inputs():
    x, size = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.int32, [4])
    pooled = tf.raw_ops.MaxPoolV2(input=x, ksize=size, strides=[1, 2, 2, 1], padding="SAME")
    nodes, _ = rewritten([pooled], [x, size])
    assert "MaxPoolV2" in {n.op for n in nodes}
