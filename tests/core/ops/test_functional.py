"""Branches by number, loops over a range and remote calls, as nodes of GraphDefs have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.defined_function import Defun
from opdock.ops.composed.functional_control import remote_call


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def power(k: int) -> Any:
    return Defun(tf.float32, func_name=f"power_{k}")(lambda x: x ** (k + 1.0))


def case(number: Any, x: Any, count: int, op: str = "Case") -> tf.Tensor:
    branches = [power(k) for k in range(count)]
    (found,) = getattr(tf.raw_ops, op)(
        branch_index=number, input=[x], Tout=[tf.float32], branches=branches, output_shapes=[]
    )
    return found


def sums(start: Any, limit: Any, delta: Any) -> tf.Tensor:
    add = Defun(tf.int32, tf.float32, func_name="add")(lambda i, x: x + tf.cast(i, tf.float32))
    (found,) = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[0.0], body=add)
    return found


@pytest.mark.parametrize("op", ["Case", "StatelessCase"])
def test_a_number_chooses_and_the_last_branch_is_for_all_others(op: str) -> None:
    number = tf.placeholder(tf.int32, [])
    x = tf.constant([2.0, 3.0])
    y = case(number, x, 5, op)
    (grad,) = tf.gradients(y, x)
    with tf.Session() as session:
        for given, taken in ((-1, 4), (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (9, 4)):
            values, grads = session.run([y, grad], {number: given})
            base = np.array([2.0, 3.0], np.float32)
            np.testing.assert_allclose(values, base ** (taken + 1), rtol=1e-6)
            np.testing.assert_allclose(grads, (taken + 1) * base**taken, rtol=1e-6)


def test_one_branch_is_always_taken() -> None:
    with tf.Session() as session:
        assert session.run(case(7, 3.0, 1)) == 3.0


def test_only_the_branch_that_is_taken_runs() -> None:
    seen: list[int] = []

    def noting(k: int) -> Any:
        def note(x: Any) -> Any:
            return tf.py_func(lambda v: seen.append(k) or v, [x], tf.float32)

        return Defun(tf.float32, func_name=f"note_{k}")(note)

    (y,) = tf.raw_ops.Case(
        branch_index=2, input=[1.0], Tout=[tf.float32], branches=[noting(k) for k in range(4)],
        output_shapes=[],
    )  # fmt: skip
    with tf.Session() as session:
        session.run(y)
    assert seen == [2]


def test_a_range_is_gone_through_in_steps() -> None:
    start, limit, delta = (tf.placeholder(tf.int32, []) for _ in range(3))
    total = sums(start, limit, delta)
    with tf.Session() as session:
        for values, expected in (((1, 5, 1), 10), ((5, 1, -2), 8), ((3, 3, 0), 0), ((0, 7, 3), 9)):
            found = session.run(total, dict(zip((start, limit, delta), values, strict=True)))
            assert found == expected
        for values in ((1, 5, -1), (5, 1, 1), (1, 2, 0)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid start/limit/delta"):
                session.run(total, dict(zip((start, limit, delta), values, strict=True)))


def test_a_remote_call_is_a_call() -> None:
    with tf.Session() as session:
        (y,) = remote_call([3.0], "/job:localhost/replica:0/task:0/cpu:0", power(1), [tf.float32])
        assert session.run(y) == 9.0


def test_they_come_out_of_a_file_as_they_went_in() -> None:
    number = tf.placeholder(tf.int32, [], name="number")
    case(number, tf.constant(2.0, name="x"), 3)
    sums(0, number, 1)
    written = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph:
        y, total = tf.import_graph_def(written, return_elements=["Case:0", "For:0"], name="")
        (grad,) = tf.gradients(y, graph.get_tensor_by_name("x:0"))
        with tf.Session() as session:
            assert session.run([y, grad, total], {"number:0": 2}) == [8.0, 12.0, 1.0]


def test_functions_that_are_not_there_are_named() -> None:
    y = tf.raw_ops.Case(
        branch_index=0, input=[1.0], Tout=[tf.float32], branches=[power(0), "gone"],
        output_shapes=[],
    )  # fmt: skip
    told = re.escape("Function gone is not defined.")
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match=told):
        session.run(y)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="same length"):
        tf.raw_ops.Case(
            branch_index=0, input=[1.0], Tout=[tf.float32], branches=[power(0)],
            output_shapes=[[], []],
        )  # fmt: skip


def test_branches_may_be_what_a_function_is_for_some_types() -> None:
    with tf.Graph().as_default():
        kind = tf.TensorSpec([], tf.float32)
        branches = [
            tf.function(lambda x, by=by: x * by).get_concrete_function(kind) for by in (2, 3)
        ]
        made = tf.raw_ops.Case(
            branch_index=tf.constant(1), input=[tf.constant(5.0)], Tout=[tf.float32],
            branches=branches,
        )  # fmt: skip
        with tf.Session() as session:
            assert session.run(made) == [15.0]
