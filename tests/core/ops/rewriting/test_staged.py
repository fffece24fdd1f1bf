"""Control flow over tensors: what each statement of Python's gives, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def on(function, *values, dtype=tf.int32):
    """What a function gives for tensors whose values the graph does not know."""
    fed = [tf.placeholder(dtype, np.shape(v)) for v in values]
    result = tf.autograph.to_graph(function)(*fed)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(result, dict(zip(fed, values, strict=True)))


def at_once(function, *values, dtype=tf.int32):
    """What a function gives where operations run as they are made."""
    with eager_mode(alone=True):
        result = tf.autograph.to_graph(function)(*(tf.constant(v, dtype) for v in values))
        return tf.nest.map_structure(np.asarray, result)


def same(function, *arguments, dtype=tf.int32):
    """Checks that a function gives of tensors what it gives of numbers."""
    for given in arguments:
        values = given if isinstance(given, tuple) else (given,)
        want = function(*values)
        np.testing.assert_array_equal(on(function, *values, dtype=dtype), want)
        np.testing.assert_array_equal(at_once(function, *values, dtype=dtype), want)


# ---------------------------------------------------------------- branches
def test_if_and_else():
    def f(x):
        if x > 0:
            y = x * x
        else:
            y = -x
        return y

    same(f, 3, 0, -4)


def test_elif_and_what_is_set_before():
    def f(x):
        y = 1
        kind = x
        if x > 10:
            y = 2
        elif x > 5:
            y = 3
            kind = x + 1
        return y * kind

    same(f, 11, 6, 2)


def test_returns_anywhere():
    def f(x):
        if x > 10:
            return x
        if x > 5:
            if 6 < x < 8:
                return x * 100
            x += 1
            return x * 10
        return -x

    same(f, 11, 6, 7, 2)


def test_nothing_is_returned_by_both_branches():
    seen = []

    def f(x):
        if x > 0:
            seen.append("positive")
            return
        seen.append("other")

    assert tf.autograph.to_graph(f)(tf.constant(1)) is None
    assert seen == ["positive", "other"]


def test_expressions():
    def f(x, y):
        a = x if x > y else 2 * y
        return a if (not x > 3 and y < 9) or 4 < x < 7 else -a

    same(f, (1, 2), (5, 4), (9, 9), (4, 10))


def test_the_second_operand_runs_only_if_it_counts():
    def f(x):
        return x > 0 and 10 // x > 2

    same(f, 0, 3, 4)


def test_structures_and_values_of_python():
    def f(x):
        d = {"a": x, "b": (x, 1)}
        if x > 0:
            d = {"a": x + 1, "b": (2, x)}
        return d["a"] + d["b"][0] * 10 + d["b"][1] * 100

    same(f, 3, -3)


def test_attributes_and_items_are_variables():
    class Box:
        pass

    def f(x):
        box, kept = Box(), {"n": 0}
        box.v = x
        if x > 0:
            box.v = box.v + 10
            kept["n"] = x
        while box.v > 5:
            box.v -= 3
            kept["n"] += 1
        return box.v * 100 + kept["n"]

    same(f, 3, -3, 20)


def test_a_branch_does_not_see_the_other_and_leaves_nothing_behind():
    class Box:
        v = 0

    box = Box()

    def f(x):
        if x > 0:
            box.v = x
        else:
            box.v = box.v - x
        return box.v

    assert on(f, -2) == 2


def test_a_variable_of_one_branch_alone():
    def f(x):
        if x > 0:
            only = x
        return only

    with pytest.raises(ValueError, match=r"must also be initialized in the else branch.*'only'"):
        on(f, 1)


def test_a_variable_of_one_branch_that_nobody_reads():
    def f(x):
        if x > 0:
            only = x
            x = only + 1
        return x

    same(f, 1, -1)


def test_a_return_in_one_branch_alone(tmp_path):
    path, names = tmp_path / "falls_off.py", {}
    path.write_text("def f(x):\n    if x > 0:\n        return x\n")
    exec(compile(path.read_text(), path, "exec"), names)
    with pytest.raises(ValueError, match="must also be returned from the else branch"):
        on(names["f"], 1)


def test_types_of_branches():
    def f(x):
        if x > 0:
            y = 1
        else:
            y = 1.0
        return y

    message = '"y" has dtype int32 in the TRUE branch, but dtype float32 in the FALSE branch'
    with pytest.raises(TypeError, match=message):
        on(f, 1)


@pytest.mark.parametrize("other", [None, (1, 2), len], ids=str)
def test_structures_of_branches(other):
    def f(x):
        y = x
        if x > 0:
            y = other
        return y

    with pytest.raises(TypeError, match='"y" does not have the same nested structure'):
        on(f, 1)


def test_what_no_tensor_holds_may_stay_as_it_is():
    def f(x, function, nothing=None):
        if x > 0:
            x = function(x)
        while x < 100:
            x = function(x) + 1
        return x if nothing is None else -x

    def g(x):
        return f(x, lambda v: v * 2)

    same(g, 3, 0)


# ---------------------------------------------------------------- loops
def test_while_with_break_and_continue():
    def f(n):
        s = 0
        while n > 0:
            n -= 1
            if n % 3 < 1:
                continue
            if s > 20:
                break
            s += n
        return s

    same(f, 0, 4, 30)


def test_loops_in_loops():
    def f(n):
        total = 0
        i = 0
        while i < n:
            for j in range(i):
                if j >= 3:
                    break
                total += i * j
            i += 1
        return total

    same(f, 0, 4, 9)


def test_a_loop_that_python_begins_and_the_graph_ends():
    def f(n):
        total = 0
        while True:
            total += n
            if total > 20:
                break
        return total

    same(f, 3, 30)


def test_a_loop_of_python_that_the_graph_ends():
    def f(n):
        total = 0
        for i in [1, 2, 3, 4]:
            if i > n:
                break
            total += i
        return total

    same(f, 0, 2, 9)


def test_for_over_rows():
    def f(rows):
        total = tf.zeros([2], tf.int32)
        biggest = 0
        for row in rows:
            total += row
            if row[0] > 5:
                break
            biggest = tf.maximum(biggest, row[1])
        return tf.concat([total, [biggest]], 0)

    rows = np.array([[1, 2], [3, 9], [6, 70], [1, 1]])
    assert on(f, rows).tolist() == [10, 81, 9]
    assert on(f, rows[:0].reshape(0, 2)).tolist() == [0, 0, 0]
    open_rows = tf.placeholder(tf.int32, [None, 2])
    with tf.Session() as session:
        result = tf.autograph.to_graph(f)(open_rows)
        assert session.run(result, {open_rows: rows[:2]}).tolist() == [4, 11, 9]


@pytest.mark.parametrize("bounds", [(7,), (2, 9), (9, 2), (1, 10, 3), (10, 1, -4)])
def test_for_over_ranges(bounds):
    def f(*bounds):
        digits = 0
        for i in range(*bounds):
            digits = digits * 10 + i
        return digits

    if len(bounds) == 3:
        same(f, bounds)
        return
    result = tf.autograph.to_graph(f)(*map(tf.constant, bounds))
    with tf.Session() as session:
        assert session.run(result) == f(*bounds)


def test_a_loop_without_variables_runs_for_its_effects():
    v = tf.Variable(0, use_resource=True)

    @tf.function
    def f(n):
        for _ in tf.range(n):
            v.assign_add(2)
        return v.read_value()

    result = f(tf.constant(4))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(result) == 8


def test_effects_of_branches_happen_in_order():
    v = tf.Variable(0, use_resource=True)

    @tf.function
    def f(x):
        if x > 0:
            v.assign(5)
            v.assign_add(x)
        else:
            v.assign_sub(1)
        v.assign(v * 10)
        return v.read_value()

    x = tf.placeholder(tf.int32, [])
    result = f(x)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([result], {x: 2}) == [70]
        assert session.run([result], {x: -2}) == [690]


def test_gradients_flow_through():
    def f(x):
        y = x
        while y < 100.0:
            if y > 10.0:
                y = y * y
            else:
                y = y * 3.0
        return y

    x = tf.placeholder(tf.float32, [])
    (slope,) = tf.gradients(tf.autograph.to_graph(f)(x), x)
    with tf.Session() as session:
        # 2 -> 6 -> 18 -> 324: (9 x)^2
        assert session.run(slope, {x: 2.0}) == 324.0


def test_variables_of_loops_have_values_before():
    def f(n):
        while n > 0:
            last = n
            n -= 1
        return last

    with pytest.raises(ValueError, match=r"must be defined before the loop.*'last'"):
        on(f, 2)


def test_returns_in_loops_are_refused():
    def f(n):
        while n > 0:
            if n > 3:
                return n
            n -= 1
        return n

    with pytest.raises(ValueError, match="return statements are not supported"):
        on(f, 2)


def test_types_and_shapes_of_loops():
    def types(n):
        x = 1
        while n > 0:
            x = tf.cast(n, tf.float32)
            n -= 1
        return x

    def shapes(n):
        x = tf.zeros([2])
        while n > 0:
            x = tf.concat([x, x], 0)
            n -= 1
        return x

    def structures(n):
        x = (1, 2)
        while n > 0:
            x = (1, 2, 3)
            n -= 1
        return x

    with pytest.raises(TypeError, match='"x" has dtype int32 before the loop, but dtype float32'):
        on(types, 2)
    with pytest.raises(ValueError, match=r'"x" has shape \(2,\) before the loop, but shape \(4,\)'):
        on(shapes, 2)
    with pytest.raises(TypeError, match='"x" does not have the same nested structure'):
        on(structures, 2)


def test_a_scalar_has_no_rows():
    def f(x):
        for y in x:
            x = y
        return x

    with pytest.raises(ValueError, match="non-scalar"):
        on(f, 2)
