"""Clusters of one structure: they have one line, and their kernel is asked about it once."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import CLUSTER
from tests.core.compiler import melder

pytestmark = pytest.mark.usefixtures("clusters_alone")
X = np.array([[-1.5, 0.25, 3.0], [0.5, -0.0, 10.0]], np.float32)
W = np.array([[1, 2, 3], [0, -1, 2], [3, 1, 0.5]], np.float32)


@pytest.fixture
def asked(monkeypatch):
    """The lines of the clusters of several ops about which the kernel was asked."""
    lines = []
    when = melder.willing

    def noted(sig):
        if sig.op == CLUSTER and len(sig.attrs["members"]) > 1:
            lines.append(sig.attrs["line"])
        return when(sig)

    (kernel,) = melder.table.for_op(CLUSTER)
    object.__setattr__(kernel, "when", noted)
    yield lines
    object.__setattr__(kernel, "when", when)


def between(x, *functions):
    """Each function of what the one before gave, with a product of matrices between them."""
    w = tf.placeholder(tf.float32, [3, 3], name="w")
    for i, function in enumerate(functions):
        x = function(tf.matmul(x, w) if i else x)
    return x, w


def layer(v):
    return tf.tanh(v * 2.0 + 1.0)


def test_layers_have_one_line(x, clusters, asked):
    y, w = between(x, layer, layer, layer)
    lines = [n.attrs["line"] for n in clusters(y, {x: X, w: W})]
    assert len(lines) == 3
    assert all(line is lines[0] for line in lines)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda v: tf.tanh(v * 2.0 + 3.0),
        lambda v: tf.sinh(v * 2.0 + 1.0),
        lambda v: tf.tanh((v + 1.0) * 2.0),
        lambda v: tf.tanh(v * v + 1.0),
    ],
    ids=["number", "function", "order", "operand"],
)
def test_others_have_their_own(other, x, clusters, asked):
    y, w = between(x, layer, other)
    first, second = clusters(y, {x: X, w: W})
    assert first.attrs["line"] != second.attrs["line"]
    assert len(asked) == 2


def test_operands_keep_their_places(x, clusters):
    a = tf.placeholder(tf.float32, [2, 3], name="a")
    y, w = between(x, lambda v: tf.exp(v - a), lambda v: tf.exp(v - a), lambda v: tf.exp(a - v))
    nodes = clusters(y, {x: X, a: X * 0.5, w: W})
    places = [[v.node.name.split(":")[0] for v in n.inputs].index("a") for n in nodes]
    assert places == [1, 1, 0]


def test_results_that_others_read_are_results(x, clusters):
    kept = []

    def keeping(v):
        kept.append(tf.exp(v * 0.1))
        return tf.tanh(kept[-1])

    y, w = between(x, keeping, keeping, keeping)
    nodes = clusters([y, kept[1]], {x: X, w: W})
    assert [len(n.out_dtypes) for n in nodes] == [1, 2, 1]


def test_reductions_of_other_axes_are_others(x, clusters):
    def centred(axis):
        return lambda v: v - tf.reduce_mean(tf.square(v), [axis], keepdims=True)

    y, w = between(x, centred(1), centred(1), centred(0))
    found = [n.attrs["reduces"] for n in clusters(y, {x: X, w: W}) if n.attrs["reduces"]]
    assert [r.axes for reduces in found for r in reduces] == [(1,), (1,), (0,)]


def test_a_declined_structure_is_told_for_each(x, asked):
    melder.refused["several"] = "one at a time"
    y, w = between(x, layer, layer)
    with tf.Session() as session:
        missed = session._program(y, {x: X, w: W}).block.missed
    assert [name for name, fusion, why in missed if fusion == "cluster"] == ["Tanh_1", "Tanh"]
    assert all("one at a time" in why for *_, why in missed)
    assert len(asked) == 1
