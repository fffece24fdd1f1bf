"""What every turn of a loop takes slices of has slices as its gradient: a list of all of them."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

CPU, ECHO = "/cpu:0", "/device:ECHO:0"
SOFT = tf.ConfigProto(allow_soft_placement=True)
TABLE = np.arange(8.0, dtype="float32").reshape(4, 2) / 4

pytestmark = pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetch, feeds=None):
    with tf.Session(config=SOFT) as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def looked_up(table, turns, power=2):
    """Sum over the turns of the powers of rows i and 0."""
    return tf.while_loop(
        lambda i, _: i < turns,
        lambda i, total: (i + 1, total + tf.reduce_sum(tf.gather(table, [i, 0]) ** power)),
        [tf.constant(0), tf.constant(0.0)],
    )[1]


def expected(turns, power=2):
    uses = np.array([float(i < turns) for i in range(4)])
    uses[0] += turns
    return power * TABLE ** (power - 1) * uses[:, None]


@pytest.mark.parametrize("device", [CPU, ECHO])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_slices_of_all_turns(device, known, turns):
    with tf.device(device):
        x = tf.placeholder(tf.float32, [4, 2] if known else None)
        n = tf.placeholder(tf.int32, [])
        (g,) = tf.gradients(looked_up(x, n), x)
        assert isinstance(g, tf.IndexedSlices)
        dense = tf.convert_to_tensor(g)
    slices, total = run([g, dense], {x: TABLE, n: turns})
    assert slices.values.shape == (2 * turns, 2)
    assert slices.dense_shape.tolist() == [4, 2]
    np.testing.assert_allclose(total, expected(turns))


@pytest.mark.parametrize("turns", [0, 2])
def test_the_result_has_a_gradient_of_its_own(turns):
    """A loop variable that is only read, and used again behind the loop."""
    x, n = tf.placeholder(tf.float32, [4, 2]), tf.placeholder(tf.int32, [])
    _, total, table = tf.while_loop(
        lambda i, *_: i < n,
        lambda i, total, t: (i + 1, total + tf.reduce_sum(tf.gather(t, [i, 0]) ** 2), t),
        [tf.constant(0), tf.constant(0.0), x],
    )
    (g,) = tf.gradients(total + tf.reduce_sum(table * 5.0), x)
    np.testing.assert_allclose(run(g, {x: TABLE, n: turns}), expected(turns) + 5)


def test_slices_and_sums():
    x = tf.placeholder(tf.float32, [4, 2])
    total = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, total: (i + 1, total + tf.reduce_sum(tf.gather(x, i) ** 2) + tf.reduce_sum(x)),
        [tf.constant(0), tf.constant(0.0)],
    )[1]
    (g,) = tf.gradients(total, x)
    want = 2 * TABLE + 3
    want[3] = 3
    np.testing.assert_allclose(run(tf.convert_to_tensor(g), {x: TABLE}), want)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_second_order(turns):
    x, n = tf.placeholder(tf.float32, [4, 2]), tf.placeholder(tf.int32, [])
    (first,) = tf.gradients(looked_up(x, n, 3), x)
    first = tf.convert_to_tensor(first)
    np.testing.assert_allclose(run(first, {x: TABLE, n: turns}), expected(turns, 3), rtol=1e-6)
    (second,) = tf.gradients(tf.reduce_sum(first * TABLE), x)
    uses = expected(turns, 3) / np.where(TABLE, 3 * TABLE**2, 1)
    want = 6 * TABLE * TABLE * uses
    got = run(tf.convert_to_tensor(second), {x: TABLE, n: turns})
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_loops_in_loops():
    x = tf.placeholder(tf.float32, [4, 2])
    outer = tf.while_loop(
        lambda k, _: k < 2,
        lambda k, total: (k + 1, total + tf.cast(k + 1, tf.float32) * looked_up(x, k + 2)),
        [tf.constant(0), tf.constant(0.0)],
    )[1]
    (g,) = tf.gradients(outer, x)
    want = expected(2) + 2 * expected(3)
    np.testing.assert_allclose(run(tf.convert_to_tensor(g), {x: TABLE}), want)


@pytest.mark.parametrize("resource", [False, True])
def test_only_the_rows_that_were_used_are_trained(resource):
    table = tf.get_variable("table", initializer=TABLE, use_resource=resource)
    train = tf.train.AdagradOptimizer(1.0).minimize(looked_up(table, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        after = session.run(table)
    np.testing.assert_array_equal(after[2:], TABLE[2:])
    assert (after[1] != TABLE[1]).all()


def test_a_list_and_its_parts():
    """The ops by themselves: lengths, what an empty list stands for, what does not fit."""
    from opdock.ops import tensor_list, tensor_list_rows

    items = tensor_list.empty(tf.constant(0.0))
    rows = tf.placeholder(tf.float32, [None, 2])
    for part in (rows, rows[:1]):
        items = tensor_list.push(items, part)
    join = tensor_list_rows.tensor_list_concat_op
    whole, lengths = join(items, [-1, 2], tf.zeros([0], tf.int64), element_dtype=tf.float32)
    (g,) = tf.gradients(whole * [[1.0, 2.0]], rows)
    feed = {rows: TABLE}
    got, sizes, slope = run([whole, lengths, g], feed)
    np.testing.assert_array_equal(got, np.concatenate([TABLE, TABLE[:1]]))
    assert sizes.tolist() == [4, 1]
    np.testing.assert_array_equal(slope, [[2, 4], [1, 2], [1, 2], [1, 2]])
    none = tensor_list.empty(rows)
    zeros, _ = join(none, [-1, 2], tf.constant([1, 2], tf.int64), element_dtype=tf.float32)
    assert run(zeros).tolist() == [[0, 0]] * 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be fully defined"):
        run(tensor_list_rows.concat(none, tf.float32, [-1, -1]))
    scalars = tensor_list.push(none, tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar shape"):
        run(tensor_list_rows.concat(scalars, tf.float32, [-1]))
    cut = tensor_list_rows.tensor_list_split_op(rows, [-1, 2], tf.constant([1, 2], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="tensor: 4 Values used: 3"):
        run(tensor_list.tensor_list_length_op(cut), feed)
