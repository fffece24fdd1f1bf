"""Stacks of tensors, as the gradients of TF 1's loops use them."""

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


def stack(limit: int = -1, dtype: Any = tf.int32) -> Any:
    return raw.StackV2(max_size=limit, elem_type=dtype, stack_name="s")


def push(handle: Any, value: Any, *after: Any) -> Any:
    with tf.control_dependencies(after):
        return raw.StackPushV2(handle=handle, elem=value)


def pop(handle: Any, *after: Any, dtype: Any = tf.int32) -> Any:
    with tf.control_dependencies(after):
        return raw.StackPopV2(handle=handle, elem_type=dtype)


def test_last_in_first_out() -> None:
    handle = stack()
    first = push(handle, [1, 2])
    second = push(handle, 7, first)
    top = pop(handle, second)
    below = pop(handle, top)
    with tf.Session() as sess:
        for _ in range(2):  # each step has a stack of its own
            got = sess.run([first, second, top, below])
            assert got[1] == got[2] == 7
            np.testing.assert_array_equal(got[0], [1, 2])
            np.testing.assert_array_equal(got[3], [1, 2])


def test_a_stack_by_reference() -> None:
    handles = [raw.Stack(elem_type=tf.int32, stack_name="s") for _ in range(2)]
    pushed = raw.StackPush(handle=handles[0], elem=[3])
    with tf.control_dependencies([pushed]):
        top = raw.StackPop(handle=handles[0], elem_type=tf.int32)
    with tf.control_dependencies([top]):
        closed = raw.StackClose(handle=handles[0])
    assert handles[0].shape == (2,)
    assert run([top, closed])[0].tolist() == [3]
    first, second = run(handles)
    assert first[1] != second[1]


def test_between_loops() -> None:
    handle = stack()

    def forth(i: Any) -> Any:
        with tf.control_dependencies([raw.StackPushV2(handle=handle, elem=i)]):
            return tf.add(i, 1)

    def back(i: Any, total: Any) -> Any:
        return i - 1, total * 2 + tf.reshape(pop(handle), [])

    turns = tf.while_loop(lambda i: i < 5, forth, [0])
    _, total = tf.while_loop(lambda i, _: i > 0, back, [turns, 0])
    want = 0
    for i in (4, 3, 2, 1, 0):
        want = want * 2 + i
    assert run(total) == want


def test_in_loops_of_first_control_flow() -> None:
    """A loop and the one of its gradient: what the first pushes, the second pops."""
    handle = stack(dtype=tf.float32)

    def loop(frame: str, start: list[Any], step: Any, keep: Any) -> list[Any]:
        here = raw.Enter(data=handle, frame_name=frame, is_constant=True)
        enters = [raw.Enter(data=v, frame_name=frame) for v in start]
        merges = [raw.Merge(inputs=[e, e]).output for e in enters]
        goes_on = raw.LoopCond(input=keep(merges[0]))
        sides = [raw.Switch(data=m, pred=goes_on) for m in merges]
        for merge, value in zip(merges, step(here, *(s[1] for s in sides)), strict=True):
            merge.op._update_input(1, raw.NextIteration(data=value))
        return [raw.Exit(data=s[0]) for s in sides]

    def forth(here: Any, i: Any, y: Any) -> list[Any]:
        with tf.control_dependencies([raw.StackPushV2(handle=here, elem=y)]):
            return [i + 1, y * y]

    def back(here: Any, i: Any, grad: Any) -> list[Any]:
        return [i - 1, 2.0 * grad * raw.StackPopV2(handle=here, elem_type=tf.float32)]

    x = tf.placeholder(tf.float32, [])
    turns, y = loop("forth", [tf.constant(0), x], forth, lambda i: i < 3)
    _, grad = loop("back", [turns, tf.ones_like(y)], back, lambda i: i > 0)
    got = run([y, grad], {x: 1.5})
    np.testing.assert_allclose(got, [1.5**8, 8 * 1.5**7], rtol=1e-6)


def test_elements_survive_the_buffers_they_were_made_in() -> None:
    x = tf.placeholder(tf.float32, [1000])
    handle = stack(dtype=tf.float32)
    kept = push(handle, tf.sin(x) * 2.0)
    other = tf.reduce_sum(tf.cos(x * 3.0 + kept) * 5.0)
    y = pop(handle, other, dtype=tf.float32)
    values = np.linspace(0, 1, 1000, dtype=np.float32)
    np.testing.assert_allclose(run([y, other], {x: values})[0], np.sin(values) * 2, rtol=1e-6)


def test_errors() -> None:
    invalid = tf.errors.InvalidArgumentError
    handle = stack(1)
    once = push(handle, 1)
    with pytest.raises(invalid, match=r"Stack\[s\] overflowed its max_size \(1\)"):
        run(push(handle, 2, once))
    with pytest.raises(invalid, match=r"Stack\[s\] is empty when calling Pop"):
        run(pop(stack()))
    with pytest.raises(invalid, match="Must have type int32 but got float32"):
        run(pop(handle, once, dtype=tf.float32))
    closed = stack()
    with tf.control_dependencies([raw.StackCloseV2(handle=closed)]):
        late = raw.StackPushV2(handle=closed, elem=1)
    with pytest.raises(invalid, match="has already been closed"):
        run(late)
