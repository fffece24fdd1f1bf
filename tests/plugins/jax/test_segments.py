"""Whole segments as XLA programs: what is in one, and what a program may take for itself."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import opdock as tf
from opdock_jax.segments import Program

DEVICE = "/device:JAX:0"


def segments(sess, fetches, feeds=None):
    """How many ops each compiled segment has."""
    return [len(row.members) for row in sess.explain(fetches, feeds).rows if row.how == "segment"]


def test_a_training_step_is_one_program_and_the_same_as_on_the_cpu():
    def train(device):
        with tf.Graph().as_default(), tf.device(device):
            x = tf.placeholder(tf.float32, [8, 4])
            start = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
            w = tf.get_variable("w", initializer=start)
            h = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w)), keep_prob=0.5, seed=3)
            loss = tf.reduce_mean(tf.square(h - 1.0))
            step = tf.train.AdamOptimizer(0.1).minimize(loss)
            feed = {x: np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)}
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                losses = [sess.run([loss, step], feed)[0] for _ in range(5)]
                return losses, sess.run(w), segments(sess, [loss, step], feed)

    losses, weights, found = train(DEVICE)
    expected, same, none = train("/cpu:0")
    assert len(found) == 1 and not none
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(weights, same, rtol=1e-4, atol=1e-6)


def test_loops_and_branches_are_the_programs_own():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [2, 2])
        w = tf.get_variable("w", initializer=tf.eye(2) * 0.5)
        total = tf.get_variable("total", initializer=0.0, use_resource=True)

        def turn(i, y):
            with tf.control_dependencies([total.assign_add(tf.reduce_sum(y)).op]):
                larger = tf.cond(y[0, 0] > 1.0, lambda: y * 0.5, lambda: tf.matmul(y, w))
            return i + 1, larger

        n, y = tf.while_loop(lambda i, _: i < 9, turn, [0, x], maximum_iterations=4)
        with tf.control_dependencies([y]):
            seen = total.read_value()
        feed = {x: np.full((2, 2), 3.0)}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            count, value, summed = sess.run([n, y, seen], feed)
            assert len(segments(sess, [n, y, seen], feed)) == 1
    state, sums = np.full((2, 2), 3.0), 0.0
    for _ in range(4):
        sums += state.sum()
        state = state * 0.5 if state[0, 0] > 1 else state @ (np.eye(2) * 0.5)
    assert count == 4 and summed == sums
    np.testing.assert_allclose(value, state)


def test_what_cannot_be_traced_runs_between_two_programs():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [4])
        places = tf.where(tf.abs(x) * 2.0 > 1.0)
        y = tf.reduce_sum(tf.cast(places, tf.float32)) * 3.0
        feed = {x: [0.1, -2.0, 0.7, 0.2]}
        with tf.Session() as sess:
            assert sess.run(y, feed) == 9.0
            assert len(segments(sess, y, feed)) == 2
            (row,) = [r for r in sess.explain(y, feed).rows if r.op == "Where"]
            assert row.how == "portable" and any("segment" in text for text in row.missed)


def test_a_check_that_fails_is_told_as_by_the_kernel_and_changes_nothing():
    with tf.Graph().as_default(), tf.device(DEVICE):
        table = tf.get_variable("table", initializer=np.ones((4, 2), np.float32))
        at = tf.placeholder(tf.int32, [2])
        grown = table.assign_add(tf.ones([4, 2]))
        with tf.control_dependencies([grown]):
            rows = tf.gather(table * 2.0, at)
        with tf.Session() as sess:
            sess.run(table.initializer)
            assert sess.run(rows, {at: [0, 3]}).tolist() == [[4.0, 4.0]] * 2
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 7"):
                sess.run(rows, {at: [0, 7]})
            assert sess.run(rows, {at: [1, 2]})[0, 0] in (6.0, 8.0)
            assert len(segments(sess, rows, {at: [1, 2]})) == 1


def counter():
    """A variable that a step halves and adds 1 to, and the step."""
    v = tf.get_variable("v", initializer=np.ones(5, np.float32))
    return v, v.assign(v * 0.5 + 1.0).op


def cell_of(sess):
    (cell,) = sess._engine.resources.items("variable")
    return cell


def test_programs_write_over_values_that_nobody_needs_any_more():
    with tf.Graph().as_default(), tf.device(DEVICE):
        v, step = counter()
        with tf.Session() as sess:
            sess.run(v.initializer)
            sess.run(step)
            held = cell_of(sess).read()
            sess.run(step)
            sess.run(step)
            assert not held.is_deleted() and held.tolist() == [1.5] * 5
            del held
            addresses = set()
            for _ in range(6):
                sess.run(step)
                addresses.add(cell_of(sess).read().unsafe_buffer_pointer())
            assert len(addresses) == 2
            np.testing.assert_allclose(sess.run(v), [2 - 0.5**9] * 5)


@pytest.mark.parametrize("failing_run", [1, 2, 4])
@pytest.mark.parametrize("kind", ["RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "INTERNAL"])
def test_a_program_that_fails_after_it_has_written_loses_nothing(monkeypatch, kind, failing_run):
    runs = 0

    def fails(program, run):
        def call(*arguments):
            nonlocal runs
            runs += 1
            out = run(*arguments)
            if runs == failing_run:
                raise jax.errors.JaxRuntimeError(f"{kind}: no more")
            return out

        return call

    made = Program.__init__
    monkeypatch.setattr(
        Program, "__init__", lambda self, trace, run: made(self, trace, fails(self, run))
    )
    with tf.Graph().as_default(), tf.device(DEVICE):
        v, step = counter()
        with tf.Session() as sess:
            sess.run(v.initializer)
            runs, expected = 0, 1.0
            for turn in range(1, 7):
                if turn == failing_run and kind == "INTERNAL":
                    with pytest.raises(tf.errors.OpError, match="no more"):
                        sess.run(step)
                else:
                    sess.run(step)
                    expected = expected * 0.5 + 1.0
                assert sess.run(v).tolist() == [expected] * 5
            assert runs >= failing_run


def test_shapes_that_come_later_are_compiled_when_they_come():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [None])
        kept = tf.boolean_mask(x, x > 0)
        y = tf.reduce_sum(tf.exp(kept) * 2.0)
        with tf.Session() as sess:
            for values in ([1.0, -1.0], [1.0, 2.0, 3.0, -4.0], [0.5, 0.5]):
                array = np.array(values, np.float32)
                expected = (np.exp(array[array > 0]) * 2).sum()
                np.testing.assert_allclose(sess.run(y, {x: array}), expected, rtol=1e-6)


def test_jax_itself_is_left_as_its_user_set_it():
    with tf.Graph().as_default(), tf.device(DEVICE), tf.Session() as sess:
        sess.run(tf.constant(np.ones(3)) * 2.0)
    assert jax.numpy.ones(3, jax.numpy.float32).dtype == "float32"
    assert not jax.config.jax_enable_x64


def recurrent(device, build):
    """Results on a device, and how many segments made them."""
    with tf.Graph().as_default(), tf.device(device):
        fetches, feed = build()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            got = sess.run(fetches, feed)
            return got, segments(sess, fetches, feed)


def loop_gradient():
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
    _, y = tf.while_loop(
        lambda i, _: i < 5, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + x), [0, x]
    )
    loss = tf.reduce_sum(tf.square(y))
    feed = {x: np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)}
    return [loss, *tf.gradients(loss, [x, w])], feed


def nested_loop_gradient():
    x = tf.placeholder(tf.float32, [3])

    def outer(i, y):
        _, z = tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, tf.sin(z) * x), [0, y])
        return i + 1, z + y

    _, y = tf.while_loop(lambda i, _: i < 3, outer, [0, x])
    return [tf.reduce_sum(y), *tf.gradients(y, x)], {x: [0.3, -0.2, 0.9]}


def branch_in_loop_gradient():
    x = tf.placeholder(tf.float32, [3])

    def turn(i, y):
        small = tf.reduce_sum(y) < 2.0
        return i + 1, tf.cond(small, lambda: tf.exp(tf.sin(y)) * x, lambda: tf.tanh(y) + x)

    _, y = tf.while_loop(lambda i, _: i < 5, turn, [0, x])
    return [y, *tf.gradients(y, x)], {x: [0.3, 0.5, 0.4]}


@pytest.mark.parametrize("build", [loop_gradient, branch_in_loop_gradient])
def test_gradients_of_loops_are_in_the_program(build):
    expected, _ = recurrent("/cpu:0", build)
    got, found = recurrent(DEVICE, build)
    assert len(found) == 1
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_gradients_of_loops_in_loops_go_turn_by_turn():
    """Nobody can count their turns before: each condition and each body is a program."""
    expected, _ = recurrent("/cpu:0", nested_loop_gradient)
    with tf.Graph().as_default(), tf.device(DEVICE):
        fetches, feed = nested_loop_gradient()
        with tf.Session() as sess:
            got, rows = sess.run(fetches, feed), sess.explain(fetches, feed).rows
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    loops = {row.node for row in rows if row.how == "control"}
    parts = {row.within for row in rows if row.how == "segment"}
    assert parts >= {f"{loop}/{part}" for loop in loops for part in ("cond", "body")}
    assert any("not known beforehand" in why for row in rows for why in row.missed)


def test_the_gradient_of_a_branch_is_in_the_program():
    """Each branch gives its own values in lists, which are empty after the other."""

    values = ([0.3, 0.5, 0.4], [0.3, -0.5, 0.4], [-0.3, 0.5, 0.4])

    def run(device):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as sess:
            x = tf.placeholder(tf.float32, [3])
            y = tf.cond(
                tf.reduce_sum(x) > 1.0,
                lambda: tf.sin(tf.exp(x)) * x,
                lambda: tf.cond(x[0] > 0.0, lambda: tf.tanh(tf.exp(x)) + x, lambda: x * x),
            )
            both = [y, *tf.gradients(y, x)]
            return [sess.run(both, {x: v}) for v in values], segments(sess, both, {x: values[0]})

    got, found = run(DEVICE)
    expected, _ = run("/cpu:0")
    assert len(found) == 1
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_explain_tells_why_a_loop_is_in_no_program():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [3])
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True).unstack(x)
        _, y = tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y + rows.read(i)), [0, tf.constant(0.0)]
        )
        with tf.Session() as sess:
            assert sess.run(y, {x: [1.0, 2.0, 3.0]}) == 6.0
            rows = sess.explain(y, {x: [1.0, 2.0, 3.0]}).rows
            assert any("size of the tensor array is not known" in t for r in rows for t in r.missed)
            assert [r.how for r in rows if "While" in r.op] == ["control"]


def places_in_a_loop():
    """Rows, parts and columns at places that the loop computes, and their gradients."""
    x = tf.placeholder(tf.float32, [4, 3])
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))

    def turn(i, y):
        column = tf.reshape(x[::-1, -1 - i % 3], [1, 4])[:, :3] + x[i, tf.newaxis]
        part = tf.slice(x, [i, 0], [1, 3]) * x[-1 - i, ::-1]
        return i + 1, tf.tanh(tf.matmul(y + part, w)) + column

    _, y = tf.while_loop(lambda i, _: i < 4, turn, [0, x[:1]])
    feed = {x: np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)}
    return [y, *tf.gradients(y, [x, w])], feed


def test_places_that_a_loop_computes_are_in_the_program():
    expected, _ = recurrent("/cpu:0", places_in_a_loop)
    got, found = recurrent(DEVICE, places_in_a_loop)
    assert len(found) == 1
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_place_that_is_not_there_is_the_kernels_own_error():
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [4])
        n = tf.placeholder(tf.int32, [])
        _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y + x[i]), [0, 0.0])
        with tf.Session() as sess:
            assert sess.run(y, {x: [1.0, 2.0, 3.0, 4.0], n: 4}) == 10.0
            with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 4 of dim"):
                sess.run(y, {x: [1.0, 2.0, 3.0, 4.0], n: 5})


def test_a_loop_that_nobody_can_count_records_outside():
    def build():
        x = tf.placeholder(tf.float32, [])
        y = tf.while_loop(lambda y: y < 10.0, lambda y: y * x, [x])
        return [y, *tf.gradients(y, x)], {x: 2.0}

    expected, _ = recurrent("/cpu:0", build)
    got, _ = recurrent(DEVICE, build)
    assert got == expected == [16.0, 32.0]


def test_large_results_are_the_callers_own():
    with tf.Graph().as_default(), tf.device(DEVICE):
        v = tf.get_variable("v", initializer=np.ones((300, 300), np.float32))
        x = tf.placeholder(tf.float32, [300, 300])
        with tf.control_dependencies([v.assign_add(x)]):
            grown = v * 2.0
        kept = v.assign_add(tf.zeros_like(x))
        with tf.Session() as sess:
            sess.run(v.initializer)
            fed = np.full((300, 300), 3.0, np.float32)
            first = sess.run(grown, {x: fed})
            fed[:] = 100.0
            assert first.flags.writeable and first.flags.c_contiguous
            assert (first == 8.0).all()
            first[:] = -1.0
            own, value = sess.run([kept, v], {x: fed})
            own[:], value[:] = -1.0, -2.0
            assert (own == -1.0).all() and (sess.run(v) == 4.0).all()
            held = [sess.run(grown, {x: np.zeros_like(fed)}) for _ in range(4)]
            assert all((h == 8.0).all() for h in held)


def test_a_fallback_after_a_result_was_promised_gives_copies(monkeypatch):
    """What the ops give in a program's place may be a variable's own memory."""
    called = Program.__call__

    def declines(self, inputs, state, places):
        if len(self.trace.segment.outputs) == 2:
            raise tf.errors.UnimplementedError(None, None, "not today")
        return called(self, inputs, state, places)

    monkeypatch.setattr(Program, "__call__", declines)
    with tf.Graph().as_default(), tf.device(DEVICE):
        v = tf.get_variable("v", initializer=np.ones((300, 300), np.float32), use_resource=True)
        both = [v.read_value(), v * 2.0]
        with tf.Session() as sess:
            sess.run(v.initializer)
            value, _ = sess.run(both)
            value[:] = 7.0
            assert (sess.run(v) == 1.0).all()
