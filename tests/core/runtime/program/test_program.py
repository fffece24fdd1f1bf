"""Programs: the straight line and the executor of single steps agree on where a step stands."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.inspect.cases import plain_config


def failing(x):
    """A graph with steps that have no line of their own before and after the one that raises."""
    a = tf.identity(tf.stop_gradient(x * 2.0, name="first"))
    b = tf.identity(a + 1.0)
    c = tf.gather(tf.identity(b), tf.cast(tf.reduce_sum(x), tf.int32), name="picked")
    return tf.identity(c) - tf.stop_gradient(a[0])


@pytest.mark.parametrize("traced", [False, True])
def test_the_step_that_raised_is_named(traced):
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if traced else None
    with tf.Graph().as_default(), tf.Session(config=plain_config(soft=False)) as session:
        x = tf.placeholder(tf.float32, [2])
        y = failing(x)
        assert session.run(y, {x: [0.0, 1.0]}, options, tf.RunMetadata()) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="node picked ") as raised:
            session.run(y, {x: [4.0, 5.0]}, options, tf.RunMetadata())
        assert raised.value.op.name == "picked"


def test_every_line_of_the_function_has_its_step():
    with tf.Graph().as_default(), tf.Session(config=plain_config(soft=False)) as session:
        x = tf.placeholder(tf.float32, [2])
        session.run(failing(x), {x: [0.0, 1.0]})
        (entry,) = session._cache.entries()
    program = entry.program
    steps = program.schedule.steps
    assert any(s.kind == "alias" for s in steps)
    for i, step in enumerate(steps):
        if step.kind == "alias":
            continue

        def fail(*inputs):
            raise ZeroDivisionError

        # The function looks its callables up by name: "k3" is that of the step with index 3.
        scope = program.line.function.__globals__
        kept, scope[f"k{i}"] = scope[f"k{i}"], fail
        try:
            program.line.function(np.array([0.0, 1.0], np.float32))
        except ZeroDivisionError as e:
            halted = program.line.halted(e)
        finally:
            scope[f"k{i}"] = kept
        assert halted is not None
        at, values = halted
        assert at == i
        assert values.keys() >= set(step.inputs)


def test_results_are_written_where_the_caller_says():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        fetches = [x * 2.0 + 1.0, tf.identity(x), tf.exp(tf.cumsum(x))]
        session.run(fetches, {x: [0.0, 1.0]})
        (entry,) = session._cache.entries()
    program, fed = entry.program, np.array([1.0, 2.0], np.float32)
    known = program.run([fed])
    places = [np.empty_like(value) for value in known]
    found = program.run([fed], places)
    for result, right in zip(found, known, strict=True):
        np.testing.assert_array_equal(result, right)
    # What is the caller's own is no result that is written.
    assert [f is p for f, p in zip(found, places, strict=True)] == [True, False, True]
    again = program.run([fed], [None, None, places[2]])
    assert again[0] is not places[0] and again[2] is places[2]
