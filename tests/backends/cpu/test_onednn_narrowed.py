"""Chains of 8-bit ops that are computed at once give what the single ops give, in every bit."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import looped
from opdock_cpu.narrowing import Narrowing
from opdock_cpu.onednn.narrowed_fusions import CHAINS
from opdock_cpu.ranges import F32
from tests.backends.cpu.onednn import kernels, needs_onednn

pytestmark = needs_onednn

RNG = np.random.RandomState(3)
SHAPE = (2, 9, 10, 24)


def unfused():
    options = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
    return tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))


def fed(*shape):
    """Bytes that no pass can fold, with a range."""
    x = tf.placeholder(tf.quint8, shape)
    value = RNG.randint(0, 256, shape).astype(np.uint8)
    return x, {x: value.view(tf.quint8.np) if value.dtype != tf.quint8.np else value}


def constant(*shape):
    return tf.constant(RNG.randint(0, 256, shape).astype(np.uint8).view(tf.quint8.np))


def source(op):
    """The three outputs of an op whose sums have 32 bits, and what to feed."""
    raw, ends = tf.raw_ops, (-0.5, 6.0)
    if op == "QuantizedMatMul":
        x, feeds = fed(40, 300)
        names = {"a": x, "b": constant(300, 24), "Toutput": tf.qint32}
        return raw.QuantizedMatMul(**names, min_a=-0.5, max_a=6.0, min_b=-0.02, max_b=0.03), feeds
    x, feeds = fed(*SHAPE)
    if op == "QuantizedConv2D":
        weights = constant(3, 3, 24, 24)
        return tf.nn.quantized_conv2d(x, weights, *ends, -0.02, 0.03, [1, 1, 1, 1], "SAME"), feeds
    if op == "QuantizedBiasAdd":
        return _biased([x, *ends], 24), feeds
    y, more = fed(*SHAPE)
    found = raw.QuantizedAdd(
        x=x, y=y, min_x=-0.5, max_x=6.0, min_y=-1.0, max_y=1.0, Toutput=tf.qint32
    )
    return found, {**feeds, **more}


def _biased(values, depth):
    return tf.raw_ops.QuantizedBiasAdd(
        input=values[0], bias=constant(depth), min_input=values[1], max_input=values[2],
        min_bias=-0.7, max_bias=0.9, out_type=tf.qint32,
    )  # fmt: skip


def narrowed(sums, ends):
    names = dict(zip(("input", "input_min", "input_max"), sums, strict=True))
    if ends is None:
        ends = tf.raw_ops.RequantizationRange(**names)
    return tf.raw_ops.Requantize(
        **names, requested_output_min=ends[0], requested_output_max=ends[1], out_type=tf.quint8
    )


def built(chain):
    """A chain as single ops."""
    sums, feeds = source(chain.source)
    out = narrowed(sums, None if chain.measured else (-1.0, 7.0))
    if chain.biased:
        out = narrowed(_biased(list(out), 24), (-0.5, 8.0))
    if chain.activation:
        names = dict(zip(("features", "min_features", "max_features"), out, strict=True))
        out = getattr(tf.raw_ops, chain.activation)(**names)
    return list(out), feeds


def plain(found):
    return [v.view(v.dtype[0]) if v.dtype.names else v for v in map(np.asarray, found)]


@pytest.mark.parametrize("generated", [False, True])
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.name)
def test_a_chain_gives_what_its_ops_give(chain, generated, monkeypatch):
    if generated:
        monkeypatch.setenv("OPDOCK_JIT", "sync")
        monkeypatch.setattr(looped, "_SMALL", 0)
    else:
        monkeypatch.setattr(looped.Looped, "__call__", lambda *args, **words: False)
    with tf.Graph().as_default() as graph:
        fetches, feeds = built(chain)
        with tf.Session(graph=graph) as one, tf.Session(graph=graph, config=unfused()) as other:
            # The range of the sums is taken too: a fused chain has three results.
            assert chain.op in kernels(one, fetches, feeds)
            assert not any(k.startswith("opdock_cpu>") for k in kernels(other, fetches, feeds))
            ours, parts = (plain(s.run(fetches, feeds)) for s in (one, other))
    for a, b in zip(ours, parts, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert len(np.unique(ours[0])) > 3


def test_what_else_is_taken_of_a_chain_keeps_it_apart():
    with tf.Graph().as_default(), tf.Session() as session:
        sums, feeds = source("QuantizedConv2D")
        out = narrowed(sums, (-3.0, 11.0))
        fetches = [out[0], sums[0]]
        assert not any(k.startswith("opdock_cpu>") for k in kernels(session, fetches, feeds))


@pytest.mark.parametrize("generated", [False, True])
def test_sums_narrow_alike_whatever_carries_them(generated, monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)
    if not generated:
        monkeypatch.setattr(looped.Looped, "__call__", lambda *args, **words: False)
    sums = RNG.randint(-(1 << 24), 1 << 24, (7, 50))
    narrow = Narrowing.between((F32(-4e4), F32(4e4)), (F32(-99.5), F32(200.25)), least=3, most=250)
    level = ((sums * narrow.factor >> 32) + narrow.shift) >> 16
    for kind in (np.int32, np.float32):
        np.testing.assert_array_equal(narrow(sums.astype(kind)), np.clip(level, 3, 250))


def test_the_range_of_a_requantize_is_checked_in_a_chain():
    with tf.Graph().as_default(), tf.Session() as session:
        sums, feeds = source("QuantizedConv2D")
        out = narrowed(sums, (tf.placeholder_with_default(1.0, []), 11.0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be <= 0, but got 1"):
            session.run(out, feeds)
