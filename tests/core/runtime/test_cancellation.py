"""Steps that are cut short: by closing the session, by their time, by Ctrl-C."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

import opdock as tf
from opdock.runtime import handing


def endless(turning: threading.Event):
    """A loop that never ends; `turning` is set when it has begun."""

    def body(i):
        tell = tf.py_func(lambda n: turning.set() or n, [i], tf.int64)
        return tf.reshape(tell, []) + 1

    return tf.while_loop(lambda i: i >= 0, body, [tf.constant(0, tf.int64)])


class Running:
    """A step in a thread of its own, and how it ended."""

    def __init__(self, sess, fetch):
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(sess, fetch), daemon=True)
        self.thread.start()

    def run(self, sess, fetch):
        try:
            sess.run(fetch)
        except Exception as e:
            self.error = e


def test_closing_a_session_ends_an_endless_loop():
    turning = threading.Event()
    with tf.Graph().as_default():
        sess, fetch = tf.Session(), endless(turning)
        step = Running(sess, fetch)
        turning.wait()
        sess.close()
        step.thread.join()
    assert isinstance(step.error, tf.errors.CancelledError)
    assert "closed" in str(step.error)


@pytest.mark.parametrize("whole_session", [False, True])
def test_a_loop_ends_with_its_time(whole_session):
    turning = threading.Event()
    config = tf.ConfigProto(operation_timeout_in_ms=20) if whole_session else None
    options = None if whole_session else tf.RunOptions(timeout_in_ms=20)
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        fetch, other = endless(turning), tf.constant(3) + 4
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(fetch, options=options)
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()  # it would not end if the loop went on
        if not whole_session:
            assert sess.run(other) == 7


def told(event: threading.Event, element):
    """An element, after `event` was set."""
    with tf.control_dependencies([tf.py_func(lambda: event.set() or 0, [], tf.int64)]):
        return tf.identity(element)


def endless_filter(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60).filter(lambda n: told(turning, n) < 0)
    return numbers.make_one_shot_iterator().get_next()


def endless_prefetch(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60).filter(lambda n: told(turning, n) < 0).prefetch(2)
    return numbers.make_one_shot_iterator().get_next()


def endless_reduce(turning: threading.Event):
    numbers = tf.data.Dataset.range(1 << 60)
    return numbers.reduce(np.int64(0), lambda total, n: total + told(turning, n))


ENDLESS = (endless, endless_filter, endless_prefetch, endless_reduce)


@pytest.mark.parametrize("made", ENDLESS)
def test_closing_a_session_ends_all_steps_of_it(made):
    turning = threading.Event()
    with tf.Graph().as_default():
        sess, fetch = tf.Session(), made(turning)
        steps = [Running(sess, fetch) for _ in range(2)]
        turning.wait()
        sess.close()
        for step in steps:
            step.thread.join()
    assert all(isinstance(s.error, (tf.errors.CancelledError, RuntimeError)) for s in steps)


@pytest.mark.parametrize("made", ENDLESS)
def test_time_ends_a_step_whatever_it_does(made):
    turning = threading.Event()
    with tf.Graph().as_default(), tf.Session() as sess:
        fetch = made(turning)
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(fetch, options=tf.RunOptions(timeout_in_ms=20))
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()  # it would not end if the step went on


class Function:
    """A function of the user's that is told when to return, and another that comes after it."""

    def __init__(self):
        self.begun, self.over, self.later = threading.Event(), threading.Event(), 0
        first = tf.py_func(self.first, [], tf.int64)
        self.fetch = tf.py_func(self.second, [first], tf.int64)

    def first(self):
        self.begun.set()
        self.over.wait()
        return 1

    def second(self, n):
        self.later += 1
        return n


def test_nothing_comes_after_what_was_running_when_the_session_was_closed():
    with tf.Graph().as_default():
        sess, function = tf.Session(), Function()
        step = Running(sess, function.fetch)
        function.begun.wait()
        sess.close()
        function.over.set()
        step.thread.join()
    assert isinstance(step.error, tf.errors.CancelledError) and function.later == 0
    assert "PyFunc" in str(step.error)


