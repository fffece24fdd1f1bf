"""`ProgramCache`: what has the same key, what a change drops, and that it stays bounded."""

from __future__ import annotations

import collections
import re
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.runtime.cache import programs as module


class Pair(NamedTuple):
    a: Any
    b: Any


# ---------------------------------------------------------------- structures
def structures():
    """Functions that make equal structures of the same elements anew."""
    a, b, op = tf.constant(1, name="a"), tf.constant(2, name="b"), tf.no_op(name="op")
    v = tf.Variable(3)
    sparse = tf.SparseTensor([[0]], [5], [2])
    return v, {
        "tensor": lambda: a, "operation": lambda: op, "variable": lambda: v, "name": lambda: "a:0",
        "list": lambda: [a, b, op], "tuple": lambda: (a, b), "variables": lambda: [v, a],
        "names": lambda: ("a:0", "op"), "dict": lambda: {"x": a, "y": b},
        "pair": lambda: Pair(a, b), "ordered": lambda: collections.OrderedDict(x=a, y=[b]),
        "sparse": lambda: {"s": sparse}, "empty": lambda: [[], {}],
        "nested": lambda: [a, {"k": (b, [v])}, Pair(op, {3: a})],
    }  # fmt: skip


def test_an_equal_structure_is_analysed_once():
    v, make = structures()
    with tf.Session() as session:
        session.run(v.initializer)
        for name, made in make.items():
            session.run(made())
            call = session._cache.find(made())
            assert call is not None, name
            session.run(made())
            assert session._cache.find(made()) is call, name
        calls = [session._cache.find(made()) for made in make.values()]
        assert len(set(calls)) == len(make)


def test_structures_of_the_same_elements_share_programs():
    x = tf.placeholder(tf.float32, [2])
    y = x * 2.0
    with tf.Session() as session:
        for fetches in (y, [y], (y,), {"k": y}, [[y]], y.name, [y, y]):
            session.run(fetches, {x: [1.0, 2.0]})
        assert len(session._cache.entries()) == 1


def test_equal_is_not_the_same():
    a, b = tf.constant(1), tf.constant(2)
    with tf.Session() as session:
        for fetches, want in [
            ((a, b), (1, 2)), (Pair(a, b), Pair(1, 2)), ([(a, b)], [(1, 2)]),
            ([Pair(a, b)], [Pair(1, 2)]), ([a, [b]], [1, [2]]), ([[a], b], [[1], 2]),
            ({1: a}, {1: 1}), ({True: a}, {True: 1}), ({1.0: a}, {1.0: 1}),
        ]:  # fmt: skip
            # Their text tells types apart.
            assert re.sub(r"np\.int32\((\d)\)", r"\1", repr(session.run(fetches))) == repr(want)


def test_a_structure_that_its_owner_changes():
    a, b = tf.constant(1), tf.constant(2)
    flat, inner = [a], {"k": a}
    nested = [inner, (flat,)]
    with tf.Session() as session:
        call = session.make_callable(flat)
        assert session.run([flat, nested]) == [[1], [{"k": 1}, ([1],)]]
        assert call() == [1]
        flat[0], inner["k"] = b, b
        assert session.run(flat) == [2]
        assert session.run(nested) == [{"k": 2}, ([2],)]
        del flat[:]
        assert session.run([flat, nested]) == [[], [{"k": 2}, ([],)]]


def test_objects_that_stand_for_something_else_each_time():
    class Turns:
        def __init__(self, *tensors):
            self.tensors = list(tensors)

        def _as_graph_element(self):
            self.tensors.append(self.tensors.pop(0))
            return self.tensors[0]

    a, b = tf.constant(1), tf.constant(2)
    turns = Turns(a, b)
    with tf.Session() as session:
        assert [session.run([turns, a]) for _ in range(4)] == [[2, 1], [1, 1]] * 2
        assert [session.run(turns) for _ in range(4)] == [2, 1] * 2
        assert session.run([a, b]) == [1, 2]


# ---------------------------------------------------------------- changes
def replaced():
    """A sum, and a function that makes it one of `x` and another number."""
    x, one, ten = tf.placeholder(tf.float32, []), tf.constant(1.0), tf.constant(10.0)
    y = tf.add(x, one)
    return x, y, lambda large: y.op._update_input(1, ten if large else one)


def test_an_edit_of_the_graph_reaches_every_way_to_run():
    x, y, edit = replaced()
    fed = np.array(5, np.float32)
    with tf.Session() as session, tf.Session() as other:
        call = session.make_callable(y, [x])
        step = lambda: (
            session.run(y, {x: fed}), session.run({"k": y}, {x: fed})["k"], call(fed), call(5),
            other.run(y, {x: 5}), session._program(y, {x: fed}).run((fed,))[0],
        )  # fmt: skip
        for large in (False, True, False):
            edit(large)
            for _ in range(4):
                assert set(step()) == {15.0 if large else 6.0}
        assert len(session._cache.entries()) == 1


def test_an_edit_while_a_program_is_compiled():
    x, y, edit = replaced()
    with tf.Session() as session:
        compile_ = session._engine.compile

        def late(*args):
            program = compile_(*args)
            edit(True)
            return program

        session._engine.compile = late
        session.run(y, {x: 5.0})
        session._engine.compile = compile_
        assert session.run(y, {x: 5.0}) == 15


