"""Bodies within bodies: what they cost grows with their number, and Python has room for them."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.compiler.clean import dependence
from opdock.graph.control.func_graph import FuncGraph


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def loops(depth, v, x):
    if not depth:
        return v * x
    turn = lambda i, a: (i + 1, loops(depth - 1, a * 1.5, x))
    return tf.while_loop(lambda i, _: i < 1, turn, [0, v])[1]


def conds(depth, v, x):
    if not depth:
        return v * x
    return tf.cond(x > -float(depth), lambda: conds(depth - 1, v * 1.5, x), lambda: v)


def cases(depth, v, x):
    pairs = [(x < -float(k), lambda k=k: v * float(k)) for k in range(depth)]
    return tf.case(pairs, default=lambda: v * x)


def operations(graph):
    """The number of operations in a graph and in all bodies in it."""
    ops = graph.get_operations()
    bodies = [b for op in ops for b in op.attrs.values() if isinstance(b, FuncGraph)]
    return len(ops) + sum(map(operations, bodies))


def made(nested, depth, order):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [])
        y = nested(depth, x, x)
        for _ in range(order):
            y = tf.gradients(y, x)[0]
    return operations(graph)


@pytest.mark.parametrize("nested", [loops, conds])
@pytest.mark.parametrize("order", [0, 1])
def test_nested_bodies_grow_with_their_depth(nested, order):
    few, some, many = (made(nested, depth, order) for depth in (6, 12, 24))
    assert many - some <= 2.1 * (some - few)


@pytest.mark.parametrize("nested", [loops, conds])
def test_a_body_is_analysed_once(nested, monkeypatch):
    walked = []
    flow = dependence._Walk.flow
    monkeypatch.setattr(
        dependence._Walk, "flow", lambda self: walked.append(self._function) or flow(self)
    )
    x = tf.placeholder(tf.float32, [])
    y = nested(12, x, x)
    with tf.Session() as session:
        assert session.run(y, {x: 2.0}) == pytest.approx(1.5**12 * 4.0)
    assert len(walked) == 24


@pytest.mark.parametrize("nested", [conds, cases])
def test_very_deep_conditionals(nested):
    depth = 150 if nested is conds else 70
    x = tf.placeholder(tf.float32, [])
    y = nested(depth, x / 1.5**depth if nested is conds else x, x)
    dx = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert session.run([y, dx], {x: 3.0}) == pytest.approx([9.0, 6.0], rel=1e-4)


def mixed(depth, v, x):
    if not depth:
        return v * x
    if depth % 2:
        return loops(1, tf.cond(x > 0.0, lambda: mixed(depth - 1, v * 1.5, x), lambda: v), 1.0)
    turn = lambda i, a: (i + 1, mixed(depth - 1, a, x))
    return tf.while_loop(lambda i, _: i < 1, turn, [0, v])[1]


@pytest.mark.parametrize("nested", [loops, conds, mixed])
def test_second_derivatives_of_what_is_recorded_together(nested):
    depth = 4
    x = tf.placeholder(tf.float32, [])
    y = nested(depth, x, x) / 1.5**4
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    with tf.Session() as session:
        assert session.run([y, first, second], {x: 3.0}) == pytest.approx([9.0, 6.0, 2.0])


def test_deep_bodies_are_written_and_read():
    x = tf.placeholder(tf.float32, [], name="x")
    tf.identity(conds(70, x, x), name="y")
    definition = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        with tf.Session() as session:
            assert session.run("y:0", {"x:0": 1.0}) == pytest.approx(1.5**70, rel=1e-4)


def names(graph):
    """The names of operations in a graph and in all bodies in it."""
    for op in graph.get_operations():
        yield op.name
        for body in op.attrs.values():
            if isinstance(body, FuncGraph):
                yield from names(body)


@pytest.mark.parametrize("build", [loops, conds])
def test_names_of_gradients_grow_with_the_depth_and_not_with_its_square(build):
    def longest(depth):
        with tf.Graph().as_default() as graph:
            v, x = (tf.placeholder(tf.float32, []) for _ in range(2))
            assert None not in tf.gradients(build(depth, v, x), [v, x])
            return max(map(len, names(graph)))

    few, more, most = map(longest, (4, 8, 12))
    assert few < more and most - more == more - few
