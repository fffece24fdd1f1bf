"""Level L4: small TF1 programs, each compared step by step with its NumPy model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.harness.case import Unit, check, single
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.sample import Sampler
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config
from opdock.testing.levels.models import AdamMlp, ConvNet, EmbeddingModel, LinearRegression

__all__ = ["program_units"]

Array = npt.NDArray[Any]
Program = Callable[[DeviceUnderTest], None]

_SINCE = (1, 0)
_RTOL, _ATOL = 2e-4, 2e-5


def program_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per program."""
    for name, program in _PROGRAMS.items():
        if not only or name in only:
            yield single("L4", name, lambda program=program: program(dut), _SINCE)  # type: ignore[misc]


def _session(graph: Any) -> Any:
    return tf.Session(graph=graph, config=session_config(soft=True, optimize=True))


def _close(got: Any, wanted: Any, what: str) -> None:
    a, b = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    check(a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}")
    far = np.abs(a - b) > _ATOL + _RTOL * np.abs(b)
    check(not far.any(), f"{what}: got {a[far][:3]}, expected {b[far][:3]} ({far.sum()} differ)")


def _floats(*values: float) -> Array:
    return np.array(values, np.float32)


def _equal(got: Any, wanted: Any, what: str) -> None:
    check(np.array_equal(got, wanted), f"{what}: got {got!r}, expected {wanted!r}")


# ---------------------------------------------------------------- training
def _linear_regression(dut: DeviceUnderTest) -> None:
    rng = Sampler(np.float32, "linear regression")
    x = rng.uniform((20, 3))
    y = x @ np.array([[1.5], [-2.0], [0.5]], np.float32) + np.float32(0.25)
    model = LinearRegression(3, 0.1)
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        xs, ys = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
        w = tf.Variable(tf.zeros([3, 1]), name="w")
        b = tf.Variable(tf.zeros([1]), name="b")
        loss = tf.reduce_mean(tf.square(tf.matmul(xs, w) + b - ys))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with _session(graph) as session:
            session.run(tf.global_variables_initializer())
            for step in range(30):
                got, _ = session.run([loss, train], {xs: x, ys: y})
                _close(got, model.step(x, y), f"loss at step {step}")
            _close(session.run(w), model.w, "w")
            _close(session.run(b), model.b, "b")


def _mlp_adam(dut: DeviceUnderTest) -> None:
    rng = Sampler(np.float32, "mlp")
    start = {
        "w1": rng.normal((4, 8), 0.5), "b1": np.zeros(8, np.float32),
        "w2": rng.normal((8, 3), 0.5), "b2": np.zeros(3, np.float32),
    }  # fmt: skip
    x, labels = rng.normal((16, 4)), rng.indices((16,), 3)
    model = AdamMlp(start, 0.05)
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        xs = tf.placeholder(tf.float32, [None, 4])
        ys = tf.placeholder(tf.int32, [None])
        p = {k: tf.get_variable(k, initializer=tf.constant(v)) for k, v in start.items()}
        hidden = tf.tanh(tf.matmul(xs, p["w1"]) + p["b1"])
        logits = tf.matmul(hidden, p["w2"]) + p["b2"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ys, logits=logits)
        loss = tf.reduce_mean(losses)
        step_number = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step_number)
        with _session(graph) as session:
            session.run(tf.global_variables_initializer())
            for step in range(15):
                got, _ = session.run([loss, train], {xs: x, ys: labels})
                _close(got, model.step(x, labels), f"loss at step {step}")
            for name, variable in p.items():
                _close(session.run(variable), model.p[name], name)
            _equal(session.run(step_number), 15, "global step")