def test_nothing_comes_after_what_was_running_when_time_was_over():
    with tf.Graph().as_default(), tf.Session() as sess:
        function = Function()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(function.fetch, options=tf.RunOptions(timeout_in_ms=20))
        function.over.set()
        for thread in threading.enumerate():
            if thread.name == "opdock-step":
                thread.join()
        assert function.later == 0
        function.begun.clear()
        assert sess.run(function.fetch) == 1 and function.later == 1


class Endless:
    """A function of the user's that returns when the test says so, and where a step calls it."""

    def __init__(self, busy):
        self.begun, self.over = threading.Event(), threading.Event()
        self.returned = threading.Event()
        self.busy = busy

    def __call__(self, n=0):
        self.begun.set()
        while self.busy and not self.over.is_set():
            pass
        self.over.wait()
        self.returned.set()
        return np.int64(n)

    def elements(self):
        yield self()

    def call(self, *inputs):
        result = tf.py_func(self, list(inputs), tf.int64)
        result.set_shape([])
        return result

    def alone(self):
        return self.call()

    def several(self):
        return [self.call(), self.call()]

    def beside_a_queue(self):
        """It is handed over, as what it waits for may come later in the step."""
        shared = tf.FIFOQueue(2, tf.int64, shapes=[])
        return [self.call(), shared.enqueue(1), shared.dequeue()]

    def loop(self):
        return tf.while_loop(lambda n: n < 9, lambda n: n + self.call(n), [np.int64(1)])

    def generator(self):
        return first(tf.data.Dataset.from_generator(self.elements, tf.int64))

    def generators(self):
        many = tf.data.Dataset.range(8).interleave(
            lambda _: tf.data.Dataset.from_generator(self.elements, tf.int64), 4,
            num_parallel_calls=4,
        )  # fmt: skip
        return first(many)

    def map(self):
        return first(tf.data.Dataset.range(9).map(self.call))

    def parallel_map(self):
        return first(tf.data.Dataset.range(9).map(self.call, num_parallel_calls=4).prefetch(2))

    def filter(self):
        return first(tf.data.Dataset.range(9).filter(lambda n: self.call(n) > 0))

    def reduce(self):
        return tf.data.Dataset.range(9).reduce(np.int64(0), lambda total, n: total + self.call(n))


def first(dataset):
    return dataset.make_one_shot_iterator().get_next()


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize(
    "place",
    ["alone", "several", "beside_a_queue", "loop", "generator", "generators", "map",
     "parallel_map", "filter", "reduce"],
)  # fmt: skip
def test_closing_a_session_leaves_an_endless_function_behind(place, busy):
    function = Endless(busy)
    with tf.Graph().as_default():
        sess = tf.Session()
        step = Running(sess, getattr(function, place)())
        function.begun.wait()
        try:
            sess.close()
            step.thread.join()
            assert isinstance(step.error, tf.errors.CancelledError)
            # Who waits for another thread of an iterator may hear of the end of that first.
            assert "was closed" in str(step.error) and step.error.op is not None
            assert not function.returned.is_set()
        finally:
            function.over.set()
        function.returned.wait()


def test_a_session_of_a_server_leaves_an_endless_function_behind():
    function = Endless(False)
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default():
        sess = tf.Session(server.target)
        step = Running(sess, function.alone())
        function.begun.wait()
        try:
            sess.close()
            step.thread.join()
            assert isinstance(step.error, tf.errors.CancelledError)
        finally:
            function.over.set()


def test_what_is_left_behind_holds_nothing_of_the_session():
    function = Endless(False)
    given, kept = [], weakref.ref(function)

    def call(array, function=function):
        given.append(weakref.ref(array))
        return function()

    with tf.Graph().as_default():
        sess = tf.Session()
        step = Running(sess, tf.py_func(call, [tf.ones([3])], tf.int64))
        function.begun.wait()
        sess.close()
        step.thread.join()
        session = weakref.ref(sess)
        del sess, step, call
    gc.collect()
    assert session() is None and given[0]() is not None
    over, returned = function.over, function.returned
    del function
    over.set()
    returned.wait()
    while kept() is not None:  # the thread lets go of it a moment later
        gc.collect()
    assert given[0]() is None


