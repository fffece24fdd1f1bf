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


def rows(n: tf.Tensor, count: int, claim: int) -> tf.Tensor:
    row = tf.py_func(lambda v: np.full(count, v, np.float32), [n], tf.float32)
    row.set_shape([claim])
    return row


SIZES = [(3, 2), (3, 100_000), (100_000, 3)]


@pytest.mark.parametrize(("count", "claim"), SIZES)
def test_a_turn_of_a_loop_goes_on_and_so_do_those_after_it(count: int, claim: int) -> None:
    turns: list[int] = []

    def turn(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        noted = tf.py_func(lambda n: (turns.append(int(n)), n)[1], [i], tf.int32)
        with tf.control_dependencies([noted]):
            row = rows(tf.identity(i), count, claim)
        return i + 1, total + tf.reduce_sum(tf.exp(row) * 2.0 + 1.0)

    _, total = tf.while_loop(lambda i, _: i < 4, turn, [0, tf.zeros([])])
    with tf.Session() as sess:
        for _ in range(2):
            want = count * sum(2 * np.exp(n) + 1 for n in range(4))
            np.testing.assert_allclose(sess.run(total), want, rtol=1e-4)
            assert turns == [0, 1, 2, 3]
            turns.clear()


def test_variables_of_a_loop_may_change_their_shape_by_a_claim() -> None:
    def turn(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        twice = tf.py_func(lambda t: np.concatenate([t, t]), [total], tf.float32)
        twice.set_shape([2])
        inner = tf.while_loop(lambda j, _: j < 2, lambda j, t: (j + 1, t * 2.0), [0, twice])[1]
        return i + 1, tf.cond(i < 1, lambda: inner + 1.0, lambda: twice + 1.0)

    _, total = tf.while_loop(lambda i, _: i < 3, turn, [0, tf.zeros([2])])
    result = tf.exp(total * 0.0) + total
    with tf.Session() as sess:
        for _ in range(2):
            assert sess.run(result).tolist() == [4.0] * 16


def test_elements_of_map_fn() -> None:
    def row(x: tf.Tensor) -> tf.Tensor:
        return rows(x, 3, 2) * 2.0

    mapped = tf.map_fn(row, tf.constant([1.0, 2.0]))
    with tf.Session() as sess:
        assert sess.run(mapped).tolist() == [[2.0] * 3, [4.0] * 3]


def test_what_does_not_fit_in_a_loop_is_told_by_its_op() -> None:
    def turn(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, total + rows(i, 3, 2)

    _, total = tf.while_loop(lambda i, _: i < 4, turn, [0, tf.zeros([2])])
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes: \[2\] vs. \[3\]"),
    ):
        sess.run(total)


@pytest.mark.parametrize(("count", "claim"), SIZES)
def test_functions_of_datasets_take_elements_as_they_are(count: int, claim: int) -> None:
    def made() -> tf.data.Dataset:
        return tf.data.Dataset.range(4).map(lambda n: rows(n, count, claim))

    def computed(y: tf.Tensor) -> tf.Tensor:
        return tf.exp(y) * 2.0 + 1.0

    want = np.exp(np.arange(2.0))[:, None] * np.full([1, count], 2.0) + 1.0
    for dataset in (
        made().map(computed).batch(2),
        made().filter(lambda y: tf.reduce_sum(y * 2.0) >= 0.0).map(computed).batch(2),
        made().map(computed, num_parallel_calls=2).batch(2).prefetch(1),
    ):
        with tf.Session() as sess:
            got = sess.run(tf.data.make_one_shot_iterator(dataset).get_next())
        np.testing.assert_allclose(got, want, rtol=1e-5)
    bytes_ = made().map(lambda y: tf.cast(y, tf.uint8)).batch(2)
    with tf.Session() as sess:
        got = sess.run(tf.data.make_one_shot_iterator(bytes_).get_next())
    assert got.tolist() == [[0] * count, [1] * count]


@pytest.mark.parametrize(("count", "claim"), SIZES)
def test_what_an_iterator_gives_is_as_it_is(count: int, claim: int) -> None:
    dataset = tf.data.Dataset.range(3).map(lambda n: rows(n, count, claim))
    value = tf.data.make_one_shot_iterator(dataset).get_next()
    result = tf.exp(value) * 2.0 + 1.0
    with tf.Session() as sess:
        for n in range(3):
            want = np.full(count, 2.0 * np.exp(n) + 1.0)
            np.testing.assert_allclose(sess.run(result), want, rtol=1e-5)


@pytest.mark.parametrize(("before", "after"), SIZES)
@pytest.mark.parametrize("resource", [False, True])
def test_a_variable_that_was_given_another_shape_has_it(
    before: int, after: int, resource: bool
) -> None:
    """In programs that were compiled before as in those after, and in the step that gives it."""
    given = tf.placeholder(tf.float32, None)
    v = tf.Variable(np.full(before, 0.5, np.float32), use_resource=resource)
    computed = tf.exp(v) * 2.0 + 1.0
    chosen = tf.cond(given[0] > 0.0, lambda: tf.exp(v) * 2.0, lambda: v * 1.0)
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + tf.exp(v)), [0, v * 0.0])[1]
    change = v.assign(given) if resource else tf.assign(v, given, validate_shape=False)
    with tf.control_dependencies([change]):
        at_once = tf.exp(v.read_value()) * 2.0
    with tf.Session() as sess:
        sess.run(v.initializer)
        fed = {given: np.full(after, 1.0, np.float32)}
        assert sess.run(computed).shape == (before,)
        np.testing.assert_allclose(sess.run(at_once, fed), np.full(after, 2 * np.e), rtol=1e-5)
        np.testing.assert_allclose(sess.run(computed), np.full(after, 2 * np.e + 1), rtol=1e-5)
        np.testing.assert_allclose(sess.run(chosen, fed), np.full(after, 2 * np.e), rtol=1e-5)
        np.testing.assert_allclose(sess.run(looped), np.full(after, 3 * np.e), rtol=1e-5)
        assert sess.run(v).shape == (after,)


