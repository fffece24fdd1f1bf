"""A kernel that raises, at any place of a program and whatever it is.

An `Exception` is one of `tf.errors` then, which names the op and the user's line, and so is
`sys.exit`, which is the user's affair; what Python has for other ends (Ctrl-C) goes through as it
is. The session goes on, and a variable is as it was or as it should be, never in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.plugins import explosive
from tests.plugins.explosive import blast_op, lit

X = np.array([1.0, -2.0, 3.0, 4.0], np.float32)
Build = Callable[[tf.Tensor], Any]


class Own(Exception):
    """Nobody else's."""


class OwnEnd(BaseException):
    """Nobody else's, and no error."""


ERRORS: dict[type[BaseException], type[tf.errors.OpError] | None] = {
    ValueError: tf.errors.InvalidArgumentError,
    MemoryError: tf.errors.ResourceExhaustedError,
    StopIteration: tf.errors.InternalError,
    RecursionError: tf.errors.InternalError,
    Own: tf.errors.InternalError,
    KeyboardInterrupt: None,
    SystemExit: tf.errors.InternalError,
    GeneratorExit: None,
    OwnEnd: None,
}
"""What becomes of them; None for what stays as it is."""


def blast(x: Any) -> Any:
    return blast_op(x)


@tf.custom_gradient
def gradient_raises(x: Any) -> Any:
    return x * 2.0, blast


def in_function(x: Any) -> Any:
    @tf.python.framework.function.Defun(tf.float32)
    def called(y: Any) -> Any:
        return blast(y * 2.0) + 1.0

    return called(x)


def in_map(x: Any) -> Any:
    data = tf.data.Dataset.from_tensors(X).repeat().map(lambda y: blast(y * 2.0))
    return tf.data.make_one_shot_iterator(data).get_next() + x