def test_a_generator_that_was_left_behind_makes_one_element_at_a_time():
    """Those who share a server's iterator wait for an element that one of them has left."""
    begun, over, made = threading.Event(), threading.Event(), []

    def elements():
        for i in range(3):
            if not i:
                begun.set()
                over.wait()
            made.append(i)
            yield i

    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as other:
        numbers = tf.data.Dataset.from_generator(elements, tf.int64)
        iterator = numbers.make_initializable_iterator(shared_name="numbers")
        other.run(iterator.initializer)
        sess = tf.Session(server.target)
        fetch = iterator.get_next()
        step = Running(sess, fetch)
        begun.wait()
        sess.close()
        step.thread.join()
        assert isinstance(step.error, tf.errors.CancelledError)
        threading.Timer(0, over.set).start()
        assert other.run(fetch) == 1 and made == [0, 1]


def test_an_interrupt_reaches_the_function_that_was_handed_over(monkeypatch):
    monkeypatch.setattr(handing, "others", lambda: True)
    begun, ended = threading.Event(), threading.Event()

    def busy():
        begun.set()
        try:
            while True:
                pass
        except KeyboardInterrupt:
            ended.set()
            raise

    def interrupt():
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with tf.Graph().as_default(), tf.Session() as sess:
        fetch, other = tf.py_func(busy, [], tf.int64), tf.py_func(lambda: 3, [], tf.int64)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            sess.run(fetch)
        thread.join()
        ended.wait()
        assert sess.run(other) == 3


def test_long_lines_look_whether_they_are_to_end():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2048, 2048])
        small = tf.placeholder(tf.float32, [8, 8])
        y, z = x, small
        for _ in range(6):
            y, z = tf.matmul(y, x), tf.matmul(z, small)
        for fetch, looks in ((y, 5), (z, 0)):
            feeds = {x: np.zeros((2048, 2048)), small: np.zeros((8, 8))}
            assert len(sess._program(fetch, feeds).bound.compiled.pauses) == looks


def test_a_loop_in_a_session_that_lives_is_left_alone():
    with tf.Graph().as_default(), tf.Session() as sess:
        total = tf.while_loop(lambda i: i < 1000, lambda i: i + 1, [tf.constant(0)])
        assert sess.run(total) == 1000
        other = tf.Session()
        other.close()
        assert sess.run(total) == 1000


def test_an_interrupted_step_leaves_a_usable_session():
    interrupts = [True]

    def maybe(x):
        if interrupts:
            interrupts.clear()
            signal.raise_signal(signal.SIGINT)
        return x

    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(np.ones(8, np.float32))
        sess.run(v.initializer)
        turned = tf.reshape(tf.py_func(maybe, [v * 2.0], tf.float32), [8])
        step = v.assign(turned + tf.exp(v))
        with pytest.raises(KeyboardInterrupt):
            sess.run(step)
        np.testing.assert_array_equal(sess.run(v), np.ones(8))
        np.testing.assert_allclose(sess.run(step), np.full(8, 2 + np.e), rtol=1e-6)


def test_who_was_interrupted_while_waiting_gets_nothing():
    with tf.Graph().as_default(), tf.Session() as sess:
        queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
        put, take = queue.enqueue(7), queue.dequeue()
        for step in (put, take):
            sess.run(step)  # what is interrupted below is no compiler
        ready = threading.Event()
        main, waiting = threading.main_thread().ident, threading.Condition.wait.__code__

        def interrupt():
            ready.wait()
            while sys._current_frames()[main].f_code is not waiting:
                pass
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            ready.set()
            sess.run(take)
        thread.join()
        sess.run(put)
        assert sess.run(queue.size()) == 1
        assert sess.run(take) == 7
