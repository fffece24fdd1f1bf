"""TensorArray and the functions built on it."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetches, feed=None):
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        return session.run(fetches, feed)


def test_write_read_stack_gather_size():
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    for i in range(3):
        array = array.write(i, [float(i), 2.0 * i])
    assert array.stack().shape.as_list() == [None, 2]
    stacked, second, picked, size = run(
        [array.stack(), array.read(1), array.gather([2, 0]), array.size()]
    )
    np.testing.assert_array_equal(stacked, [[0, 0], [1, 2], [2, 4]])
    np.testing.assert_array_equal(second, [1, 2])
    np.testing.assert_array_equal(picked, [[2, 4], [0, 0]])
    assert size == 3


def test_unstack_scatter_split_concat():
    value = np.arange(6.0, dtype="float32").reshape(3, 2)
    assert run(tf.TensorArray(tf.float32, 3).unstack(value).read(2)).tolist() == [4, 5]
    scattered = tf.TensorArray(tf.float32, 3).scatter([2, 0, 1], value)
    np.testing.assert_array_equal(run(scattered.stack()), value[[1, 2, 0]])
    split = tf.TensorArray(tf.float32, 2, infer_shape=False).split(value, [1, 2])
    np.testing.assert_array_equal(run(split.read(1)), value[1:])
    np.testing.assert_array_equal(run(split.concat()), value)


def test_strings_and_dynamic_size():
    array = tf.TensorArray(tf.string, size=0, dynamic_size=True)
    array = array.write(0, "a").write(2, "b").write(1, "c")
    assert run(array.stack()).tolist() == [b"a", b"c", b"b"]


@pytest.mark.parametrize(("use", "text"), [
    (lambda a: a.write(5, 1.0).flow, "not resizeable and size is: 2"),
    (lambda a: a.write(0, 1.0).write(0, 2.0).flow, "already been written"),
    (lambda a: a.read(7), "array size is: 2"),
    (lambda a: a.read(0), "Could not read from TensorArray index 0"),
])  # fmt: skip
def test_errors(use, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(use(tf.TensorArray(tf.float32, size=2, infer_shape=False)))


def test_reading_twice_is_an_error_unless_allowed():
    array = tf.TensorArray(tf.float32, size=1).write(0, 1.0)
    first = array.read(0)
    with tf.control_dependencies([first]):
        second = array.read(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="clear_after_read = false"):
        run(second)


def test_wrong_shapes_and_arguments_when_built():
    array = tf.TensorArray(tf.float32, size=2).write(0, [1.0])
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        array.write(1, [1.0, 2.0])
    with pytest.raises(ValueError, match="Size must be provided"):
        tf.TensorArray(tf.float32)


def test_gradients_through_every_method():
    x = tf.constant(np.arange(6.0).reshape(3, 2))
    array = tf.TensorArray(tf.float64, 3, clear_after_read=False).unstack(x)
    y = array.read(0) * 2 + array.read(1) * array.read(2)
    (dx,) = tf.gradients(y, x)
    np.testing.assert_array_equal(run(dx), [[2, 2], [4, 5], [2, 3]])
    split = tf.TensorArray(tf.float64, 2, infer_shape=False).split(x, [1, 2])
    (dx,) = tf.gradients(split.concat() ** 2, x)
    np.testing.assert_array_equal(run(dx), 2 * np.arange(6.0).reshape(3, 2))
    written = tf.TensorArray(tf.float64, 2).write(0, x[0]).write(1, x[1])
    (dx,) = tf.gradients(written.gather([1, 1]), x)
    np.testing.assert_array_equal(run(dx), [[0, 0], [2, 2], [0, 0]])


@pytest.mark.parametrize("device", ["/cpu:0", "/device:ECHO:0"])
def test_a_recurrent_net_in_a_loop(device):
    rng = np.random.default_rng(0)
    steps, w0 = rng.normal(size=(4, 2, 3)), rng.normal(size=(3, 3))
    w = tf.placeholder(tf.float64, [3, 3])
    with tf.device(device):
        inputs = tf.TensorArray(tf.float64, 4).unstack(steps)
        outputs = tf.TensorArray(tf.float64, 4)

        def body(t, h, out):
            h = tf.tanh(tf.matmul(h, w) + inputs.read(t))
            return t + 1, h, out.write(t, h)

        _, _, out = tf.while_loop(
            lambda t, *_: t < 4, body, (0, tf.zeros([2, 3], tf.float64), outputs)
        )
        loss = tf.reduce_sum(out.stack() ** 2)
        (dw,) = tf.gradients(loss, w)

    def plain(m):
        h, total = np.zeros((2, 3)), 0.0
        for x in steps:
            h = np.tanh(h @ m + x)
            total += (h**2).sum()
        return total

    expected = np.zeros((3, 3))
    for i in np.ndindex(3, 3):
        d = np.zeros((3, 3))
        d[i] = 1e-6
        expected[i] = (plain(w0 + d) - plain(w0 - d)) / 2e-6
    np.testing.assert_allclose(run(dw, {w: w0}), expected, rtol=1e-5, atol=1e-7)


def test_two_gradient_calls_do_not_mix():
    x = tf.constant([1.0, 2.0])
    y = tf.map_fn(lambda v: v * v, x)
    first, second = tf.gradients(y, x)[0], tf.gradients(3 * y, x)[0]
    a, b = run([first, second])
    np.testing.assert_allclose([a, b], [[2, 4], [6, 12]])


def by_hand(x):
    """The cubes of elements that are read and written one at a time."""
    source = tf.TensorArray(tf.float32, 3).unstack(x)
    cubes = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    for i in range(3):
        cubes = cubes.write(i, source.read(i) ** 3)
    return cubes.stack()


def in_a_loop(x):
    """The same, where what a turn reads the turn before has written."""
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False).write(0, x[0] * 0.0)
    turn = lambda i, a: (i + 1, a.write(i + 1, a.read(i) + x[i] ** 3))
    return tf.while_loop(lambda i, _: i < 3, turn, [0, array])[1].read(3)


@pytest.mark.parametrize(
    "cubes",
    [
        by_hand,
        in_a_loop,
        lambda x: tf.map_fn(lambda v: v**3, x),
        lambda x: tf.foldl(lambda a, v: a + v**3, x, initializer=0.0),
        lambda x: tf.scan(lambda _, v: v**3, x, initializer=0.0),
        lambda x: tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 2]).concat() ** 3,
        lambda x: tf.map_fn(lambda v: tf.map_fn(lambda w: w**3, v), tf.stack([x]))[0],
    ],
)
def test_derivatives_of_every_order_through_an_array(cubes):
    x = tf.constant([1.0, 2.0, 3.0])
    (first,) = tf.gradients(cubes(x), x)
    (second,) = tf.gradients(first, x)
    (third,) = tf.gradients(second, x)
    expected = [[3, 12, 27], [6, 12, 18], [6, 6, 6]]
    np.testing.assert_allclose(run([first, second, third]), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float64, tf.float64, "float64"])
def test_the_types_of_what_is_mapped(kind):
    y = tf.map_fn(lambda v: (v, tf.cast(v, tf.float64)), tf.ones([2]), dtype=(np.float32, kind))
    assert [v.dtype for v in run(y)] == [np.float32, np.float64]


def test_map_fold_scan():
    x = tf.placeholder(tf.float32, [None])
    feed = {x: [1.0, 2.0, 3.0]}
    pair = tf.map_fn(lambda v: (v + 1, v * 2), x, dtype=(tf.float32, tf.float32))
    assert [v.tolist() for v in run(pair, feed)] == [[2, 3, 4], [2, 4, 6]]
    both = tf.map_fn(lambda v: v[0] - v[1], (x, x * 2), dtype=tf.float32)
    assert run(both, feed).tolist() == [-1, -2, -3]
    assert run(tf.foldl(lambda a, v: a * 2 + v, x), feed) == 11
    assert run(tf.foldr(lambda a, v: a * 2 + v, x), feed) == 17
    assert run(tf.foldl(lambda a, v: a - v, x, initializer=10.0), feed) == 4
    assert run(tf.scan(lambda a, v: a + v, x), feed).tolist() == [1, 3, 6]
    assert run(tf.scan(lambda a, v: a + v, x, reverse=True), feed).tolist() == [6, 5, 3]
    state = tf.scan(lambda a, v: (a[0] + v, a[1] * v), x, initializer=(0.0, 1.0))
    assert [v.tolist() for v in run(state, feed)] == [[1, 3, 6], [1, 2, 6]]
    with pytest.raises(TypeError, match="callable"):
        tf.map_fn(3, x)


def test_an_element_of_another_type_fails_when_it_is_written():
    y = tf.map_fn(lambda v: tf.cast(v, tf.int32), tf.ones([2]))
    text = "TensorArray dtype is float but Op is trying to write dtype int32."
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(y)


def test_an_array_as_an_element_of_a_dataset():
    def tripled(x):
        x = tf.cast(x, tf.float32)
        return tf.TensorArray(tf.float32, 3).unstack(tf.stack([x, 2.0 * x, 3.0 * x]))

    arrays = tf.data.Dataset.range(3).map(tripled)
    spec = tf.data.experimental.get_structure(arrays)
    assert spec == tf.TensorArraySpec([], tf.float32)
    rows = arrays.map(lambda array: array.gather([2, 1]))
    element = rows.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(element).tolist() for _ in range(2)] == [[0, 0], [3, 2]]


def test_what_the_specs_of_arrays_have_in_common():
    spec = tf.TensorArraySpec([None, 2], tf.int32)
    other = tf.TensorArraySpec([3, 2], tf.int32, infer_shape=False)
    assert spec.is_compatible_with(other)
    common = spec.most_specific_compatible_type(other)
    assert common == tf.TensorArraySpec([None, 2], tf.int32, infer_shape=False)
    assert not spec.is_compatible_with(tf.TensorArraySpec([None, 2], tf.int32, dynamic_size=True))
    with pytest.raises(ValueError, match="not compatible"):
        spec.most_specific_compatible_type(tf.TensorArraySpec([1], tf.int32))
    with pytest.raises(TypeError, match="Expected value to be a TensorArray"):
        tf.TensorArraySpec.from_value(3)


def older(version, size, **more):
    """An array of an older generation, and the op of that generation by the part of its name."""
    make = lambda name: getattr(tf.raw_ops, f"TensorArray{name}{version}")
    return make("")(size=size, dtype=tf.float32, tensor_array_name="a", **more), make


@pytest.mark.parametrize("version", ["", "V2"])
def test_arrays_of_older_graphs(version):
    handle, op = older(version, 3, dynamic_size=True, clear_after_read=False)
    assert handle.dtype.base_dtype is tf.string
    flow = tf.constant(0.0)
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    flow = op("Scatter")(handle=handle, indices=[2, 0, 1], value=x, flow_in=flow)
    flow = op("Write")(handle=handle, index=3, value=x[0] * x[1], flow_in=flow)
    third = op("Read")(handle=handle, index=3, flow_in=flow, dtype=tf.float32)
    picked = op("Gather")(handle=handle, indices=[3, 2], flow_in=flow, dtype=tf.float32)
    size = op("Size")(handle=handle, flow_in=flow)
    parts, lengths = op("Concat")(handle=handle, flow_in=flow, dtype=tf.float32)
    grads = tf.gradients([third, 2.0 * picked], x)
    got = run([third, picked, size, parts, lengths, grads])
    assert got[0].tolist() == [3, 8] and got[1].tolist() == [[3, 8], [1, 2]] and got[2] == 4
    assert got[3].tolist() == [3, 4, 5, 6, 1, 2, 3, 8] and got[4].tolist() == [2] * 4
    np.testing.assert_array_equal(got[5][0], [[3 * 3 + 2, 3 * 4 + 2], [3 * 1, 3 * 2], [0, 0]])


@pytest.mark.parametrize("version", ["", "V2"])
def test_older_arrays_are_split_and_closed(version):
    handle, op = older(version, 2)
    x = tf.constant([1.0, 2.0, 3.0])
    flow = op("Split")(handle=handle, value=x, lengths=[1, 2], flow_in=0.0)
    parts, _ = op("Concat")(handle=handle, flow_in=flow, dtype=tf.float32)
    (dx,) = tf.gradients(parts**2, x)
    assert run(dx).tolist() == [2, 4, 6]
    with tf.control_dependencies([op("Close")(handle=handle)]):
        late = op("Size")(handle=handle, flow_in=0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"TensorArray a_\d+ has already been"):
        run(late)


def test_the_oldest_arrays_are_packed_and_unpacked():
    raw = tf.raw_ops
    handle, _ = older("", 2, clear_after_read=False)
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    flow = raw.TensorArrayUnpack(handle=handle, value=x, flow_in=0.0)
    packed = raw.TensorArrayPack(handle=handle, flow_in=flow, dtype=tf.float32)
    (dx,) = tf.gradients(packed**3, x)
    assert run(dx).tolist() == [[3, 12], [27, 48]]
    flow = raw.TensorArrayUnpack(handle=handle, value=x[:1], flow_in=0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the array size \(1 vs. 2\)"):
        run(flow)


def test_gradients_with_dimensions_in_front():
    array = tf.TensorArray(tf.float32, 2, element_shape=[2]).unstack([[1.0, 2.0], [3.0, 4.0]])
    handle, flow = tf.raw_ops.TensorArrayGradWithShape(
        handle=array.handle, flow_in=array.flow, shape_to_prepend=[3], source="per_example"
    )
    read = tf.raw_ops.TensorArrayReadV3(handle=handle, index=1, flow_in=flow, dtype=tf.float32)
    assert run(read).tolist() == [[0, 0]] * 3


def test_gradients_in_a_turn_are_of_that_turn() -> None:
    """One that goes through the array of elements reads all of its own array in each turn."""
    x = tf.constant([1.0, 2.0, 3.0])
    own = tf.map_fn(lambda row: tf.gradients(row * row, row)[0], x)
    assert run(own).tolist() == [2, 4, 6]
    through = tf.map_fn(lambda row: tf.gradients(row * row, x)[0], x)
    assert run(through).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]


def test_an_array_in_part_written_read_and_written_again():
    array = tf.TensorArray(tf.float32, 3, element_shape=[2], clear_after_read=False)
    array = array.write(1, [1.0, 2.0])
    assert run(array.stack()).tolist() == [[0, 0], [1, 2], [0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 1 because it has already been"):
        run(array.unstack(tf.ones([3, 2])).stack())
    with pytest.raises(tf.errors.InvalidArgumentError, match="inconsistent shapes.*index 2 has sh"):
        loose = tf.TensorArray(tf.float32, 3, infer_shape=False)
        run(loose.write(0, [1.0]).write(1, [2.0]).write(2, [1.0, 2.0]).gather([0, 1, 2]))


def test_what_tf_says_of_mistakes() -> None:
    invalid = tf.errors.InvalidArgumentError
    array = tf.TensorArray(tf.float32, size=3, tensor_array_name="foo", infer_shape=False)
    full = array.write(0, [3.0]).write(1, [4.0])
    read = tf.raw_ops.TensorArrayReadV3(
        handle=full.handle, index=0, dtype=tf.float64, flow_in=full.flow
    )
    with pytest.raises(invalid, match=r"dtype is float but Op requested dtype double\."):
        run(read)
    with pytest.raises(invalid, match=r"foo_\d+: Could not write to TensorArray index 1"):
        run(full.write(1, [5.0]).flow)
    grad = full.grad("g").write(0, [1.0]).write(0, [[1.0]])
    with pytest.raises(invalid, match=r"shape is \[1\] but the new input shape is \[1,1\]"):
        run(grad.flow)
    with pytest.raises(invalid, match="inconsistent shapes.  Index 0 has .excepting dimension 0."):
        run(full.write(2, [[3.0]]).concat())
    with pytest.raises(invalid, match="Concat saw a scalar shape at index 2"):
        run(full.write(2, 3.0).concat())
    for lengths, value, text in (
        (1, [1.0], r"Expected lengths to be a vector, received shape: \[\]"),
        ([1], 1.0, r"Expected value to be at least a vector, but received shape: \[\]"),
    ):
        with pytest.raises(invalid, match=text):
            run(array.split(value, lengths).flow)
    with pytest.raises(invalid, match="element shape <unknown> is not fully defined. Currently"):
        run(tf.TensorArray(tf.float32, size=0, infer_shape=False).stack())


def test_shapes_that_are_not_inferred_may_differ() -> None:
    array = tf.TensorArray(tf.float32, 2, infer_shape=False, element_shape=[None, 3])
    joined = array.write(0, tf.ones([2, 3])).write(1, tf.ones([1, 3])).concat()
    assert run(joined).shape == (3, 3)
    with pytest.raises(ValueError, match="Inconsistent shapes: saw .2, 4. but expected"):
        array.write(0, tf.ones([2, 4]))


def test_parts_have_the_shape_that_their_lengths_say() -> None:
    array = tf.TensorArray(tf.float32, 2)
    whole = tf.placeholder(tf.float32, [10, 4])
    assert array.split(whole, [5, 5]).read(0).shape.as_list() == [5, 4]
    array = tf.TensorArray(tf.float32, 2)
    assert array.split(whole, [4, 6]).read(0).shape.ndims is None


def test_the_gradient_of_a_split_knows_of_nothing_written_later() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    array = tf.TensorArray(tf.float32, 3, dynamic_size=True).split(x, [1, 1, 1])
    joined = array.write(3, [4.0]).concat()
    (grad,) = tf.gradients(joined * [2.0, 3.0, 4.0, 5.0], x)
    assert run(joined).tolist() == [1, 2, 3, 4]
    assert run(grad).tolist() == [2, 3, 4]


# ---------------------------------------------------------------- arrays that are values
def _empty(**kwargs: object) -> tf.TensorArray:
    return tf.TensorArray(tf.float32, 0, dynamic_size=True, **kwargs)


@pytest.mark.parametrize(("x", "expected"), [(3.0, [3, 1]), (-3.0, [-6, 1, -9])])
def test_each_branch_returns_an_array_of_its_own(x, expected):
    """One of them may be an array from outside."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float32, [])
        outside = _empty().write(0, given * 2)
        found = tf.cond(
            given > 0, lambda: _empty().write(0, given), lambda: outside.write(2, given * 3)
        )
        found = found.write(1, 1.0)
        stacked, (grad,) = found.stack(), tf.gradients(found.stack(), given)
        values, slope = session.run([stacked, grad], {given: x})
        np.testing.assert_array_equal(values, expected)
        assert slope == (1 if x > 0 else 5)