PLACES: dict[str, Build] = {
    "first": lambda x: tf.nn.relu(blast(x) * 2.0 + 1.0),
    "last": lambda x: blast(tf.nn.relu(x * 2.0 + 1.0)),
    "between fused": lambda x: tf.exp(blast(tf.nn.relu(x * 2.0 + 1.0)) * 0.1 - 1.0),
    "body": lambda x: tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, blast(y * 2.0)), [0, x]
    )[1],
    "condition": lambda x: tf.while_loop(
        lambda y: tf.reduce_sum(blast(y)) < 50.0, lambda y: y * 2.0, [x]
    ),
    "branch": lambda x: tf.cond(
        tf.reduce_sum(x) > 0.0, lambda: blast(x * 2.0), lambda: x - 1.0
    ),
    "branch in body": lambda x: tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.cond(i < 2, lambda: y * 2.0, lambda: blast(y))), [0, x],
    )[1],
    "map_fn": lambda x: tf.map_fn(lambda y: blast(y * 2.0), x),
    "function": in_function,
    "gradient": lambda x: tf.gradients(tf.reduce_sum(gradient_raises(x) ** 2.0), x)[0],
    "gradient of a loop": lambda x: tf.gradients(
        tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, gradient_raises(y)), [0, x]
        )[1], x,
    )[0],
    "map": in_map,
    "summary": lambda x: (
        tf.cast(tf.strings.length(tf.summary.histogram("h", blast(x))), tf.float32) + x
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    explosive.install()
    with tf.Graph().as_default():
        yield
    explosive.uninstall()


def raised(run: Callable[[], Any], error: BaseException, calls: int = 0) -> None:
    """Runs what raises the error, and looks at what comes out."""
    wanted = ERRORS[type(error)]
    with lit(error, calls), pytest.raises(wanted or type(error)) as found:
        run()
    if wanted is None:
        assert found.value is error
    else:
        assert f"defined at {__file__}" in str(found.value), str(found.value)
        assert "boom" in str(found.value)


CASES = [
    *((device, place) for device in ("CPU", "ECHO") for place in PLACES),
    ("OPENCL", "between fused"), ("OPENCL", "body"),
    *(
        pytest.param("OPENCL", place, marks=pytest.mark.prove)
        for place in PLACES if place not in ("between fused", "body")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("device", "place"), CASES)
def test_at_any_place(device: str, place: str) -> None:
    """A step that computes, and writes two variables before and after."""
    x = tf.placeholder(tf.float32, [4])
    v = tf.get_variable("v", initializer=np.zeros(4, np.float32), use_resource=True)
    w = tf.get_variable("w", initializer=np.zeros(4, np.float32))
    before = tf.assign_add(v, tf.ones([4]))
    with tf.device(f"/device:{device}:0"), tf.control_dependencies([before]):
        y = tf.identity(PLACES[place](x), name="y")
    with tf.control_dependencies([y]):
        step = tf.group(tf.assign_add(w, tf.ones([4])), tf.assign_add(w, y - y))
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        want, _ = session.run([y, step], {x: X})
        steps, done = 1, 1
        for kind in ERRORS:
            raised(lambda: session.run([y, step], {x: X}), kind("boom"))
            steps += 1
            found = session.run(v)
            assert done <= found[0] <= steps and np.all(found == found[0])
            assert np.all(session.run(w) == done)
            got, _ = session.run([y, step], {x: X})
            np.testing.assert_array_equal(got, want)
            steps, done = int(found[0]) + 1, done + 1
            assert np.all(session.run(v) == steps) and np.all(session.run(w) == done)


@pytest.mark.parametrize("words", ["boom", ""])
def test_who_had_no_memory_is_said(words: str) -> None:
    y = blast(tf.placeholder(tf.float32, [4], name="x"))
    with tf.Session() as session, lit(MemoryError(words)):
        with pytest.raises(tf.errors.ResourceExhaustedError) as found:
            session.run(y, {"x:0": X})
    assert (words or "does not fit into the host's memory") in found.value.message
    assert "explosive.blast of plugin 'explosive' on /job:localhost" in found.value.message


@pytest.mark.parametrize("kind", ERRORS)
def test_in_the_threads_of_a_dataset(kind: type[BaseException]) -> None:
    """Whoever asks for the element gets it, and the others afterwards."""
    data = tf.data.Dataset.range(20).map(lambda i: blast(tf.cast(i, tf.float32)), 2).prefetch(2)
    following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as session:
        found: list[float] = []

        def all_elements() -> None:
            while True:
                found.append(float(session.run(following)))

        raised(all_elements, kind("boom"), calls=5)
        assert found == sorted(found) and len(found) <= 5
        while True:
            try:
                found.append(float(session.run(following)))
            except tf.errors.OutOfRangeError:
                break
            except (tf.errors.OpError, kind):
                continue  # of those that were ahead
        assert found == sorted(found) and found[-1] == 19.0


@pytest.mark.parametrize("kind", ERRORS)
def test_in_the_thread_of_a_queue_runner(kind: type[BaseException]) -> None:
    """The coordinator stops all threads, and `join` raises it."""
    queue = tf.FIFOQueue(2, [tf.float32], [[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(blast(tf.constant(1.0)))] * 2)
    item = queue.dequeue()
    coordinator = tf.train.Coordinator()
    with tf.Session() as session:

        def all_items() -> None:
            threads = runner.create_threads(session, coordinator, daemon=True, start=True)
            try:
                while not coordinator.should_stop():
                    session.run(item)
            except tf.errors.OutOfRangeError:
                pass  # the queue was closed
            finally:
                coordinator.request_stop()
            coordinator.join(threads)

        raised(all_items, kind("boom"), calls=5)
        assert session.run(blast(tf.constant(2.0))) == 2.0


class Mute(Exception):
    """Its own text cannot be asked for."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_words() -> None:
    """It is no reason to hear of another one."""
    made = blast(tf.placeholder_with_default(X, [4]))
    with tf.Session() as session, lit(Mute()):
        with pytest.raises(tf.errors.InternalError, match=r"raised Mute \[OPD-KERNEL-001\]"):
            session.run(made)
