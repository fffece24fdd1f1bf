"""Ops in their parts: batch norm as one op, which is never more work than written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

import opdock as tf
from opdock import plugin
from opdock.plugin import KernelTable
from tests.core.compiler import melder

RNG = np.random.default_rng(3)
SHAPE = (8, 12, 12, 16)


def spread(vector, data_format):
    return tf.reshape(vector, [1, -1, 1, 1]) if data_format == "NCHW" else vector


def both(data_format, training, dtype=tf.float32):
    """Images, and their norm by the op and written out."""
    *images, channels = SHAPE
    shape = [images[0], channels, *images[1:]] if data_format == "NCHW" else SHAPE
    axes = [0, 2, 3] if data_format == "NCHW" else [0, 1, 2]
    x = tf.placeholder(dtype, shape)
    scale, offset, mean, variance = (
        tf.placeholder(tf.float32, [channels]) for _ in range(4)
    )  # fmt: skip
    given = {} if training else {"mean": mean, "variance": variance}
    one, *_ = tf.nn.fused_batch_norm(
        x, scale, offset, is_training=training, data_format=data_format, **given
    )
    wide = tf.cast(x, tf.float32)
    if training:
        mean, variance = tf.nn.moments(wide, axes)
    vectors = (spread(v, data_format) for v in (mean, variance, offset, scale))
    out = tf.cast(tf.nn.batch_normalization(wide, *vectors, 1e-3), dtype)
    feeds = {x: RNG.normal(1, 2, shape)}
    feeds |= {v: RNG.uniform(0.5, 2, channels) for v in (scale, offset)}
    if not training:
        feeds |= {v: RNG.uniform(0.5, 2, channels) for v in (mean, variance)}
    return feeds, [x, scale, offset], one, out


def work(session, fetches, feeds):
    """The bytes of whole arrays of images that a step reads and writes, and its calls."""
    nodes = [n for n in session._program(fetches, feeds).block.nodes if n.kernel is not None]
    size = math.prod(SHAPE)
    whole = (
        size * v.dtype.size for n in nodes for v in (*n.inputs, *n.values())
        if v.shape and math.prod(v.shape) == size
    )  # fmt: skip
    return sum(whole), len(nodes)


@pytest.fixture
def whole(monkeypatch):
    """Nothing counts as small enough for one kernel."""
    monkeypatch.setattr("opdock_cpu.onednn.kernels.norm._CACHED", 0)


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("what", ["forward", "gradient", "both", "backward"])
def test_the_op_reads_and_writes_no_more_than_written_out(what, data_format, training, dtype):
    feeds, sources, one, out = both(data_format, training, dtype)
    above = tf.placeholder(dtype, one.shape)
    feeds[above] = RNG.normal(1, 2, one.shape.as_list())

    def fetches(y):
        if what == "forward":
            return [y]
        if what == "backward":
            return tf.gradients(y, sources, above)
        return [*tf.gradients(tf.square(y), sources), *([y] if what == "both" else [])]

    a, b = fetches(one), fetches(out)
    with tf.Session() as session:
        tolerance = 2e-2 if dtype is tf.float16 else 2e-4
        for got, wanted in zip(session.run(a, feeds), session.run(b, feeds), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * 20)
        spent, allowed = work(session, a, feeds), work(session, b, feeds)
        assert 0 < spent[0] <= allowed[0] and spent[1] <= allowed[1]


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_what_an_op_and_its_gradient_make_of_a_channel_is_made_once(data_format):
    feeds, sources, one, out = both(data_format, training=False)
    read = []
    with tf.Session() as session:
        for y in (one, out):
            fetches = tf.gradients(tf.square(y), sources)
            nodes = session._program(fetches, feeds).block.nodes
            over = [n for n in nodes if any(v.shape == y.shape.raw for v in n.inputs)]
            read.append(sum(len(n.inputs) for n in over if n.kernel is not None))
    assert 0 < read[0] <= read[1]


@pytest.mark.usefixtures("whole")
def test_images_that_a_variable_holds_are_read_as_they_are():
    x = tf.Variable(RNG.normal(1, 2, SHAPE).astype(np.float32))
    held, *_ = tf.nn.fused_batch_norm(x, tf.ones([16]), tf.zeros([16]))
    fed = tf.placeholder(tf.float32, SHAPE)
    norm, *_ = tf.nn.fused_batch_norm(fed, tf.ones([16]), tf.zeros([16]))
    with tf.Session() as session:
        session.run(x.initializer)
        feeds = {fed: session.run(x)}
        np.testing.assert_array_equal(session.run(held), session.run(norm, feeds))
        ops = {node.op for node in session._program([held], {}).block.nodes}
        assert "Cast" not in ops
        assert 0 < work(session, [held], {})[0] <= work(session, [norm], feeds)[0]


@pytest.mark.usefixtures("whole")
@pytest.mark.parametrize(("mean", "spread"), [(0, 1), (1000, 0.5), (-3, 1e-3)])
def test_a_mean_far_from_zero_takes_no_digits_from_the_variance(mean, spread, monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    x = tf.placeholder(tf.float32, SHAPE)
    norm = tf.nn.fused_batch_norm(x, tf.ones([16]), tf.zeros([16]))
    value = RNG.normal(mean, spread, SHAPE).astype(np.float32)
    with tf.Session() as session:
        _, batch_mean, variance = session.run(norm, {x: value})
    exact = value.astype(np.float64).reshape(-1, 16)
    np.testing.assert_allclose(batch_mean, exact.mean(0), rtol=2e-7, atol=1e-7)
    np.testing.assert_allclose(variance, exact.var(0, ddof=1), rtol=1e-5)


def test_channels_that_are_no_numbers_are_alone():
    feeds, (x, *_), one, _ = both("NHWC", True)
    feeds[x][3, 2, 1, 5], feeds[x][0, 0, 0, 7] = np.nan, np.inf
    with tf.Session() as session:
        y = session.run(one, feeds)
    spoiled = np.isnan(y).all((0, 1, 2))
    assert spoiled[5] and spoiled[7] and spoiled.sum() == 2


def test_a_kernel_stays_where_it_is_better():
    feeds, _, one, _ = both("NHWC", True)
    with tf.Session() as session:
        kernels = [n.kernel for n in session._program([one], feeds).block.nodes if n.kernel]
        session.run(one, feeds)
    named = {k.op for k in kernels}
    fast = any("onednn" in k.qualname for k in kernels)
    assert ("FusedBatchNormV3" in named) == fast


# ---------------------------------------------------------------- what a plugin's kernel asks for
@pytest.fixture
def program(meld, monkeypatch):
    """The nodes of log softmax on a device whose kernel has its `unfold`, and the result."""

    def run(unfold, off=""):
        def bind(sig):
            return melder.noted(sig, lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)))

        kernel = plugin.Kernel(op="LogSoftmax", bind=bind, unfold=unfold)
        monkeypatch.setattr(melder, "table", KernelTable([*melder.table, kernel]))
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
        plugin.register(melder, melder.NAME)
        with tf.device(meld), tf.Session() as session:
            x = tf.placeholder(tf.float32, [2, 3])
            y, value = tf.nn.log_softmax(x), RNG.normal(size=(2, 3)).astype(np.float32)
            exact = value - np.log(np.exp(value).sum(-1, keepdims=True))
            np.testing.assert_allclose(session.run(y, {x: value}), exact, rtol=1e-5)
            return session._program(y, {x: value}).block

    return run


def test_a_kernel_hands_over_to_clusters(program):
    block = program(lambda sig: sig.in_shapes == ((2, 3),))
    assert melder.clusters(block.nodes) and "LogSoftmax" not in {n.op for n in block.nodes}
    assert all(op != "LogSoftmax" for op, _ in melder.calls)


@pytest.mark.parametrize(
    ("unfold", "off"),
    [(None, ""), (lambda sig: False, ""), (lambda sig: "few", ""), (lambda sig: True, "cluster")],
)
def test_a_kernel_serves_itself(program, unfold, off):
    assert "LogSoftmax" in {n.op for n in program(unfold, off).nodes}


def test_a_question_that_fails_is_told(program):
    def unfold(sig):
        raise ZeroDivisionError("no shape")

    block = program(unfold)
    assert "LogSoftmax" in {n.op for n in block.nodes}
    (missed,) = block.missed
    assert missed[1:] == ("cluster", "unfold() raised ZeroDivisionError: no shape")