@pytest.mark.parametrize("limit", [None, 4, "fed"])
def test_turns_return_arrays_of_their_own(limit):
    """A new one in every second turn; the count of turns may be known later."""

    def body(i, array):
        new = _empty().write(0, tf.cast(i, tf.float32) * 100)
        return i + 1, tf.cond(
            tf.equal(i % 2, 1),
            lambda: array.write(array.size(), tf.cast(i, tf.float32)),
            lambda: new,
        )

    with tf.Graph().as_default(), tf.Session() as session:
        most = tf.placeholder_with_default(4, []) if limit == "fed" else limit
        start = tf.TensorArray(tf.float32, 3, dynamic_size=True).unstack([7.0, 8.0, 9.0])
        _, found = tf.while_loop(lambda i, _: i < 4, body, (0, start), maximum_iterations=most)
        _, kept = tf.while_loop(lambda i, _: i < 0, body, (0, start))
        np.testing.assert_array_equal(session.run(found.stack()), [200, 3])
        np.testing.assert_array_equal(session.run(kept.stack()), [7, 8, 9])


def test_arrays_change_places_in_a_loop():
    """Each variable has the elements of the other one after a turn."""
    with tf.Graph().as_default(), tf.Session() as session:
        start = (
            0,
            tf.TensorArray(tf.int32, 2).unstack([1, 2]),
            tf.TensorArray(tf.int32, 1).unstack([3]),
        )
        _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), start)
        first, second = session.run([a.stack(), b.stack()])
        np.testing.assert_array_equal(first, [3])
        np.testing.assert_array_equal(second, [1, 2])