def test_what_was_read_before_a_variable_got_another_size_stays() -> None:
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    read = tf.identity(v)
    with tf.control_dependencies([read]):
        change = tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    with tf.control_dependencies([change]):
        later, fresh = read * 2.0, v.read_value()
    with tf.Session() as sess:
        sess.run(v.initializer)
        got = sess.run([read, later, fresh])
        assert [x.tolist() for x in got] == [[1.0, 2.0], [2.0, 4.0], [1.0, 2.0, 3.0]]


def test_several_claims_in_a_step_whose_work_is_shared_among_threads() -> None:
    """Heavy steps run in any order: what has run does not run again."""
    calls: list[int] = []

    def source(n: int) -> tf.Tensor:
        def make() -> np.ndarray:
            calls.append(n)
            return np.full([1, 90, 90, 8], n, np.float32)

        x = tf.py_func(make, [], tf.float32)
        x.set_shape([1, 88, 88, 8])
        return tf.nn.relu(tf.nn.conv2d(x, tf.ones([3, 3, 8, 8]), 1, "VALID"))

    result = tf.add_n([tf.reduce_mean(source(n)) for n in range(1, 4)])
    config = tf.ConfigProto(inter_op_parallelism_threads=4)
    with tf.Session(config=config) as sess:
        assert sess.run(result) == 72.0 * 6
    assert sorted(calls) == [1, 2, 3]


def test_a_claim_beside_what_waits() -> None:
    """Of two ops that wait for each other, one gives what it did not say."""
    queue = tf.FIFOQueue(1, tf.float32)
    put = [queue.enqueue([tf.fill([n], 1.0)]) for n in (3, 4)]
    taken = []
    for _ in put:
        x = queue.dequeue()
        x.set_shape([2])
        taken.append(tf.reduce_sum(tf.exp(x) * 2.0))
    with tf.Session() as sess:
        got = sess.run([tf.add_n(taken), *put])
        np.testing.assert_allclose(got[0], 7 * 2 * np.e, rtol=1e-5)


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


def test_several_variables_grow_in_one_step_from_what_only_their_readers_hold():
    # The second variable reads what was taken from the queue, after the first has another shape.
    queue = tf.FIFOQueue(3, [tf.string])
    put = queue.enqueue([[["a", "b"], ["c", "d"]]])
    taken = queue.dequeue()
    taken.set_shape([None, None])
    started, grown = [], []
    for i in range(3):
        lines = tf.Variable([], dtype=tf.string, trainable=False, name=f"lines_{i}")
        more = tf.concat([lines, tf.reduce_join(taken, 1)], 0)
        started.append(lines.initializer)
        grown.append(tf.py_func(len, [tf.assign(lines, more, validate_shape=False)], tf.int64))
    with tf.Session() as session:
        session.run(started)
        for turn in (1, 2):
            session.run(put)
            assert [int(n) for n in session.run(grown)] == [2 * turn] * 3
