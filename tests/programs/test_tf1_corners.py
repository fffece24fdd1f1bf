"""Corners in which programs of TensorFlow 1 have been found to stand: small, and as in TF."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetch, feed)


# ---------------------------------------------------------------- order in and around bodies
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_a_loop_reads_what_its_turns_write(resource: bool) -> None:
    """Nothing that depends on the variable is taken out of the body; the constant factor may be."""
    v = tf.Variable(1.0, use_resource=resource)
    w = tf.Variable(2.0, use_resource=resource)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1, total + v.read_value() * w

    assert run(tf.while_loop(lambda i, _: i < 5, body, [0, 0.0])[1]) == 2.0 * (2 + 3 + 4 + 5 + 6)


def test_bodies_wait_for_what_was_to_come_before_them() -> None:
    v = tf.Variable(1.0, use_resource=False)
    with tf.control_dependencies([tf.assign(v, 5.0)]):
        add = lambda i, a: (i + 1, a + v.read_value())
        total = tf.while_loop(lambda i, _: i < 3, add, [0, 0.0])
        taken = tf.cond(tf.constant(True), lambda: v.read_value(), lambda: -1.0)
    assert run([total[1], taken]) == [15.0, 5.0]


def test_bodies_beside_control_edges_from_placeholders() -> None:
    p = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([p]):
        y = tf.cond(tf.constant(True), lambda: p + 1, lambda: p - 1)
        turns = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    with tf.control_dependencies([p.op]):
        z = tf.identity(tf.while_loop(lambda a: a < 3.0, lambda a: a + p, [0.0]))
    assert run([y, turns, z], {p: 2.0}) == [3.0, 3, 4.0]
    assert run(turns, {p: 2.0}) == 3


def test_control_edges_from_outside_in_a_mapped_function() -> None:
    v = tf.Variable(0.0, use_resource=False)
    once = tf.assign_add(v, 1.0)

    def double(x: Any) -> Any:
        with tf.control_dependencies([once]):
            a = tf.identity(x)
        with tf.control_dependencies([x, a]):
            return a * 2.0

    y = tf.map_fn(double, tf.constant([1.0, 2.0, 3.0]))
    with tf.control_dependencies([y]):
        count = v.read_value()
    values, counted = run([y, count])
    np.testing.assert_array_equal(values, [2, 4, 6])
    assert counted == 1.0


def test_control_edges_from_a_loop_in_a_cond_of_its_body() -> None:
    outside = tf.constant(1.0)

    def body(i: Any, a: Any) -> Any:
        def late() -> Any:
            with tf.control_dependencies([i, outside]):
                return a + 1.0

        return i + 1, tf.cond(i > 1, late, lambda: a + 10.0)

    assert run(tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])) == (4, 22.0)


def test_loops_twenty_deep() -> None:
    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return x + 1.0
        turn = lambda i, a: (i + 1, nested(depth - 1, a))
        return tf.while_loop(lambda i, _: i < 1, turn, [0, x])[1]

    x = tf.constant(1.0)
    assert run(nested(20, x)) == 2.0
    assert run(tf.gradients(nested(6, x * x), x)) == [2.0]


def test_a_chain_of_a_thousand_ops_and_its_gradient() -> None:
    x = tf.placeholder(tf.float64, [])
    y = x
    for _ in range(1000):
        y = tf.sin(y)
    want, slope = 1.0, 1.0
    for _ in range(1000):
        want, slope = np.sin(want), slope * np.cos(want)
    np.testing.assert_allclose(run([y, tf.gradients(y, x)[0]], {x: 1.0}), [want, slope], rtol=1e-12)


def test_lists_of_lists_as_loop_variables() -> None:
    def body(i: Any, parts: Any) -> Any:
        (a, b), (c,) = parts
        return i + 1, [[a + 1.0, b], [tf.concat([c, c], 0)]]

    shape = tf.TensorShape
    _, ((a, b), (c,)) = tf.while_loop(
        lambda i, _: i < 3, body, [0, [[1.0, tf.ones([2])], [tf.ones([1, 2])]]],
        shape_invariants=[shape([]), [[shape([]), shape([2])], [shape([None, 2])]]],
    )  # fmt: skip
    assert c.shape.as_list() == [None, 2]
    a, b, c = run([a, b, c])
    assert a == 4.0 and b.shape == (2,) and c.shape == (8, 2)


# ---------------------------------------------------------------- gradients
def test_gradients_through_a_gather_of_a_sum() -> None:
    v = tf.Variable(tf.ones([5, 2]))
    grad = tf.gradients(tf.gather(v + v * 2.0, [1, 1, 3]), v)[0]
    np.testing.assert_array_equal(run(grad)[:, 0], [0, 6, 0, 3, 0])
    slices = run(tf.gradients(tf.gather(tf.add_n([v, v]), [1, 1, 3]), v)[0])
    dense = np.zeros((5, 2))
    np.add.at(dense, slices.indices, slices.values)
    np.testing.assert_array_equal(dense[:, 0], [0, 4, 0, 2, 0])


def test_initial_gradients_of_another_shape() -> None:
    x = tf.constant([1.0, 2.0])
    np.testing.assert_array_equal(run(tf.gradients(tf.square(x), x, tf.constant(5.0))[0]), [10, 20])
    unknown = tf.placeholder(tf.float32)
    grad = tf.gradients(tf.square(x), x, unknown)[0]
    np.testing.assert_array_equal(run(grad, {unknown: [1.0, 2.0]}), [2, 8])
    with pytest.raises(ValueError, match="Incompatible shapes"):
        z = tf.constant(3.0)
        tf.gradients(tf.constant(2.0) * z, z, tf.constant([1.0, 2.0]))


def test_second_derivatives_through_tensor_arrays() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    source = tf.TensorArray(tf.float32, 3).unstack(x)
    _, cubes = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, out: (i + 1, out.write(i, tf.pow(source.read(i), 3.0))),
        [0, tf.TensorArray(tf.float32, 3)],
    )
    first = tf.gradients(cubes.stack(), x)[0]
    second = tf.gradients(first, x)[0]
    for got, want in zip(run([first, second]), ([3, 12, 27], [6, 12, 18]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# ---------------------------------------------------------------- values
def test_arrays_without_elements() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    none = {x: np.zeros((0, 3))}
    assert run(tf.reshape(x, [-1, 3]), none).shape == (0, 3)
    assert run(tf.reshape(tf.zeros([4, 0]), [-1, 4])).shape == (0, 4)
    images = tf.placeholder(tf.float32, [None, 8, 8, 3])
    w = tf.Variable(tf.ones([3, 3, 3, 4]))
    y = tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME")
    y, of_images, of_w = run([y, *tf.gradients(y, [images, w])], {images: np.zeros((0, 8, 8, 3))})
    assert y.shape == (0, 8, 8, 4) and of_images.shape == (0, 8, 8, 3)
    np.testing.assert_array_equal(of_w, np.zeros((3, 3, 3, 4)))


@pytest.mark.parametrize("known", [True, False], ids=["known", "fed"])
@pytest.mark.parametrize(
    ("op", "images", "filters", "made"),
    [
        (lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
         (0, 5, 5, 3), (3, 3, 3, 2), (0, 5, 5, 6)),
        (lambda x, w: tf.nn.conv3d(x, w, [1] * 5, "SAME"),
         (0, 3, 3, 3, 2), (2, 2, 2, 2, 4), (0, 3, 3, 3, 4)),
        (lambda x, w: tf.nn.conv2d_transpose(x, w, [0, 10, 10, 4], [1, 2, 2, 1], "SAME"),
         (0, 5, 5, 3), (3, 3, 4, 3), (0, 10, 10, 4)),
        (lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
         (2, 0, 5, 3), (3, 3, 3, 4), (2, 0, 5, 4)),
        (lambda x, w: tf.nn.dilation2d(x, w, [1] * 4, [1] * 4, "SAME"),
         (0, 5, 5, 3), (3, 3, 3), (0, 5, 5, 3)),
        (lambda x, w: tf.nn.max_pool(x, 2, 2, "SAME") * tf.reduce_sum(w),
         (0, 4, 4, 3), (2,), (0, 2, 2, 3)),
    ],
    ids=["depthwise", "three", "transposed", "no rows", "dilation", "pool"],
)  # fmt: skip
def test_windows_over_no_images(
    op: Any, images: tuple[int, ...], filters: tuple[int, ...], made: tuple[int, ...], known: bool
) -> None:
    """Nothing comes out, in its shape, and what shares its filter learns nothing of it."""
    x = tf.placeholder(tf.float32, images if known else [None] * len(images))
    w = tf.Variable(tf.ones(filters))
    y = op(x, w)
    y, of_x, of_w = run([y, *tf.gradients(y, [x, w])], {x: np.ones(images)})
    assert (y.shape, of_x.shape) == (made, images)
    np.testing.assert_array_equal(of_w, np.zeros(filters))


def test_batch_norm_of_an_empty_batch() -> None:
    x = tf.placeholder(tf.float32, [None, 2, 2, 3])
    y = tf.layers.batch_normalization(x, training=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    none = {x: np.zeros((0, 2, 2, 3))}
    y, updated = run([y, updates], none)
    assert y.shape == (0, 2, 2, 3)
    assert all(np.isnan(u).all() for u in updated) and len(updated) == 2


def test_softmax_of_infinities() -> None:
    rows = tf.constant([[np.inf, 0.0], [-np.inf, 0.0], [-np.inf, -np.inf]])
    nan = np.nan
    np.testing.assert_array_equal(run(tf.nn.softmax(rows)), [[nan, nan], [0, 1], [nan, nan]])
    logs = run(tf.nn.log_softmax(rows))
    np.testing.assert_array_equal(logs, [[nan, nan], [-np.inf, 0], [nan, nan]])


@pytest.mark.parametrize("add", [tf.add, lambda x, y: x + y], ids=["add", "plus"])
def test_sums_of_uint16_are_no_op_of_tf(add: Any) -> None:
    x = tf.constant([1, 2], tf.uint16)
    with pytest.raises(TypeError, match="uint16 not in list of allowed values"):
        add(x, x)


def test_shapes_that_follow_from_constants() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4])
    rank = tf.rank(x)
    assert tf.transpose(x, tf.range(rank)[::-1]).shape.as_list() == [4, 3, 2]
    assert tf.transpose(x, tf.mod(tf.range(rank) + 1, rank)).shape.as_list() == [3, 4, 2]
    last_first = tf.concat([[rank - 1], tf.range(0, rank - 1)], 0)
    assert tf.transpose(x, last_first).shape.as_list() == [4, 2, 3]
    assert tf.reshape(x, tf.concat([[6], tf.shape(x)[2:]], 0)).shape.as_list() == [6, 4]
    y = tf.placeholder(tf.float32, [None, 3, 4])
    assert tf.reshape(y, [tf.shape(y)[0], 12]).shape.as_list() == [None, 12]
    assert tf.zeros(tf.placeholder(tf.int32, [2])).shape.as_list() == [None, None]


def test_checks_tell_nothing_of_shapes() -> None:
    x = tf.placeholder(tf.float32)
    checks = [tf.assert_rank(x, 2), tf.assert_equal(tf.shape(x)[0], 3)]
    with tf.control_dependencies(checks):
        y = tf.identity(x)
    assert x.shape.ndims is None and y.shape.ndims is None
    assert run(y, {x: np.ones((3, 1))}).shape == (3, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64"), "float64", tf.float64, float])
def test_types_of_what_is_mapped_by_any_name(dtype: Any) -> None:
    wanted = tf.as_dtype(dtype)
    y = tf.map_fn(lambda x: tf.cast(x, wanted) / 2, tf.constant([1, 2]), dtype=dtype)
    assert y.dtype is wanted
    assert run(y).tolist() == [0.5, 1.0]
    pair = tf.map_fn(lambda x: (x, tf.cast(x, wanted)), tf.constant([3]), dtype=(np.int32, dtype))
    assert [t.dtype for t in pair] == [tf.int32, wanted]
