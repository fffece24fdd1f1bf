"""Level L0, of devices that compute when their kernels have returned already: queues and streams.

A session asks for nothing but order: what is queued later sees what was queued before, a download
waits for its values, and what went wrong is raised by who waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.testing.harness.case import Failure, Skip, check, unchecked
from opdock.testing.harness.claims import claims
from opdock.testing.harness.namespace import tf
from opdock.testing.levels.device import DeviceUnderTest

__all__ = ["QUEUE_TESTS"]

Array = npt.NDArray[Any]

_FUNCTIONS: Final[dict[str, Callable[..., Array]]] = {
    "AddV2": np.add, "Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Neg": np.negative,
    "Square": np.square, "Sqrt": np.sqrt, "Abs": np.abs,
}  # fmt: skip
"""Ops that most devices have one of, with what they compute."""

Inputs = dict[str, Array]

_FAILING: Final[dict[tuple[str, str], tuple[Inputs, Inputs, dict[str, Any]]]] = {
    ("CheckNumerics", "float32"): (
        {"tensor": np.array([1, 2], np.float32)}, {"tensor": np.array([1, np.nan], np.float32)},
        {"message": "wrong"},
    ),
    ("FloorDiv", "int32"): (
        {"x": np.array([6, 7], np.int32), "y": np.array([2, 1], np.int32)},
        {"x": np.array([6, 7], np.int32), "y": np.array([2, 0], np.int32)}, {},
    ),
    ("Cholesky", "float32"): (
        {"input": np.eye(3, dtype=np.float32)}, {"input": -np.eye(3, dtype=np.float32)}, {},
    ),
}  # fmt: skip
"""(op, element type) -> inputs of which it computes, inputs of which it fails, attributes."""


def _function(dut: DeviceUnderTest) -> tuple[Callable[..., Any], Callable[..., Array]]:
    """An op that the device has, as a function of one tensor and as one of an array."""
    claimed = {c.op for c in claims(dut, frozenset(_FUNCTIONS))[0] if c.dtype == "float32"}
    op = next((name for name in _FUNCTIONS if name in claimed), None)
    if op is None:
        raise Skip("unsupported", f"the device has none of {', '.join(_FUNCTIONS)} in float32")
    make, model = getattr(tf.raw_ops, op), _FUNCTIONS[op]
    if model.nin == 2:  # type: ignore[attr-defined]
        return lambda x: make(x=x, y=x), lambda x: model(x, x)
    return lambda x: make(x=x), model


def _session(graph: Any) -> Any:
    """A session that leaves every op to its kernel, and asks for them one by one."""
    config = tf.ConfigProto(allow_soft_placement=True)
    config.graph_options.optimizer_options.opt_level = -1
    return tf.Session(graph=graph, config=config)


def _arrays(seed: int, count: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.0, (128, 128)).astype(np.float32) for _ in range(count)]


def _in_flight(dut: DeviceUnderTest) -> None:
    """Results that are not ready when their kernels return are right when somebody looks."""
    make, model = _function(dut)
    with unchecked(), tf.Graph().as_default() as graph:
        feeds = [tf.placeholder(tf.float32, [128, 128]) for _ in range(8)]
        with tf.device(dut.scope):
            results = [_repeated(make, x, 1 + i % 4) for i, x in enumerate(feeds)]
            variables = [tf.Variable(tf.zeros([128, 128])) for _ in feeds]
            writes = [v.assign(make(x)).op for v, x in zip(variables, feeds, strict=True)]
        with _session(graph) as session:
            session.run([v.initializer for v in variables])
            for turn in range(3):
                given = _arrays(turn, len(feeds))
                wanted = [_repeated(model, a, 1 + i % 4) for i, a in enumerate(given)]
                found = session.run(results, dict(zip(feeds, given, strict=True)))
                _equal(found, wanted, "results that are fetched")
            # Nobody waits for these, so what they were fed is free while they are still queued.
            given = _arrays(7, len(feeds))
            for write, x, array in zip(writes, feeds, given, strict=True):
                session.run(write, {x: array})
            _equal(session.run(variables), [model(a) for a in given], "variables that were written")


def _repeated(function: Callable[[Any], Any], value: Any, times: int) -> Any:
    for _ in range(times):
        value = function(value)
    return value


def _equal(found: list[Array], wanted: list[Array], what: str) -> None:
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        far = ~np.isclose(a, b, rtol=1e-4, atol=1e-6)
        check(not far.any(), f"{what}: {far.sum()} of {a.size} elements of number {i} are wrong")


def _odd_feeds(dut: DeviceUnderTest) -> None:
    """What a program may be fed: views, other byte orders, arrays that change afterwards."""
    make, model = _function(dut)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32)
        with tf.device(dut.scope):
            y = make(x)
        with unchecked(), _session(graph) as session:
            for what, array in _odd():
                wanted = model(array.astype(np.float32))
                found = session.run(y, {x: array})
                array.flags.writeable = True
                array[...] = 0
                check(found.shape == wanted.shape, f"{what}: got {found.shape}, not {wanted.shape}")
                _equal([found], [wanted], what)


def _odd() -> Iterator[tuple[str, Array]]:
    whole = np.linspace(1, 2, 48, dtype=np.float32).reshape(6, 8)
    yield "the other byte order", whole.astype(whole.dtype.newbyteorder())
    yield "a view in the other byte order", whole.astype(whole.dtype.newbyteorder())[::2, 1:]
    yield "a view with gaps", whole.copy()[::2, 1::3]
    yield "a transposed view", whole.copy().T
    yield "no elements", whole.copy()[:, :0]
    yield "no dimensions", np.array(1.5, np.float32)
    frozen = whole.copy()
    frozen.flags.writeable = False
    yield "a read-only array", frozen


def _late_errors(dut: DeviceUnderTest) -> None:
    """A kernel that fails after it has returned: somebody is told, and the device lives on.

    With the checks on, the error names the op that failed.
    """
    failing = [key for key in _FAILING if key in {(c.op, c.dtype) for c in _claims(dut)}]
    if not failing:
        told = ", ".join(f"{op} of {dtype}" for op, dtype in _FAILING)
        raise Skip("unsupported", f"the device has no op that fails by values: none of {told}")
    for op, dtype in failing:
        good, bad, attrs = _FAILING[op, dtype]
        with tf.Graph().as_default() as graph:
            fed = {k: tf.placeholder(dtypes.as_dtype(dtype), v.shape) for k, v in good.items()}
            with tf.device(dut.scope):
                first = getattr(tf.raw_ops, op)(**fed, **attrs, name="the_op_that_fails")
                last = tf.identity(first) + first
            feeds = [{fed[k]: v for k, v in values.items()} for values in (good, bad)]
            with _session(graph) as session:
                message = _failure(session, last, feeds, op)
                wanted = "the_op_that_fails" in message
                check(wanted, f"{op}: the error does not name the op that failed: {message}")
            with unchecked(), _session(graph) as session:
                _failure(session, last, feeds, op)


def _claims(dut: DeviceUnderTest) -> list[Any]:
    return claims(dut, frozenset(op for op, _ in _FAILING))[0]


def _failure(session: Any, tensor: Any, feeds: list[dict[Any, Array]], op: str) -> str:
    """What a session says of bad values, between two steps with good ones that must agree."""
    good, bad = feeds
    before = session.run(tensor, good)
    try:
        session.run(tensor, bad)
    except errors.OpError as error:
        message = str(error)
    else:
        raise Failure(f"{op} of values that it does not take raised nothing")
    check(np.array_equal(session.run(tensor, good), before), f"after {op} failed, others are wrong")
    return message


QUEUE_TESTS: Final[dict[str, Callable[[DeviceUnderTest], None]]] = {
    "results-in-flight": _in_flight,
    "odd-feeds": _odd_feeds,
    "late-errors": _late_errors,
}
