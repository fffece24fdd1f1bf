"""Queues: order, waiting, closing, and that no element is lost or comes twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from tests.threads import start


# ---------------------------------------------------------------- order
@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.sampled_from(["get", "get3"])), max_size=25))
def test_a_fifo_queue_is_a_queue(actions: list[Any]) -> None:
    model: list[int] = []
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(100, tf.int32, shapes=[[]])
        value = tf.placeholder(tf.int32, [])
        put, get, get3 = queue.enqueue(value), queue.dequeue(), queue.dequeue_many(3)
        size = queue.size()
        with tf.Session() as sess:
            for action in actions:
                if isinstance(action, int):
                    sess.run(put, {value: action})
                    model.append(action)
                elif action == "get" and model:
                    assert sess.run(get) == model.pop(0)
                elif action == "get3" and len(model) >= 3:
                    assert sess.run(get3).tolist() == [model.pop(0) for _ in range(3)]
                assert sess.run(size) == len(model)


def test_the_smallest_priority_comes_first_and_equals_keep_their_order() -> None:
    queue = tf.PriorityQueue(100, [tf.string], shapes=[[]])
    put = queue.enqueue_many(([3, 1, 2, 1], ["c", "a", "b", "a2"]))
    get = queue.dequeue_many(4)
    with tf.Session() as sess:
        sess.run(put)
        order, words = sess.run(get)
    assert order.tolist() == [1, 1, 2, 3]
    assert words.tolist() == [b"a", b"a2", b"b", b"c"]


def test_a_batch_of_priorities_is_in_order_however_its_elements_came() -> None:
    queue = tf.PriorityQueue(100, [tf.string], shapes=[[]])
    value = tf.placeholder(tf.int64, [])
    put, get, size = queue.enqueue((value, "")), queue.dequeue_many(3), queue.size()
    with tf.Session() as sess:
        found = start(lambda: sess.run(get))
        for i, priority in enumerate((3, 1)):
            sess.run(put, {value: priority})
            assert sess.run(size) == i + 1  # nothing is taken before all are there
        sess.run(put, {value: 2})
        assert found()[0].tolist() == [1, 2, 3]


def test_shuffling_repeats_with_its_seed_and_loses_nothing() -> None:
    runs = []
    for seed in (5, 5, 6):
        with tf.Graph().as_default(), tf.Session() as sess:
            queue = tf.RandomShuffleQueue(50, 0, tf.int32, shapes=[[]], seed=seed)
            put, get = queue.enqueue_many((np.arange(40),)), queue.dequeue_many(40)
            sess.run(put)
            runs.append(sess.run(get).tolist())
    assert runs[0] == runs[1] != runs[2]
    assert sorted(runs[0]) == list(range(40)) != runs[0]


def test_a_shuffling_queue_keeps_some_until_it_is_closed() -> None:
    queue = tf.RandomShuffleQueue(10, 3, tf.int32, shapes=[[]])
    put, get, rest = queue.enqueue_many(([1, 2, 3, 4],)), queue.dequeue(), queue.dequeue_up_to(9)
    with tf.Session() as sess:
        sess.run(put)
        sess.run(get)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(get, options=tf.RunOptions(timeout_in_ms=100))
        sess.run(queue.close())
        assert len(sess.run(rest)) == 3


def test_rows_that_differ_are_padded() -> None:
    queue = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], shapes=[[None], []])
    values = tf.placeholder(tf.int32, [None])
    put, get = queue.enqueue((values, "x")), queue.dequeue_many(3)
    with tf.Session() as sess:
        for row in ([1, 2, 3], [], [4]):
            sess.run(put, {values: row})
        rows, words = sess.run(get)
    assert rows.tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    assert words.tolist() == [b"x"] * 3


def test_elements_are_the_values_of_their_step() -> None:
    # A program may use the memory of its results again in its next step.
    x = tf.placeholder(tf.float32, [1000])
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[1000]])
    put, get = queue.enqueue(tf.sqrt(x) + 1.0), queue.dequeue_many(4)
    with tf.Session() as sess:
        for i in range(4):
            sess.run(put, {x: np.full(1000, i * i)})
        np.testing.assert_array_equal(sess.run(get)[:, 7], [1, 2, 3, 4])


def test_dictionaries() -> None:
    queue = tf.FIFOQueue(10, [tf.int32, tf.float32], names=["i", "x"])
    put, get = queue.enqueue({"x": 2.0, "i": 1}), queue.dequeue()
    with tf.Session() as sess:
        sess.run(put)
        assert sess.run(get) == {"i": 1, "x": 2.0}
    with pytest.raises(ValueError, match="must enqueue a dictionary"):
        queue.enqueue((1, 2.0))
    with pytest.raises(ValueError, match="do not match"):
        queue.enqueue({"i": 1, "y": 2.0})


def test_one_of_several_queues_chosen_by_a_tensor() -> None:
    queues = [tf.FIFOQueue(10, tf.int32, shapes=[[]], name=n) for n in "ab"]
    puts = [q.enqueue(i) for i, q in enumerate(queues)]
    which = tf.placeholder(tf.int32, [])
    get = tf.QueueBase.from_list(which, queues).dequeue()
    with tf.Session() as sess:
        sess.run(puts)
        assert [sess.run(get, {which: i}) for i in (1, 0)] == [1, 0]


# ---------------------------------------------------------------- waiting
def test_a_dequeue_waits_for_another_step() -> None:
    queue = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    put, get = queue.enqueue(7), queue.dequeue_many(2)
    with tf.Session() as sess:
        found = start(lambda: sess.run(get).tolist())
        sess.run(put)
        sess.run(put)
        assert found() == [7, 7]


def test_an_enqueue_waits_for_room_and_has_it_at_once() -> None:
    queue = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    put, get, size = queue.enqueue_many(([1, 2, 3, 4],)), queue.dequeue(), queue.size()
    with tf.Session() as sess:
        done = start(lambda: sess.run(put))
        assert sess.run(get) == 1
        assert sess.run(size) == 2
        assert [sess.run(get) for _ in range(3)] == [2, 3, 4]
        assert done() is None


def test_what_needs_no_element_runs_before_the_waiting() -> None:
    queue = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    get, put = queue.dequeue(), queue.enqueue(5)
    failed = tf.Assert(False, ["no"])
    with tf.Session() as sess:
        assert sess.run([get, put])[0] == 5
        with pytest.raises(tf.errors.InvalidArgumentError, match="no"):
            sess.run([get, failed])


def test_every_element_comes_once_through_many_threads() -> None:
    queue = tf.FIFOQueue(3, tf.int32, shapes=[[]])
    value = tf.placeholder(tf.int32, [None])
    put, one, some = queue.enqueue_many((value,)), queue.dequeue(), queue.dequeue_many(4)
    with tf.Session() as sess:
        puts = [
            start(lambda i=i: sess.run(put, {value: range(20 * i, 20 * i + 20)})) for i in range(4)
        ]
        ones = [start(lambda: [sess.run(one) for _ in range(10)]) for _ in range(4)]
        fours = [start(lambda: sess.run(some).tolist()) for _ in range(10)]
        found = Counter(int(v) for join in (*ones, *fours) for v in join())
        assert [p() for p in puts] == [None] * 4
    assert found == Counter(range(80))


# ---------------------------------------------------------------- the end
def test_a_closed_queue_gives_what_it_has() -> None:
    queue = tf.FIFOQueue(10, tf.int32, shapes=[[]], name="q")
    put, many, up_to = (
        queue.enqueue_many(([1, 2, 3],)),
        queue.dequeue_many(2),
        queue.dequeue_up_to(2),
    )
    closed = queue.is_closed()
    with tf.Session() as sess:
        sess.run(put)
        assert not sess.run(closed)
        sess.run(queue.close())
        assert sess.run(closed)
        with pytest.raises(tf.errors.CancelledError, match="'q' is closed"):
            sess.run(put)
        assert sess.run(many).tolist() == [1, 2]
        with pytest.raises(tf.errors.OutOfRangeError, match=r"requested 2, current size 1"):
            sess.run(many)
        assert sess.run(up_to).tolist() == [3]  # what could not be had together is still there
        with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
            sess.run(up_to)
        with pytest.raises(tf.errors.CancelledError, match="already closed"):
            sess.run(queue.close())


@pytest.mark.parametrize("cancels", [False, True])
def test_closing_lets_those_who_wait_for_room_finish_or_cancels_them(cancels: bool) -> None:
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    put, get, size = queue.enqueue_many(([1, 2, 3],)), queue.dequeue(), queue.size()
    close = queue.close(cancel_pending_enqueues=cancels)
    with tf.Session() as sess:
        done = start(lambda: sess.run(put))
        while sess.run(size) < 1:
            pass
        closed = start(lambda: sess.run(close))
        if cancels:
            assert "Enqueue operation was cancelled" in str(done())
        assert [sess.run(get) for _ in range(1 if cancels else 3)] == [1, 2, 3][
            : 1 if cancels else 3
        ]
        assert closed() is None
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(get)


def test_a_session_that_closes_ends_the_waiting() -> None:
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    get, put = queue.dequeue(), queue.enqueue_many(([1, 2, 3],))
    size = queue.size()
    for waiting, begun in ((get, 0), (put, 1)):
        sess = tf.Session()
        found = start(lambda: sess.run(waiting))  # noqa: B023 - joined in this turn
        while sess.run(size) < begun:
            pass
        sess.close()
        assert isinstance(found(), (tf.errors.CancelledError, RuntimeError))


def test_a_step_whose_time_is_over_takes_nothing_with_it() -> None:
    queue = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    put, many, one = queue.enqueue(1), queue.dequeue_many(2), queue.dequeue()
    with tf.Session() as sess:
        sess.run(put)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(many, options=tf.RunOptions(timeout_in_ms=50))
        assert sess.run(one) == 1
        sess.run(put)
        assert sess.run(one) == 1


# ---------------------------------------------------------------- mistakes
def test_wrong_shapes_and_types_are_named() -> None:
    x = tf.placeholder(tf.float32, None)
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[2]], name="q")
    many = queue.enqueue_many((x,))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected \[2\], got \[3\]"):
            sess.run(queue.enqueue(x), {x: [1, 2, 3]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected \[1,2\], got \[1,3\]"):
            sess.run(many, {x: [[1, 2, 3]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="size in the 0th dimension"):
            sess.run(many, {x: 1.0})
    with pytest.raises(ValueError, match="are incompatible"):
        queue.enqueue(tf.zeros([3]))
    with pytest.raises((TypeError, ValueError), match="float32"):
        queue.enqueue(tf.zeros([2], tf.int32))


def test_batches_need_shapes() -> None:
    queue = tf.FIFOQueue(10, tf.float32)
    with tf.Session() as sess:
        sess.run(queue.enqueue(1.0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="specified shapes"):
            sess.run(queue.dequeue_many(1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
            sess.run(
                tf.FIFOQueue(1, tf.int32, [[]]).dequeue_many(tf.placeholder_with_default(-1, []))
            )


def test_those_who_share_a_queue_agree_on_it() -> None:
    first = tf.FIFOQueue(10, tf.float32, shared_name="s")
    same = tf.FIFOQueue(10, tf.float32, shared_name="s", name="other")
    larger = tf.FIFOQueue(11, tf.float32, shared_name="s")
    typed = tf.FIFOQueue(10, tf.int32, shared_name="s")
    with tf.Session() as sess:
        sess.run(first.enqueue(4.0))
        assert sess.run(same.dequeue()) == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="capacity 10 but requested"):
            sess.run(larger.size())
        with pytest.raises(tf.errors.InvalidArgumentError, match="component types"):
            sess.run(typed.size())


def test_those_who_share_a_shuffled_queue_agree_on_its_seeds() -> None:
    queues = [tf.RandomShuffleQueue(9, 1, tf.int32, seed=s, shared_name="r") for s in (1, 1, 2)]
    tf.set_random_seed(None)
    queues.append(tf.RandomShuffleQueue(9, 1, tf.int32, shared_name="r"))
    with tf.Session() as sess:
        for agreed in (0, 1, 3):
            assert sess.run(queues[agreed].size()) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="random seeds"):
            sess.run(queues[2].size())


def test_constructors_refuse_what_makes_no_queue() -> None:
    with pytest.raises(ValueError, match="same length"):
        tf.FIFOQueue(1, [tf.int32, tf.int32], shapes=[[]])
    with pytest.raises(ValueError, match="fully defined"):
        tf.FIFOQueue(1, tf.int32, shapes=[[None]])
    with pytest.raises(ValueError, match="names"):
        tf.FIFOQueue(1, tf.int32, names=["a", "b"])
    with pytest.raises(TypeError, match="list of queues"):
        tf.QueueBase.from_list(0, [])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="min_after"):
        sess.run(tf.RandomShuffleQueue(3, 3, tf.int32).size())


# ---------------------------------------------------------------- one step that waits twice
def one_thread() -> tf.Session:
    return tf.Session(
        config=tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    )


def test_a_step_puts_into_a_full_queue_what_it_makes_room_for() -> None:
    queue = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    value = tf.placeholder(tf.int32, [])
    put, get, size = queue.enqueue(value), queue.dequeue(), queue.size()
    doubled = get * 2
    with one_thread() as sess:
        sess.run(put, {value: 0})
        for turn in range(1, 5):
            assert sess.run([put, doubled], {value: turn})[1] == 2 * (turn - 1)
        # The same while another thread is in the program already.
        sess.run(get)
        waiting = [start(lambda i=i: sess.run([put, doubled], {value: i})) for i in range(3)]
        assert sorted(int(join()[1]) for join in waiting) == [0, 2, 4]
        assert sess.run(size) == 0


def test_one_operation_of_a_step_brings_what_another_waits_for() -> None:
    first, second = (tf.FIFOQueue(1, tf.int32, shapes=[[]]) for _ in range(2))
    there, back = first.dequeue(), second.dequeue()
    on = second.enqueue(there + 1)
    with one_thread() as sess:
        found = start(lambda: sess.run([back, on, there]))
        sess.run(first.enqueue(4))
        assert found() == [5, None, 4]


@pytest.mark.parametrize("how", ["fails", "deadline", "closed"])
def test_what_ends_a_step_ends_all_its_waiting(how: str) -> None:
    full, empty, third = (tf.FIFOQueue(1, tf.int32, shapes=[[]]) for _ in range(3))
    fill, put, get = full.enqueue(1), full.enqueue(2), empty.dequeue()
    # Fails when there is something in the third queue.
    fails = tf.Assert(third.dequeue() < 0, ["negative"])
    options = tf.RunOptions(timeout_in_ms=100) if how == "deadline" else None
    sess = one_thread()
    sess.run(fill)
    found = start(lambda: sess.run([put, get, fails], options=options))
    if how == "fails":
        sess.run(third.enqueue(1))
        assert isinstance(found(), tf.errors.InvalidArgumentError)
    elif how == "deadline":
        assert isinstance(found(), tf.errors.DeadlineExceededError)
    else:
        sess.run(empty.close())
        assert isinstance(found(), tf.errors.OutOfRangeError)
    assert sess.run(full.size()) == 1
    assert sess.run(full.dequeue()) == 1
    sess.close()


@pytest.mark.parametrize("kind", [tf.FIFOQueue, tf.PaddingFIFOQueue])
def test_strings_keep_the_zero_bytes_at_their_ends(kind: Any) -> None:
    texts = [b"a\0", b"\0", b"ab\0\0"]
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = kind(10, tf.string, [[]])
        sess.run([queue.enqueue_many([tf.constant(texts)]), queue.enqueue(tf.constant(b"c\0"))])
        assert sess.run(queue.dequeue_many(4)).tolist() in ([*texts, b"c\0"], [b"c\0", *texts])
        barrier = tf.raw_ops.Barrier(component_types=[tf.string], shapes=[[]])
        into = {"handle": barrier, "component_index": 0}
        sess.run(tf.raw_ops.BarrierInsertMany(keys=[b"k\0"], values=texts[:1], **into))
        taken = tf.raw_ops.BarrierTakeMany(
            handle=barrier, num_elements=1, component_types=[tf.string]
        )
        found = sess.run([taken.keys, taken.values[0]])
        assert [part.tolist() for part in found] == [[b"k\0"], texts[:1]]


STRINGS = [b"a\0", b"bb\0\0", b"", b"\0"]  # as serialized messages end


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.FIFOQueue(9, [tf.string], [[]]),
        lambda: tf.RandomShuffleQueue(9, 0, [tf.string], [[]]),
        lambda: tf.PaddingFIFOQueue(9, [tf.string], [[]]),
    ],
)
def test_strings_keep_the_zeros_at_their_ends(make):
    with tf.Graph().as_default(), tf.Session() as sess:
        queue, strings = make(), tf.constant(STRINGS)
        sess.run(queue.enqueue_many([strings]))
        assert sorted(sess.run(queue.dequeue_many(4)).tolist()) == sorted(STRINGS)
        sess.run(queue.enqueue([strings[0]]))
        assert sess.run(queue.dequeue()) == b"a\0"
        sess.run(queue.enqueue([strings[1]]))
        sess.run(queue.close())
        assert sess.run(queue.dequeue_up_to(3)).tolist() == [b"bb\0\0"]


def test_a_priority_queue_keeps_them_too():
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.PriorityQueue(9, [tf.string], [[]])
        sess.run(queue.enqueue_many([tf.constant([2, 1], tf.int64), tf.constant(STRINGS[:2])]))
        assert sess.run(queue.dequeue_many(2)[1]).tolist() == STRINGS[1::-1]
