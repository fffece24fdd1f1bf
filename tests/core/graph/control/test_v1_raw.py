"""Switch, Merge, Enter and their like as nodes that the user made, by `tf.raw_ops`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(fetch: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as sess:
        return sess.run(fetch, feed)


def switched() -> tuple[Any, Any, Any, Any]:
    """pred, data, and data on either side."""
    x = tf.placeholder(tf.float32, [], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    off, on = raw.Switch(data=x, pred=p)
    return p, x, off, on


# ---------------------------------------------------------------- branches
@pytest.mark.parametrize(("taken", "want"), [(True, (103.0, 1)), (False, (6.0, 0))])
def test_a_merge_hands_on_what_is_alive(taken: bool, want: tuple[float, int]) -> None:
    p, x, off, on = switched()
    merged = raw.Merge(inputs=[off * 2.0, on + 100.0])
    assert run(merged, {p: taken, x: 3.0}) == want
    assert run(merged.value_index, {p: taken, x: 3.0}) == want[1]


@pytest.mark.parametrize("cases", [2, 4])
def test_one_of_several_branches(cases: int) -> None:
    """Each branch has a predicate of its own, as programs choose one of several distortions."""
    chosen = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [])
    ran = []

    def note(case: int, value: Any) -> Any:
        return tf.py_func(lambda v: ran.append(case) or v, [value], tf.float32)

    merged = raw.Merge(
        inputs=[
            note(i, raw.Switch(data=x, pred=tf.equal(chosen, i)).output_true * (i + 1.0))
            for i in range(cases)
        ]
    )
    for case in range(cases):
        assert run(merged, {chosen: case, x: 3.0}) == (3.0 * (case + 1), case)
    assert ran == list(range(cases))
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
        run(merged.output, {chosen: cases, x: 3.0})


def test_the_graph_is_left_as_it_was() -> None:
    p, x, off, on = switched()
    merged = raw.Merge(inputs=[off * 2.0, on + 100.0])
    graph = tf.get_default_graph()
    before = [op.name for op in graph.get_operations()]
    uses = len(x.consumers())
    graph.finalize()
    with tf.Session() as sess:
        assert sess.run(merged.output, {p: True, x: 3.0}) == 103.0
        assert sess.run(merged.output, {p: False, x: 3.0}) == 6.0
    assert [op.name for op in graph.get_operations()] == before
    assert len(x.consumers()) == uses
    assert [n.op for n in graph.as_graph_def().node].count("Switch") == 1


def test_a_dead_fetch_fails_and_a_dead_target_does_not_run() -> None:
    p, x, _, on = switched()
    v = tf.Variable(1.0, use_resource=False)
    hit = tf.assign(v, on)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(on + 1.0, {p: True, x: 3.0}) == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Retval\[0\] does not have"):
            sess.run(on + 1.0, {p: False, x: 3.0})
        sess.run(hit.op, {p: False, x: 3.0})
        assert sess.run(v) == 1.0
        sess.run(hit.op, {p: True, x: 3.0})
        assert sess.run(v) == 3.0


def test_only_the_side_that_is_taken_runs() -> None:
    calls = []
    p, x, off, on = switched()

    def note(value: Any) -> Any:
        calls.append(float(value))
        return value

    left = tf.py_func(note, [off], tf.float32)
    right = tf.py_func(note, [on * 10.0], tf.float32)
    assert run(raw.Merge(inputs=[left, right]).output, {p: True, x: 3.0}) == 30.0
    assert calls == [30.0]


def test_effects_happen_once_for_all_that_is_fetched() -> None:
    """A merged value and one that no Merge closes share a branch."""
    p, x, off, on = switched()
    v = tf.Variable(0.0, use_resource=False)
    counted = tf.assign_add(v, on)
    merged = raw.Merge(inputs=[off, counted + 0.0]).output
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([merged, counted * 2.0], {p: True, x: 3.0}) == [3.0, 6.0]
        assert sess.run(v) == 3.0


@pytest.mark.parametrize(("p", "q", "want"), [(1, 1, 8.0), (1, 0, 10.0), (0, 1, 3.0), (0, 0, 3.0)])
def test_a_switch_behind_a_switch(p: int, q: int, want: float) -> None:
    pred, x, off, on = switched()
    inner = tf.placeholder(tf.bool, [])
    inner_on = raw.Switch(data=inner, pred=pred)[1]
    low, high = raw.Switch(data=on, pred=inner_on)
    inside = raw.Merge(inputs=[low + 7.0, high + 5.0]).output
    feed = {pred: bool(p), inner: bool(q), x: 3.0}
    assert run(raw.Merge(inputs=[off, inside]).output, feed) == want
    with tf.Session() as sess:
        if p:
            assert sess.run(inside, feed) == want
        if p and q:
            assert sess.run(high + 0.0, feed) == 3.0
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
                sess.run(high + 0.0, feed)


def test_variables_through_switches() -> None:
    v = tf.Variable(7, use_resource=False)
    p = tf.placeholder(tf.bool, [])
    off, on = raw.RefSwitch(data=v._ref(), pred=p)
    changed = tf.assign(on, 9)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(changed.op, {p: False})
        assert sess.run(v) == 7
        assert sess.run(changed, {p: True}) == 9
        assert sess.run(raw.RefMerge(inputs=[off, on]).output, {p: False}) == 9


def test_what_stands_outside_is_shared_and_waited_for() -> None:
    p, x, off, on = switched()
    v = tf.Variable(0.0, use_resource=False)
    with tf.control_dependencies([tf.assign_add(v, 1.0)]):
        merged = raw.Merge(inputs=[tf.identity(off), on + v]).output
    after = tf.identity(merged)
    with tf.control_dependencies([merged]):
        last = v.read_value()
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([after, last], {p: False, x: 3.0}) == [3.0, 1.0]


def test_feeding_in_the_midst() -> None:
    p, x, off, on = switched()
    left = off * 2.0
    merged = raw.Merge(inputs=[left, on]).output
    assert run(merged + 1.0, {merged: 5.0}) == 6.0
    assert run(merged, {p: False, left: 4.0, x: 0.0}) == 4.0


def test_gradients() -> None:
    p, x, off, on = switched()
    a = tf.constant(2.0)
    y = raw.Merge(inputs=[off * off, on * a]).output
    (grad,) = tf.gradients(y, x)
    assert run(grad, {p: True, x: 3.0}) == 2.0
    assert run(grad, {p: False, x: 3.0}) == 6.0


def test_inside_a_branch_of_cond() -> None:
    p, x, _, _ = switched()
    q = tf.placeholder(tf.bool, [])

    def inside() -> Any:
        low, high = raw.Switch(data=x, pred=p)
        return raw.Merge(inputs=[low + 1.0, high + 2.0]).output

    y = tf.cond(q, inside, lambda: x)
    assert run(y, {q: True, p: True, x: 3.0}) == 5.0
    assert run(y, {q: True, p: False, x: 3.0}) == 4.0
    assert run(y, {q: False, p: False, x: 3.0}) == 3.0


def test_a_cond_behind_a_switch() -> None:
    p, x, off, on = switched()
    y = tf.cond(on > 0.0, lambda: on * 2.0, lambda: -on)
    merged = raw.Merge(inputs=[off, y]).output
    assert run(merged, {p: True, x: 3.0}) == 6.0
    assert run(merged, {p: True, x: -3.0}) == 3.0
    assert run(merged, {p: False, x: -3.0}) == -3.0


def test_errors_name_the_line_that_made_the_node() -> None:
    p, x, off, on = switched()
    checked = tf.check_numerics(on, "bad")
    merged = raw.Merge(inputs=[off, checked]).output
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"CheckNumerics.*test_v1_raw\.py"):
        run(merged, {p: True, x: np.inf})


def test_shapes() -> None:
    def merged(*given: Any) -> Any:
        return raw.Merge(inputs=[tf.placeholder(tf.float32, s) for s in given])

    assert merged(None, [1]).output.shape.ndims is None
    assert merged([1, 2], [1, 2, 3]).output.shape.ndims is None
    assert merged([1, 2], [2, 2]).output.shape.as_list() == [None, 2]
    assert merged([1, 2], [1, 2]).output.shape.as_list() == [1, 2]
    assert merged([1]).value_index.shape.as_list() == []
    with pytest.raises(ValueError, match="must be rank 0"):
        raw.Switch(data=1.0, pred=tf.placeholder(tf.bool, [2]))


def test_a_merge_that_no_predicate_explains_is_refused() -> None:
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(tf.errors.UnimplementedError, match=r"'Merge' \(Merge\).*no predicate"):
        run(raw.Merge(inputs=[x, x]).output, {x: 1.0})


# ---------------------------------------------------------------- loops
def enter(value: Any, constant: bool = False, frame: str = "loop") -> Any:
    return raw.Enter(data=value, frame_name=frame, is_constant=constant)


def counting(limit: Any, start: Any = 0) -> Any:
    """The first of start, start + 1, ... that is not less than limit."""
    i = enter(tf.constant(start))
    one, end = enter(tf.constant(1), True), enter(limit, True)
    merged = raw.Merge(inputs=[i, i]).output
    again = raw.LoopCond(input=tf.less(merged, end))
    left, stays = raw.Switch(data=merged, pred=again)
    merged.op._update_input(1, raw.NextIteration(data=tf.add(stays, one)))
    return raw.Exit(data=left)


def test_a_loop() -> None:
    limit = tf.placeholder(tf.int32, [])
    y = counting(limit) * 2
    with tf.Session() as sess:
        assert sess.run(y, {limit: 10}) == 20
        assert sess.run(y, {limit: 0}) == 0


def test_a_loop_on_one_side_of_a_switch() -> None:
    p = tf.placeholder(tf.bool, [])
    limit = tf.placeholder(tf.int32, [])
    off, on = raw.Switch(data=limit, pred=p)
    merged = raw.Merge(inputs=[off, counting(on, 3)]).output
    assert run(merged, {p: True, limit: 1}) == 3
    assert run(merged, {p: True, limit: 8}) == 8
    assert run(merged, {p: False, limit: 1}) == 1


def test_a_frame_without_a_loop_variable_runs_once() -> None:
    data = enter(tf.constant([1, 2, 3]))
    y = raw.Exit(data=data * enter(tf.constant(5)))
    np.testing.assert_array_equal(run(y), [5, 10, 15])


def test_a_variable_in_a_frame() -> None:
    v = tf.Variable(7, use_resource=False)
    inside = raw.RefEnter(data=v._ref(), frame_name="loop", is_constant=True)
    changed = tf.assign(inside, enter(tf.constant(9)))
    y = raw.Exit(data=changed)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y) == 9
        assert sess.run(v) == 9


def test_frames_do_not_mix() -> None:
    x = tf.placeholder(tf.float32, [])
    both = tf.add(enter(x, frame="a"), enter(x, frame="b"))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Add\w*}} has inputs from different frames.*'a'.*'b'",
    ):
        run(both, {x: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="'Enter' cannot be fetched.*'a'"):
        run("Enter:0", {x: 1.0})


def test_the_shape_of_a_loop_variable_may_change() -> None:
    assert enter(tf.ones([2]), True).shape.as_list() == [2]
    assert enter(tf.ones([2])).shape.ndims is None


def test_gradients_of_a_loop_by_hand_are_refused() -> None:
    x = tf.constant(2.0)
    with pytest.raises(LookupError, match=r"No gradient defined.*Exit.*tf\.while_loop"):
        tf.gradients(raw.Exit(data=enter(x)), x)


# ---------------------------------------------------------------- RefSelect
def test_ref_select() -> None:
    index = tf.placeholder(tf.int32, [])
    a, b = tf.Variable([1.0, 2.0], use_resource=False), tf.Variable([3.0, 4.0], use_resource=False)
    chosen = raw.RefSelect(index=index, inputs=[a._ref(), b._ref()])
    assert chosen.shape.as_list() == [2]
    changed = tf.assign(chosen, [5.0, 6.0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(tf.identity(chosen), {index: 1}), [3.0, 4.0])
        sess.run(changed, {index: 0})
        np.testing.assert_array_equal(sess.run(a), [5.0, 6.0])
        np.testing.assert_array_equal(sess.run(b), [3.0, 4.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 2 is not in \[0, 2\)"):
            sess.run(chosen, {index: 2})
