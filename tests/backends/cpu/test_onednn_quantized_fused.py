"""Layers of 8-bit networks in one pass of oneDNN's give what NumPy's kernels give."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.kernels.quantized_fused import table
from opdock_cpu.onednn.kernels import quantized, quantized_fused
from tests.backends.cpu.onednn import kernels, needs_onednn

pytestmark = needs_onednn

RNG = np.random.RandomState(4)
SHAPE, OUTPUTS = (3, 9, 10, 24), 40
KERNEL = RNG.randint(-127, 128, (3, 3, 24, OUTPUTS)).astype(np.int8).view(tf.qint8.np)
REACH = RNG.uniform(0.5, 3, OUTPUTS).astype(np.float32)
BIAS = RNG.uniform(-3, 3, OUTPUTS).astype(np.float32)
KINDS = [
    ("", tf.qint8), ("WithBias", tf.qint8), ("AndRelu", tf.quint8), ("WithBiasAndRelu", tf.quint8),
    ("WithBiasSumAndRelu", tf.quint8), ("WithBiasSignedSumAndRelu", tf.quint8),
]  # fmt: skip


def built(what, out, padding, stride, by_channel=True, whole=False):
    """A layer, and what to feed."""
    x = tf.placeholder(tf.quint8, SHAPE)
    feeds = {x: RNG.randint(0, 256, SHAPE).astype(np.uint8).view(tf.quint8.np)}
    reach = REACH if by_channel else np.float32(2)
    names = {"min_filter": -reach, "max_filter": reach}
    if "WithBias" in what:
        names["bias"] = tf.bitcast((BIAS * 1e4).astype(np.int32), tf.qint32) if whole else BIAS
    if "Sum" in what:
        other = tf.qint8 if "Signed" in what else tf.quint8
        size = [-(-n // stride) if padding == "SAME" else -(-(n - 2) // stride) for n in (9, 10)]
        shape = (3, *size, OUTPUTS)
        summand = names["summand"] = tf.placeholder(other, shape)
        feeds[summand] = RNG.randint(0, 128, shape).astype(other.np[0]).view(other.np)
        names |= {"min_summand": 0.0, "max_summand": 30.0}
    layer = getattr(tf.raw_ops, f"QuantizedConv2D{what}AndRequantize")(
        input=x, filter=KERNEL, min_input=0.0, max_input=4.0, min_freezed_output=-60.0,
        max_freezed_output=60.0, strides=[1, stride, stride, 1], padding=padding, out_type=out,
        **names,
    )  # fmt: skip
    return list(layer), feeds


def both(fetches, feeds):
    """The results as they come, and those of NumPy's kernel."""
    op = fetches[0].op.type
    with tf.Session() as session:
        assert ".onednn." in kernels(session, fetches, feeds)[op]
        ours = session.run(fetches, feeds)
        (plain,) = table.for_op(op)
        session.use_kernel(plain)
        assert ".onednn." not in kernels(session, fetches, feeds)[op]
        return ours, session.run(fetches, feeds)


@pytest.fixture(params=["at once", "carried"], autouse=True)
def how(request, monkeypatch):
    """Whether the processor has instructions for bytes; floats carry them else."""
    if request.param == "carried":
        for module in (quantized, quantized_fused):
            monkeypatch.setattr(module, "exact", lambda: "no instructions for bytes")


@pytest.mark.parametrize(("padding", "stride"), [("SAME", 1), ("SAME", 2), ("VALID", 1)])
@pytest.mark.parametrize(("what", "out"), KINDS)
def test_it_gives_what_numpy_gives(what, out, padding, stride):
    with tf.Graph().as_default():
        ours, theirs = both(*built(what, out, padding, stride))
    for a, b in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    a, b = (v[0].astype(np.int64) for v in (ours, theirs))
    # A summand is multiplied and added at once, without a rounding between.
    assert np.abs(a - b).max() <= ("Sum" in what)
    assert np.mean(a != b) < 1e-3
    assert len(np.unique(a)) > 20


@pytest.mark.parametrize(("by_channel", "whole"), [(False, False), (True, True)])
def test_ranges_and_biases_have_other_forms(by_channel, whole):
    with tf.Graph().as_default():
        ours, theirs = both(*built("WithBiasAndRelu", tf.quint8, "SAME", 1, by_channel, whole))
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_what_does_not_fit_is_named():
    with tf.Graph().as_default(), tf.Session() as session:
        _, feeds = built("WithBiasAndRelu", tf.quint8, "SAME", 1)
        (x,) = feeds
        wrong = tf.raw_ops.QuantizedConv2DWithBiasAndReluAndRequantize(
            input=x, filter=KERNEL, bias=BIAS, min_input=0.0, max_input=4.0,
            min_filter=tf.placeholder_with_default(REACH[:3], None), max_filter=REACH,
            min_freezed_output=0.0, max_freezed_output=1.0, strides=[1, 1, 1, 1], padding="SAME",
            out_type=tf.quint8,
        )  # fmt: skip
        with pytest.raises(tf.errors.InvalidArgumentError, match="min_filter has 3 elements"):
            session.run(wrong, feeds)