def _conv_net(dut: DeviceUnderTest) -> None:
    rng = Sampler(np.float32, "conv net")
    start = {
        "filter": rng.normal((3, 3, 2, 4), 0.4), "bias": rng.normal((4,), 0.1),
        "dense": rng.normal((36, 3), 0.3),
    }  # fmt: skip
    images, labels = rng.normal((5, 6, 6, 2)), rng.indices((5,), 3)
    model = ConvNet(start, 0.05, 0.9)
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        xs = tf.placeholder(tf.float32, [None, 6, 6, 2])
        ys = tf.placeholder(tf.int32, [None])
        p = {k: tf.get_variable(k, initializer=tf.constant(v)) for k, v in start.items()}
        net = tf.nn.conv2d(xs, p["filter"], strides=[1, 1, 1, 1], padding="SAME")
        net = tf.nn.relu(tf.nn.bias_add(net, p["bias"]))
        net = tf.nn.max_pool(net, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        logits = tf.matmul(tf.reshape(net, [-1, 36]), p["dense"])
        labels_one_hot = tf.one_hot(ys, 3)
        loss = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(labels=labels_one_hot, logits=logits)
        )
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        with _session(graph) as session:
            session.run(tf.global_variables_initializer())
            for step in range(6):
                got, _ = session.run([loss, train], {xs: images, ys: labels})
                _close(got, model.step(images, labels), f"loss at step {step}")
            for name, variable in p.items():
                _close(session.run(variable), model.p[name], name)


def _embedding(dut: DeviceUnderTest) -> None:
    rng = Sampler(np.float32, "embedding")
    table, target = rng.normal((9, 4)), rng.normal((3, 4))
    rows = np.array([[1, 1, 4], [0, 8, 1], [4, 2, 2]], np.int32)
    model = EmbeddingModel(table, 0.5, 0.1)
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        ids = tf.placeholder(tf.int32, [None, None])
        variable = tf.Variable(table, name="table")
        picked = tf.reduce_mean(tf.nn.embedding_lookup(variable, ids), axis=1)
        loss = tf.reduce_mean(tf.square(picked - target))
        optimizer = tf.train.AdagradOptimizer(0.5, initial_accumulator_value=0.1)
        (gradient, _), *_ = pairs = optimizer.compute_gradients(loss)
        check(isinstance(gradient, tf.IndexedSlices), f"the gradient of a lookup is {gradient!r}")
        train = optimizer.apply_gradients(pairs)
        with _session(graph) as session:
            session.run(tf.global_variables_initializer())
            for step in range(8):
                got, _ = session.run([loss, train], {ids: rows})
                _close(got, model.step(rows, target), f"loss at step {step}")
            _close(session.run(variable), model.table, "table")