def test_a_scan_of_a_dataset_hands_an_array_on():
    """What was stacked before a write does not know of it."""

    def step(array, x):
        longer = array.write(array.size(), x)
        again = tf.cond(
            tf.equal(x % 3, 2),
            lambda: tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=[]),
            lambda: longer,
        )
        return again, (array.stack(), longer.stack())

    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=[]).write(0, -1)
        dataset = tf.data.Dataset.range(5).apply(tf.data.experimental.scan(start, step))
        iterator = dataset.make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        found = [tuple(map(list, session.run(following))) for _ in range(5)]
    assert found == [
        ([-1], [-1, 0]), ([-1, 0], [-1, 0, 1]), ([-1, 0, 1], [-1, 0, 1, 2]), ([], [3]),
        ([3], [3, 4]),
    ]  # fmt: skip


def test_an_array_that_is_a_list_has_all_methods():
    """Those of an array, with its elements as they were before."""

    def methods(array, x):
        parts = array.scatter([1, 0], [[x, x], [x + 1, x + 1]])
        rows = array.unstack([[5.0, 6.0], [7.0, 8.0]])
        split = array.split(tf.reshape(tf.range(4.0), [2, 2]), [1, 1])
        with tf.control_dependencies([array.close()]):
            same = array.identity()
        return same, (
            parts.stack(), rows.concat(), rows.gather([1]), rows.read(0), split.read(1), same.size()
        )  # fmt: skip

    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.TensorArray(tf.float32, 2, infer_shape=False)
        start = start.unstack([[1.0, 1.0], [2.0, 2.0]])
        dataset = tf.data.Dataset.from_tensors(3.0).apply(tf.data.experimental.scan(start, methods))
        iterator = dataset.make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        found = session.run(following)
    assert [np.asarray(f).tolist() for f in found] == [
        [[4, 4], [3, 3]], [5, 6, 7, 8], [[7, 8]], [5, 6], [[2, 3]], 2,
    ]  # fmt: skip
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="gradients"):
        tf.data.Dataset.range(2).apply(
            tf.data.experimental.scan(_zeros(), lambda a, x: (a, a.grad("g").stack()))
        )


def _zeros() -> tf.TensorArray:
    """An array of one number."""
    return tf.TensorArray(tf.float32, 1).unstack([0.0])
