"""What set_shape says and no shape function knows: a step goes on where it is not so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import opdock as tf

SHAPE = (1, 64, 64)  # so many elements that generated code takes them


def through_python(x: tf.Tensor) -> tf.Tensor:
    return tf.py_func(lambda v: v, [x], tf.float32)


def from_python_alone(x: tf.Tensor) -> tf.Tensor:
    del x
    return tf.py_func(lambda: np.float32(0.0), [], tf.float32)


def parsed(x: tf.Tensor) -> tf.Tensor:
    return tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32)


def branch(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(tf.reduce_sum(x) > 9.0, lambda: x + 1.0, lambda: x * 2.0)


def chain(source: Callable[[tf.Tensor], tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A chain that is fused, over what `source` gives and claims."""
    x, ones = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, SHAPE)
    claimed = source(x)
    claimed.set_shape(SHAPE)
    return x, ones, 1.0 / tf.sqrt(tf.exp(claimed) * ones + 3.0)


@pytest.mark.parametrize("source", [through_python, from_python_alone, parsed, branch])
def test_a_scalar_stands_for_the_whole(source: Callable[[tf.Tensor], tf.Tensor]) -> None:
    x, ones, y = chain(source)
    with tf.Session() as sess:
        for _ in range(3):
            got = sess.run(y, {x: np.float32(0.0), ones: np.ones(SHAPE)})
            np.testing.assert_array_equal(got, np.full(SHAPE, 0.5, np.float32))


SOURCES = [through_python, parsed, branch]


@pytest.mark.parametrize("source", SOURCES)
def test_the_step_goes_on_with_the_shape_that_a_result_has(
    source: Callable[[tf.Tensor], tf.Tensor],
) -> None:
    x, ones, y = chain(source)
    with tf.Session() as sess:
        for n in (1, 5, 1, 5):
            fed = np.zeros((n, 64, 64), np.float32)
            got = sess.run(y, {x: fed, ones: np.ones(SHAPE)})
            np.testing.assert_array_equal(got, np.full((n, 64, 64), 0.5, np.float32))


@pytest.mark.parametrize("source", SOURCES)
def test_what_does_not_fit_is_told_by_the_op_that_it_does_not_fit(
    source: Callable[[tf.Tensor], tf.Tensor],
) -> None:
    x, ones, y = chain(source)
    with tf.Session() as sess:
        fed = np.zeros(SHAPE, np.float32)
        assert sess.run(y, {x: fed, ones: np.ones(SHAPE)}).shape == SHAPE
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1,64,63\] vs. \[1,64,64\]"):
            sess.run(y, {x: fed[:, :, 1:], ones: np.ones(SHAPE)})


def test_a_lone_number_is_no_whole_tensor() -> None:
    """A sum over all dimensions of it has one term, not as many as were claimed."""
    claimed = from_python_alone(tf.zeros([])) + 2.0
    claimed.set_shape(SHAPE)
    known = through_python(claimed)
    known.set_shape(SHAPE)
    with tf.Session() as sess:
        assert sess.run(tf.identity(known) * 3.0) == 6.0


def test_what_has_run_does_not_run_again() -> None:
    """Its effects stay single, and what follows has the values that it gave."""
    calls: list[float] = []

    def once(v: np.ndarray) -> np.ndarray:
        calls.append(float(v))
        return np.full([5], v, np.float32)

    steps = tf.Variable(0.0)
    counted = tf.assign_add(steps, 1.0)
    noise = tf.random.uniform([5])
    noted = tf.py_func(lambda v: v, [noise], tf.float32)
    with tf.control_dependencies([counted]):
        claimed = tf.py_func(once, [tf.identity(counted)], tf.float32)
    claimed.set_shape([3])
    result = claimed * 2.0 + tf.identity(counted)
    with tf.Session() as sess:
        sess.run(steps.initializer)
        for n in (1.0, 2.0, 3.0):
            got, drawn, seen = sess.run([result, noise, noted])
            assert got.tolist() == [3.0 * n] * 5
            np.testing.assert_array_equal(drawn, seen)
        assert calls == [1.0, 2.0, 3.0]
        assert sess.run(steps) == 3.0