# ---------------------------------------------------------------- control flow and state
def _control_flow(dut: DeviceUnderTest) -> None:
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        x = tf.placeholder(tf.float32, [])
        branch = tf.cond(x > 0.0, lambda: tf.sqrt(x), lambda: -2.0 * x)
        n = tf.placeholder(tf.int32, [])
        _, total = tf.while_loop(
            lambda i, _: i < n,
            lambda i, total: (i + 1, total + tf.cast(i, tf.float32) * x),
            (tf.constant(0), tf.constant(0.0)),
        )

        def collatz(number: Any, steps: Any) -> tuple[Any, Any]:
            odd = tf.equal(number % 2, 1)
            return tf.cond(odd, lambda: 3 * number + 1, lambda: number // 2), steps + 1

        _, steps = tf.while_loop(lambda number, _: number > 1, collatz, (n, tf.constant(0)))
        _, power = tf.while_loop(
            lambda i, _: i < n, lambda i, p: (i + 1, p * x), (tf.constant(0), tf.constant(1.0))
        )
        slopes = [tf.gradients(y, x)[0] for y in (branch, power)]
        with _session(graph) as session:
            for value in (4.0, -3.0, 0.25):
                wanted = np.sqrt(value) if value > 0 else -2.0 * value
                _close(session.run(branch, {x: value}), wanted, f"cond at {value}")
                slope = session.run(slopes[0], {x: value})
                _close(slope, 0.5 / np.sqrt(value) if value > 0 else -2.0, f"its slope at {value}")
            for count in (1, 2, 6):
                slope = session.run(slopes[1], {x: 1.5, n: count})
                _close(slope, count * 1.5 ** (count - 1), f"slope of a loop of {count}")
            for count in (0, 1, 7):
                wanted = sum(i * 0.5 for i in range(count))
                got = session.run(total, {x: 0.5, n: count})
                _close(got, wanted, f"while_loop of {count} iterations")
            _equal(session.run(steps, {n: 27}), 111, "steps from 27 to 1")


def _tensor_array(dut: DeviceUnderTest) -> None:
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        x = tf.placeholder(tf.float32, [None, 3])
        rows = tf.shape(x)[0]
        source = tf.TensorArray(tf.float32, rows).unstack(x)
        sums = tf.TensorArray(tf.float32, rows)

        def step(i: Any, total: Any, out: Any) -> tuple[Any, Any, Any]:
            total = total + source.read(i) ** 2
            return i + 1, total, out.write(i, total)

        start = (tf.constant(0), tf.zeros([3]), sums)
        _, _, sums = tf.while_loop(lambda i, *_: i < rows, step, start)
        stacked = sums.stack()
        (slope,) = tf.gradients(stacked, x)
        shifted = x[0, 0] + tf.reshape(tf.range(4.0), [4, 1])
        fixed = tf.TensorArray(tf.float32, 4, clear_after_read=False)
        fixed = fixed.scatter([2, 0, 3, 1], shifted)
        picked, joined = fixed.gather([3, 3, 0]), fixed.concat()
        with _session(graph) as session:
            for count in (4, 1):
                data = np.linspace(-1, 2, 3 * count, dtype=np.float32).reshape(count, 3)
                got, d = session.run([stacked, slope], {x: data})
                _close(got, np.cumsum(data**2, axis=0), f"running sums of {count} rows")
                # Row i enters the sums of itself and of every later row.
                later = np.arange(count, 0, -1)[:, None]
                _close(d, 2 * data * later, f"their slope for {count} rows")
            first = data[0, 0]
            a, b = session.run([picked, joined], {x: data})
            _close(a, first + np.array([[2], [2], [1]]), "gather")
            _close(b, first + np.array([1, 3, 0, 2]), "concat")


def _variables(dut: DeviceUnderTest) -> None:
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        v = tf.Variable([1.0, 2.0, 3.0], name="v")
        count = tf.Variable(0, trainable=False, name="count")
        add, sub = tf.assign_add(v, [1.0, 1.0, 1.0]), tf.assign_sub(v, [0.5, 0.5, 0.5])
        double = tf.assign(v, 2.0 * v)
        bump = tf.assign_add(count, 1)
        with tf.control_dependencies([bump]):
            after = tf.identity(count.read_value())
        init = tf.global_variables_initializer()
        with _session(graph) as session, _session(graph) as other:
            try:
                session.run(v)
            except tf.errors.FailedPreconditionError as error:
                check("v" in str(error), f"the error does not name the variable: {error}")
            else:
                check(False, "an uninitialized variable was read")
            session.run(init)
            other.run(init)
            session.run(add)
            _equal(session.run(v), _floats(2, 3, 4), "after assign_add")
            session.run(sub)
            _equal(session.run(v), _floats(1.5, 2.5, 3.5), "after assign_sub")
            kept = session.run(v)
            session.run(double)
            _equal(session.run(v), _floats(3, 5, 7), "after assign")
            _equal(kept, _floats(1.5, 2.5, 3.5), "a value fetched before the assign")
            _equal(other.run(v), _floats(1, 2, 3), "the same variable in another session")
            for step in range(1, 4):
                _equal(session.run(after), step, "a read after a control dependency")
            session.run(init)
            _equal(session.run(v), _floats(1, 2, 3), "after initializing again")


def _changing_batch(dut: DeviceUnderTest) -> None:
    rng = Sampler(np.float32, "changing batch")
    weights = rng.normal((3, 2))
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.reduce_sum(tf.nn.relu(tf.matmul(x, weights)), axis=0)
        rows = tf.shape(x)[0]
        with _session(graph) as session:
            for size in (1, 5, 0, 17, 2, 3, 4, 6, 7, 8, 9, 10, 5):
                data = rng.normal((size, 3))
                got, count = session.run([y, rows], {x: data})
                _close(got, np.maximum(data @ weights, 0).sum(axis=0), f"batch of {size}")
                _equal(count, size, "the shape")


_PROGRAMS: dict[str, Program] = {
    "linear-regression": _linear_regression,
    "mlp-adam": _mlp_adam,
    "conv-net": _conv_net,
    "embedding-adagrad": _embedding,
    "control-flow": _control_flow,
    "tensor-array": _tensor_array,
    "variables": _variables,
    "changing-batch": _changing_batch,
}
