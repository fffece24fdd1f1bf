"""Groups of devices of one session: what they have becomes one, for each of them."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops import collective

CPUS = tf.ConfigProto(device_count={"CPU": 3})


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def on_each(function, values, **told):
    """What a collective op of each of some devices gives."""
    made = []
    for i, value in enumerate(values):
        with tf.device(f"/cpu:{i}"):
            made.append(function(tf.constant(value), len(values), 1, **told))
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64])
@pytest.mark.parametrize(
    ("merge", "expected"), [("Add", [9, 6]), ("Mul", [24, 0]), ("Min", [2, 0]), ("Max", [4, 5])]
)
def test_values_of_three_devices_are_merged(merge, expected, dtype):
    values = [np.array(v, dtype) for v in ([2, 0], [3, 1], [4, 5])]
    made = on_each(collective.all_reduce, values, instance_key=1, merge_op=merge, final_op="Id")
    with tf.Session(config=CPUS) as sess:
        found = sess.run(made)
    assert all(f.dtype == dtype and f.tolist() == expected for f in found)


def test_a_mean_and_rows_and_one_value_for_all():
    values = [np.array(v, np.float32) for v in ([2, 0], [4, 4], [0, 5])]
    means = on_each(collective.all_reduce, values, instance_key=1, merge_op="Add", final_op="Div")
    rows = on_each(collective.all_gather, values, instance_key=2)
    assert [r.shape.as_list() for r in rows] == [[6]] * 3
    with tf.device("/cpu:0"):
        sent = collective.broadcast_send(tf.constant(values[1]), [2], tf.float32, 3, 1, 3)
    got = []
    for i in (1, 2):
        with tf.device(f"/cpu:{i}"):
            got.append(collective.broadcast_recv([2], tf.float32, 3, 1, 3))
    with tf.Session(config=CPUS) as sess:
        for _ in range(3):
            all_means, all_rows, all_got = sess.run([means, rows, [sent, *got]])
            assert [m.tolist() for m in all_means] == [[2, 3]] * 3
            assert [r.tolist() for r in all_rows] == [[2, 0, 4, 4, 0, 5]] * 3
            assert [g.tolist() for g in all_got] == [[4, 4]] * 3


def test_members_that_do_not_fit():
    values = [np.array(v, np.float32) for v in ([2, 0], [4])]
    shapes = on_each(collective.all_reduce, values, instance_key=1, merge_op="Add", final_op="Id")
    two = np.ones(2, np.float32)
    sizes = []
    for i, size in enumerate((2, 3)):
        with tf.device(f"/cpu:{i}"):
            sizes.append(collective.all_gather(tf.constant(two), size, 1, 2))
    with tf.Session(config=CPUS) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shape mismatch.*\[2\].*\[1\]"):
            sess.run(shapes)
        with pytest.raises(tf.errors.InvalidArgumentError, match="as one of .* others as of"):
            sess.run(sizes)
    with pytest.raises(ValueError, match="Device assignment"):
        collective.all_gather(tf.constant(two), 2, 1, 1)
    with tf.device("/cpu:0"):
        for call in (
            lambda: collective.all_reduce(tf.constant(two), 1, 1, 1, "Add", "Id"),
            lambda: collective.broadcast_recv([2], tf.float32, 1, 1, 1),
        ):
            with pytest.raises(ValueError, match="group_size to .* must be at least 2"):
                call()
        with pytest.raises(ValueError, match="Shape of broadcast_send"):
            collective.broadcast_send(tf.constant(two), [3], tf.float32, 2, 1, 1)
        with pytest.raises(ValueError, match="Type of broadcast_send"):
            collective.broadcast_send(tf.constant(two), [2], tf.int32, 2, 1, 1)


def test_who_has_waited_in_vain_is_not_there_any_more():
    values = [np.array([v], np.float32) for v in (1, 2)]
    x = tf.placeholder_with_default(values[0], [1])
    made = []
    for i, value in enumerate((x, tf.constant(values[1]))):
        with tf.device(f"/cpu:{i}"):
            own = tf.identity(value)
            made.append(collective.all_reduce(own, 2, 1, 1, "Add", "Id"))
    with tf.Session(config=CPUS) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(made[0], {x: [100]}, options=tf.RunOptions(timeout_in_ms=50))
        assert [v.tolist() for v in sess.run(made)] == [[3]] * 2