def test_what_was_computed_before_is_what_the_rest_goes_on_with() -> None:
    """Kernels with notes of the compiler's among it, and variables as they are by then."""
    x = tf.placeholder(tf.float32, [None])
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=True)
    y = tf.exp(x) * 2.0
    w = tf.matmul(tf.reshape(y, [-1, 1]), tf.ones([1, 1]))
    with tf.control_dependencies([v.assign_add(tf.ones([3])), w]):
        twice = tf.py_func(lambda a: np.concatenate([a, a]), [w[:, 0]], tf.float32)
    twice.set_shape([3])
    result = tf.reduce_sum(y) * twice + tf.reduce_sum(w) + tf.reduce_sum(v.read_value())
    with tf.Session() as sess:
        sess.run(v.initializer)
        for n in (2.0, 3.0):
            got, highest = sess.run([result, tf.reduce_max(y)], {x: [0.0, 1.0]})
            assert sess.run(v).tolist() == [n] * 3
            made = np.exp([0.0, 1.0]) * 2.0
            want = made.sum() * np.concatenate([made, made]) + made.sum()
            read = got - want
            np.testing.assert_allclose(read, read[0], rtol=1e-4)
            assert round(float(read[0]), 3) in (3 * n, 3 * n - 3)  # before or after, as in TF
            assert round(float(highest), 4) == 5.4366


def test_an_iterator_gives_each_element_once() -> None:
    dataset = tf.data.Dataset.range(4).map(lambda n: (n, tf.range(n)))
    n, row = tf.data.make_one_shot_iterator(dataset).get_next()
    row = tf.py_func(lambda v: v, [row], tf.int64)
    row.set_shape([1])
    total = tf.reduce_sum(row * 10) + n
    with tf.Session() as sess:
        assert [sess.run(total) for _ in range(4)] == [0, 1, 12, 33]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(total)


def test_traced_steps_go_on_too() -> None:
    x, ones, y = chain(through_python)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        fed = {x: np.zeros((5, 64, 64)), ones: np.ones(SHAPE)}
        got = sess.run(y, fed, options=options, run_metadata=tf.RunMetadata())
        assert got.shape == (5, 64, 64)


def test_a_body_of_a_loop_is_compiled_for_its_shapes() -> None:
    """A turn hands its results to the next, which is compiled: what does not broadcast is told."""

    def turn(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        row = tf.py_func(lambda n: np.ones(n + 1, np.float32), [i], tf.float32)
        row.set_shape([2])
        return i + 1, total + row

    _, total = tf.while_loop(lambda i, _: i < 4, turn, [0, tf.zeros([2])])
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"has shape \[3\].*set_shape.*\[2\]"),
    ):
        sess.run(total)


def test_the_shapes_of_what_is_fed_are_no_claims() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.nn.softmax(tf.matmul(x, tf.ones([3, 3])))
    with tf.Session() as sess:
        program = sess._program(y, {x: np.ones([2, 3])})
        assert not [n.name for n in program.block.nodes if n.claimed]


def test_one_of_several_results() -> None:
    def both() -> tuple[np.ndarray, np.ndarray]:
        return np.float32(2.0), np.ones(3, np.float32)

    a, b = tf.py_func(both, [], [tf.float32, tf.float32])
    a.set_shape([2, 3])
    b.set_shape([3])
    with tf.Session() as sess:
        assert sess.run(a + b).tolist() == [3.0] * 3


def test_what_is_handed_out_alone_has_the_shape_that_it_has() -> None:
    """Nothing was compiled for it: TF looks at no promise either."""
    x = tf.placeholder(tf.float32, None)
    claimed = through_python(x)
    claimed.set_shape(SHAPE)
    with tf.Session() as sess:
        assert sess.run(claimed, {x: np.zeros([2, 3])}).shape == (2, 3)


def test_what_a_branch_hands_out_is_held_to_its_shape() -> None:
    """What is around the branch is compiled for it, or anew."""

    def claiming() -> tf.Tensor:
        result = through_python(x)
        result.set_shape(SHAPE)
        return result

    x, choice = tf.placeholder(tf.float32, None), tf.placeholder(tf.bool, [])
    y = tf.exp(tf.cond(choice, claiming, lambda: tf.zeros(SHAPE))) * 2.0 + 3.0
    with tf.Session() as sess:
        got = sess.run(y, {x: np.zeros([2, 3]), choice: True})
        np.testing.assert_array_equal(got, np.full([2, 3], 5.0, np.float32))
        assert sess.run(y, {x: np.zeros(SHAPE), choice: True}).shape == SHAPE
        assert sess.run(y, {x: np.zeros([2, 3]), choice: False}).shape == SHAPE
