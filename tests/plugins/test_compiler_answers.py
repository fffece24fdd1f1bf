"""Compilers and executables that give nonsense: the error names them, their backend and device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import Refusal
from opdock.plugins.manager import get_manager
from opdock.testing.harness import trial
from tests.plugins import evasive

COMPILER = (
    "compiler tests.plugins.evasive.compile_segment of backend 'evasive' (no distribution) on "
    "/job:localhost/replica:0/task:0/device:EVASIVE:0 "
)
EXECUTABLE = f"the executable of {COMPILER}"
PAIR = "expected a pair of results (1) and new values of variables (1)"


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    with tf.Graph().as_default():
        yield
    evasive.uninstall()


def step(answer: Any) -> Any:
    """The results of a step that updates a variable, or the error that it raises."""
    # What makes the variable and reads it runs op by op.
    asked = lambda s: answer(s) if any(n.op == "Tanh" for n in s.nodes) else Refusal("no tanh")
    evasive.install(asked)
    with tf.device("/device:EVASIVE:0"):
        x = tf.placeholder(tf.float32, [3, 2], name="x")
        v = tf.Variable(np.ones([3, 2], np.float32), name="v")
        y = tf.tanh(x * v, name="y")
        grown = v.assign_add(y)
    with tf.Session() as sess:
        sess.run(v.initializer)
        try:
            sess.run([y, grown.op], {x: np.ones([3, 2])})
        except tf.errors.OpError as e:
            return e
        return sess.run(v)


def refused(nodes: Any) -> Any:
    return lambda segment: Refusal(nodes=nodes)


def raises(error: Exception) -> Any:
    def compile_segment(segment: Any) -> Any:
        raise error

    return compile_segment


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda segment: None, "returned None, expected an executable or a Refusal"),
        (lambda segment: 7, "returned 7, expected an executable or a Refusal"),
        (raises(KeyError("slot")), "raised KeyError: 'slot'"),
        (refused({"a": "b"}), "refused 'a', which is no node of the segment"),
        (refused(7), "raised TypeError: Refusal.nodes must be a dict, got 7"),
    ],
    ids=["nothing", "number", "raises", "stranger", "no-dict"],
)
def test_an_answer_that_is_none(answer, told):
    error = step(answer)
    assert type(error) is tf.errors.InternalError
    assert error.message.startswith(COMPILER + told)
    assert "y (Tanh)" in error.message
    assert "OPDOCK_DISABLE_PASSES=segments" in error.message


@pytest.mark.parametrize(
    "answer",
    [refused({}), raises(NotImplementedError("no tanh")), raises(tf.errors.UnimplementedError(
        None, None, "no tanh"))],
    ids=["refusal", "not-implemented", "unimplemented"],
)  # fmt: skip
def test_what_is_refused_runs_op_by_op(answer):
    np.testing.assert_allclose(step(answer), np.full([3, 2], 1 + np.tanh(1)), rtol=1e-6)


def gives(change: Any) -> Any:
    """A compiler of which an executable gives other results and new values."""

    def compile_segment(segment: Any) -> Any:
        return lambda inputs, state, places: change(*segment.run(inputs, state, places))

    return compile_segment


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda results, fresh: None, f"returned NoneType; {PAIR}"),
        (lambda results, fresh: (1, 2, 3), f"returned tuple; {PAIR}"),
        (lambda results, fresh: (None, fresh), "returned a pair of results (NoneType) and new"),
        (lambda results, fresh: ((), fresh), "returned a pair of results (0) and new values"),
        (lambda results, fresh: (results * 2, fresh), "returned a pair of results (2) and new"),
        (lambda results, fresh: (results, ()), f"new values of variables (0); {PAIR}"),
        (lambda results, fresh: {}["slot"], "raised KeyError: 'slot'"),
    ],
    ids=["nothing", "three", "no-results", "none", "two", "no-values", "raises"],
)
def test_an_executable_whose_answer_has_another_form(change, told):
    error = step(gives(change))
    assert type(error) is tf.errors.InternalError
    assert EXECUTABLE in error.message
    assert told in error.message
    assert "defined at" in error.message


@pytest.mark.parametrize(
    ("change", "what", "told"),
    [
        (lambda rs, vs: ([r[None] for r in rs], vs), "output 0", "has shape [1,3,2]"),
        (lambda rs, vs: ([None], vs), "output 0", "is of type NoneType"),
        (lambda rs, vs: (rs, [None]), "the new value of variable v", "is of type NoneType"),
        (lambda rs, vs: (rs, [v[:1] for v in vs]), "the new value of variable v", "has shape [1,2"),
        (
            lambda rs, vs: (rs, [v.astype(np.float64) for v in vs]),
            "the new value of variable v", "has dtype float64, expected float32",
        ),
    ],
    ids=["shape", "nothing", "no-value", "value-shape", "value-dtype"],
)  # fmt: skip
def test_the_checks_look_at_what_an_executable_gives(monkeypatch, change, what, told):
    monkeypatch.setenv("OPDOCK_CHECK", "1")
    error = step(gives(change))
    assert type(error) is tf.errors.InternalError
    assert error.message.startswith("OPDOCK_CHECK: ")
    assert f"{what} of {EXECUTABLE}{told}" in error.message


def test_a_right_one_passes_the_checks(monkeypatch):
    monkeypatch.setenv("OPDOCK_CHECK", "1")
    assert step(gives(lambda results, fresh: (results, fresh))).shape == (3, 2)


@pytest.mark.parametrize(
    ("answer", "told"),
    [(lambda segment: 7, [COMPILER + "returned 7, expected an executable or a Refusal"]),
     (refused({}), [])],
)  # fmt: skip
def test_doctor_tries_the_compiler(answer, told):
    evasive.install(answer)
    manager = get_manager()
    (probed,) = [d for d in manager.devices() if d.spec.name == "evasive"]
    assert trial.faults(manager.open(probed)) == told


def test_a_refused_reading_leaves_with_those_that_read():
    """A variable is no member of a segment: what remains is offered without its readers."""
    offered: list[list[str]] = []

    def compile_segment(segment: Any) -> Any:
        offered.append(sorted(n.op for n in segment.nodes))
        bad = {n: "no variables" for n in segment.nodes if n.op == "read"}
        return Refusal(nodes=bad) if bad else segment.run

    evasive.install(compile_segment)
    with tf.device("/device:EVASIVE:0"):
        x = tf.placeholder(tf.float32, [3])
        v = tf.Variable(np.full(3, 2.0, np.float32))
        y = tf.tanh(tf.exp(x) * v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        offered.clear()
        np.testing.assert_allclose(sess.run(y, {x: np.zeros(3)}), np.tanh(np.full(3, 2.0)), 1e-6)
    assert "read" in offered[0]
    assert all("read" not in ops for ops in offered[1:])
    assert len(offered) <= 3