def test_what_may_no_longer_be_fed_or_fetched(graph):
    x, y, _ = replaced()
    fed = np.array(5, np.float32)
    with tf.Session() as session:
        call = session.make_callable(y, [x])
        for _ in range(4):
            assert session.run([y], {x: fed}) == [call(fed)]
        graph.prevent_feeding(x)
        with pytest.raises(ValueError, match="may not be fed"):
            session.run([y], {x: fed})
        with pytest.raises(ValueError, match="may not be fed"):
            call(fed)
        graph.prevent_fetching(y.op)
        with pytest.raises(ValueError, match="not fetchable"):
            session.run([y])


def test_new_nodes_drop_nothing():
    x, y, _ = replaced()
    with tf.Session() as session:
        session.run(y, {x: 1.0})
        kept = session._cache.entries()
        tf.constant(1.0)
        session.run(y * 2.0, {x: 1.0})
        assert session._cache.entries()[0] is kept[0]


def test_threads_run_while_one_edits_and_builds(graph):
    x, y, edit = replaced()
    wrong, stop = [], threading.Event()

    def work(run):
        try:
            while not stop.is_set():
                got = run(np.array(5, np.float32))
                if got not in (6.0, 15.0):
                    wrong.append(got)
        except Exception as e:
            wrong.append(e)

    with tf.Session() as session:
        call = session.make_callable(y, [x])
        ways = (
            call,
            lambda v: session.run(y, {x: v}),
            lambda v: session.run([[y], x], {x: v})[0][0],
        )
        threads = [threading.Thread(target=work, args=(way,)) for way in ways]
        for t in threads:
            t.start()
        for i in range(60):
            edit(i % 2 == 0)
            assert session.run((y,), {x: 5.0}) == (15.0 if i % 2 == 0 else 6.0,)
            with graph.as_default():
                tf.constant(i)
        stop.set()
        for t in threads:
            t.join()
        assert [way(np.array(5, np.float32)) for way in ways] == [6.0] * 3
    assert not wrong


# ---------------------------------------------------------------- bounds
@pytest.fixture
def bound(monkeypatch):
    monkeypatch.setattr(module, "_CALLS", 24)
    monkeypatch.setattr(module, "_PROGRAMS", 16)
    return 16


def test_distinct_fetches_stay_bounded_and_what_is_in_use_stays(bound):
    x = tf.placeholder(tf.float32, [])
    many = [x + float(i) for i in range(30)]
    hot = many[0] * 2.0
    with tf.Session() as session:
        call = session.make_callable(hot, [x])
        for _ in range(3):
            call(np.array(1, np.float32))
        (entry,) = session._cache.entries()
        for i in range(120):
            fetches = [many[i % 30], many[i * 7 % 29]]
            assert session.run(fetches, {x: 1.0}) == [1 + i % 30, 1 + i * 7 % 29]
            session.run(hot, {x: 1.0})
            assert entry in session._cache.entries()
        assert len(session._cache.entries()) == bound
        assert len(session._cache.kept.programs) == bound
        assert call(np.array(1, np.float32)) == 2


def test_distinct_structures_of_one_tensor_stay_bounded(bound):
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with tf.Session() as session:
        for i in range(100):
            assert session.run({f"k{i}": y}, {x: 1.0}) == {f"k{i}": 2}
        assert len(session._cache.kept.calls) == 24
        assert len(session._cache.entries()) == 1


def test_lists_of_feeds_stay_bounded():
    parts = [tf.placeholder_with_default(float(1 << i), []) for i in range(6)]
    total = tf.add_n(parts)
    with tf.Session() as session:
        for chosen in range(64):
            fed = {p: 0.0 for i, p in enumerate(parts) if chosen >> i & 1}
            assert session.run(total, fed) == 63 - chosen
        assert len(session._cache.entries()) == 32


def test_shapes_of_many_fetches_stay_bounded(bound):
    x = tf.placeholder(tf.float32, [None])
    several = [tf.reduce_sum(x) + float(i) for i in range(4)]
    with tf.Session() as session:
        for n in range(1, 40):
            for i, y in enumerate(several):
                assert session.run(y, {x: np.ones(n, np.float32)}) == n + i
        assert len(session._cache.entries()) <= bound
        # The count by which there is room is that of what is there.
        assert session._cache.kept.count == len(session._cache.entries())


def test_a_closed_session_keeps_nothing():
    x, y, _ = replaced()
    with tf.Session() as session:
        call = session.make_callable(y, [x])
        for _ in range(3):
            call(np.array(1, np.float32))
    assert not session._cache.entries()
    with pytest.raises(RuntimeError, match="closed Session"):
        call(np.array(1, np.float32))


def test_what_is_fetched_is_not_compared_by_an_equality_of_its_own():
    """That of a variable with a copy on each device makes a node, if `==` is of values."""

    class Compared(ResourceVariable):
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise AssertionError("nobody asks")

    with tf.Graph().as_default() as graph, tf.Session() as session:
        variable = Compared(3.0)
        session.run(variable.initializer)
        graph.finalize()
        for _ in range(2):
            assert session.run({"a": [variable]}) == {"a": [3.0]}
