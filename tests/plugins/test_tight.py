"""Devices with 32 bits, or with hardly any memory: what they cannot hold is elsewhere."""

from __future__ import annotations

import os

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import DeviceAttributes
from tests.conformance import conforms, each
from tests.plugins import tight

SOFT = tf.ConfigProto(allow_soft_placement=True)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


PLACES = (
    "DynamicStitch", "GatherNd", "InTopK", "InvertPermutation", "MatrixBandPart", "MaxPoolGrad",
    "ResizeBilinearGrad", "OneHot", "ScatterAdd", "TensorScatterUpdate", "UnsortedSegmentSum",
)  # fmt: skip
"""Ops whose kernels compute places in arrays."""


def test_kernels_count_places_in_what_there_is():
    environ = os.environ | {"OPDOCK_PLUGINS": f"cpu,{tight.__file__}"}
    conforms("tight:0", "--level", "L2", *each("--op", [*PLACES]), env=environ)


def test_the_host_too_may_have_no_room_for_an_upload():
    device = tight.TightDevice(DeviceAttributes(index=0))
    with pytest.raises(tf.errors.ResourceExhaustedError, match="Unable to allocate"):
        device.empty((1 << 20, 1 << 20, 1 << 18), tf.float32)


def where(session, fetch, feed, name):
    (row,) = (r for r in session.explain(fetch, feed).rows if r.node == name)
    return row.device


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kind", [tf.int64, tf.string])
def test_shapes_of_what_a_device_does_not_hold_are_found_on_the_host(kind, soft):
    x = tf.placeholder(kind, [None])
    with tf.device("/device:CPU:0"):
        found, _ = tf.unique(x)
    with tf.device(tight.DEVICE):
        count = tf.cast(tf.shape(found, name="shape"), tf.float32) + 0.5
    feed = {x: np.array(["1", "2", "1"], kind.as_numpy_dtype)}
    with tight.installed(), tf.Session(config=SOFT if soft else None) as session:
        assert session.run(count, feed).tolist() == [2.5]
        assert "CPU" in where(session, count, feed, "shape")


def test_rows_by_wide_indices_are_updated_on_a_device_of_32_bits():
    rows = np.arange(20, dtype=np.float32).reshape(5, 4)
    ids = tf.placeholder(tf.int64, [None])
    with tf.device(tight.DEVICE):
        table = tf.Variable(rows)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
        step = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    with tight.installed(), tf.Session(config=SOFT) as session:
        session.run(tf.global_variables_initializer())
        session.run(step, {ids: [1, 3, 1]})
        expected = rows - np.array([[0.0], [1.0], [0.0], [0.5], [0.0]])
        np.testing.assert_allclose(session.run(table), expected)


def test_a_step_that_found_no_room_has_given_its_own_back_when_it_is_placed_anew():
    """Else its values stand in the way of the next attempt, and more moves than has to."""
    x = tf.placeholder(tf.float32, [64, 16])
    with tf.device(tight.DEVICE):
        y = tf.square(tf.matmul(x, x, transpose_b=True))
    with tf.device("/device:CPU:0"):
        large = tf.tile(y, [1, 2])
    with tf.device(tight.DEVICE):
        z = tf.sqrt(large)
    feed = {x: np.ones((64, 16), np.float32)}
    with tight.installed(limit=30_000), tf.Session(config=SOFT) as session:
        results = session.run([y, z], feed)
        begun = [free for free, size in tight.memory.taken if size == feed[x].nbytes]
        assert begun == [30_000, 30_000]
        assert "TIGHT" in where(session, [y, z], feed, "MatMul")
        assert "CPU" in where(session, [y, z], feed, "Sqrt")
    assert (results[0] == 256.0).all() and (results[1] == 16.0).all()
