"""Assertions, printing and Python functions."""

from __future__ import annotations

import gc
import sys
import types

import numpy as np
import pytest

import opdock as tf


def run(fetches, feed=None):
    with tf.Session() as session:
        return session.run(fetches, feed)


def test_an_assertion_names_its_data():
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.control_dependencies(
        [tf.Assert(tf.reduce_all(x > 0), ["bad:", x, tf.constant([[1, 2], [3, 4]])])]
    ):
        y = tf.identity(x)
    assert run(y, {x: [1, 2]}).tolist() == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        run(y, {x: [0.1, -2.5, 3, 4]})
    assert e.value.message.startswith("assertion failed: [bad:] [0.1 -2.5 3...] [[1 2][3...]...]")
    assert "test_check.py" in e.value.message


@pytest.mark.parametrize(("check", "good", "bad", "text"), [
    (lambda p: tf.assert_equal(p, 2), 2, 1, "Condition x == y did not hold element-wise:"),
    (lambda p: tf.assert_less(p, 2), 1, 2, "Condition x < y"),
    (lambda p: tf.assert_greater_equal(p, 2), 2, 1, "Condition x >= y"),
    (lambda p: tf.assert_none_equal(p, 2), 1, 2, "Condition x != y"),
    (lambda p: tf.assert_positive(p), 1, 0, "Condition x > 0"),
    (lambda p: tf.assert_non_negative(p), 0, -1, "Condition x >= 0"),
    (lambda p: tf.assert_negative(p, message="oh"), -1, 0, "oh"),
    (lambda p: tf.debugging.assert_near(tf.to_float(p), 2.0), 2, 3, "not equal to tolerance"),
])  # fmt: skip
def test_run_time_assertions(check, good, bad, text):
    p = tf.placeholder(tf.int32)
    op = check(p)
    run(op, {p: good})
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(op, {p: bad})


def test_what_is_known_fails_at_once():
    with pytest.raises(tf.errors.InvalidArgumentError, match="x == y did not hold"):
        tf.assert_equal(tf.constant(1), tf.constant(2))
    with pytest.raises(ValueError, match="must have rank 1.  Received rank 2"):
        tf.assert_rank(tf.zeros([2, 3]), 1)
    with pytest.raises(ValueError, match="must have rank in"):
        tf.assert_rank_in(tf.zeros([2, 3]), [0, 1])
    with pytest.raises(TypeError, match="must be of type"):
        tf.assert_type(tf.zeros([]), tf.int32)
    with pytest.raises(TypeError, match="integer"):
        tf.assert_integer(tf.zeros([]))
    with pytest.raises(ValueError, match="scalar shape"):
        tf.assert_scalar(tf.zeros([2]))
    with pytest.raises(ValueError, match="must have size 3"):
        tf.debugging.assert_shapes([(tf.zeros([3, 2]), ("n", 2)), (tf.zeros([4]), ("n",))])
    with pytest.raises(TypeError, match="proper"):
        tf.assert_proper_iterable(tf.zeros([2]))
    assert tf.assert_same_float_dtype([tf.zeros([], tf.float64), None]) is tf.float64
    typed = types.SimpleNamespace(dtype=tf.float64)  # a distribution, say
    assert tf.assert_same_float_dtype([typed, np.zeros(1), None]) is tf.float64
    with pytest.raises(ValueError, match="type=.*float32.*must be of the same type.*float64"):
        tf.assert_same_float_dtype([typed, tf.zeros([])])
    assert tf.is_numeric_tensor(tf.zeros([])) and not tf.is_numeric_tensor(tf.constant("a"))


def test_ranks_that_only_a_step_knows():
    p = tf.placeholder(tf.float32)
    check = tf.assert_rank_at_least(p, 2)
    run(check, {p: np.zeros((1, 1, 1))})
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank at least"):
        run(check, {p: np.zeros(3)})


def test_order_of_elements():
    values = [[], [1], [1, 1, 2], [1, 2, 3], [2, 1]]
    rising = [run(tf.is_non_decreasing(np.array(v, np.float32))) for v in values]
    strict = [run(tf.is_strictly_increasing(np.array(v, np.float32))) for v in values]
    assert rising == [True, True, True, True, False]
    assert strict == [True, True, False, True, False]


def test_printing(capfd):
    x = tf.constant([1.5, 2.0, 3.0, 4.0])
    y = tf.Print(x, [x, tf.constant("a")], message="x is ", summarize=2)
    (dy,) = tf.gradients(y, x)
    assert run([y, dy])[1].tolist() == [1] * 4
    assert capfd.readouterr().err == "x is [1.5 2...][a]\n"
    run(tf.print("v:", tf.range(10), {"k": tf.constant(2.5)}, output_stream=sys.stdout))
    assert capfd.readouterr().out == "v: [0 1 2 ... 7 8 9] {'k': 2.5}\n"
    run(tf.print(tf.constant([[1, 2], [3, 4]])))
    assert capfd.readouterr().err == "[[1 2]\n [3 4]]\n"
    run(tf.print(tf.constant("plain")))
    assert capfd.readouterr().err == "plain\n"


def test_first_n(capfd):
    y = tf.Print(tf.constant(1), [tf.constant(7)], first_n=2)
    with tf.Session() as session:
        for _ in range(4):
            session.run(y)
    assert capfd.readouterr().err == "[7]\n[7]\n"


def test_python_functions():
    def f(a, b):
        a[0] = 7
        return a * b, "text"

    x = tf.placeholder(tf.float32, [2])
    product, text = tf.py_func(f, [x, 2.0], [tf.float32, tf.string])
    fed = np.array([1, 2], np.float32)
    values = run([product, text], {x: fed})
    assert values[0].tolist() == [14, 4] and values[1] == b"text"
    assert fed.tolist() == [1, 2]
    single = tf.numpy_function(lambda a: a.astype(np.int64) + 1, [x], tf.int64)
    assert run(single, {x: fed}).tolist() == [2, 3]
    seen = []
    run(tf.py_func(lambda: seen.append(1), [], []))
    assert seen == [1]
    looped = tf.while_loop(
        lambda i: i < 3, lambda i: tf.py_func(lambda v: v + np.int32(1), [i], tf.int32),
        [tf.constant(0)],
        shape_invariants=[tf.TensorShape(None)],
    )  # fmt: skip
    assert run(looped) == 3


@pytest.mark.parametrize(("error", "cls"), [
    (ValueError, "InvalidArgumentError"), (StopIteration, "OutOfRangeError"),
    (NotImplementedError, "UnimplementedError"), (KeyError, "UnknownError"),
])  # fmt: skip
def test_errors_of_python_functions(error, cls):
    calls = []

    def f():
        calls.append(1)
        raise error("inner")

    with pytest.raises(getattr(tf.errors, cls), match="inner"):
        run(tf.py_func(f, [], tf.float32))
    assert calls == [1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="is double, but expects float"):
        run(tf.py_func(lambda: 1.0, [], tf.float32))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="returns 2 values, but expects to see 1"
    ):
        run(tf.py_func(lambda: (1, 2), [], tf.int64))


def test_functions_go_with_their_graph():
    from opdock.graph.control import python_functions

    with tf.Graph().as_default():
        token = tf.py_func(lambda: 1, [], tf.int64).op.attrs["token"]
        assert python_functions.find(token) is not None
    gc.collect()
    assert python_functions.find(token) is None


def test_finite_checks():
    x = tf.placeholder(tf.float32, [2])
    y = tf.verify_tensor_all_finite(x, "not finite")
    all_checks = tf.add_check_numerics_ops()
    run([y, all_checks], {x: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not finite : Tensor had Inf"):
        run(y, {x: [1, np.inf]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
        run(all_checks, {x: [1, np.nan]})


def test_an_error_of_all_checks_names_the_culprit():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.log(x, name="y")
    tf.reduce_sum(y * 2.0)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(tf.add_check_numerics_ops(), {x: [1, -1]})
    text = str(caught.value)
    assert text.startswith("y:0 : Tensor had NaN values")
    assert "which checks [[node y (defined at" in text
    assert "test_check.py" in text.partition("which checks")[2]
    assert "(op Log), inputs: x:0 float32(2,)" in text
    assert "global step" not in text


@pytest.mark.parametrize("check", [tf.check_numerics, tf.verify_tensor_all_finite])
def test_an_error_of_any_check_names_the_culprit_and_the_step(check):
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [2], name="x")
    y = check(tf.log(x, name="y"), "mine")
    with tf.Session() as session:
        for known in (False, True):
            if known:
                session.run(step.initializer)
                session.run(step.assign_add(7))
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(y, {x: [1, -1]})
            lines = str(caught.value).splitlines()
            assert lines[0] == "mine : Tensor had NaN values"
            assert "which checks [[node y (defined at" in lines[2] and "test_check.py" in lines[2]
            assert lines[2].endswith("(op Log), inputs: x:0 float32(2,)")
            assert [line.strip() for line in lines[3:]] == ["at global step 7"] * known
            assert caught.value.message == str(caught.value) == caught.value.args[0]


def test_a_check_of_a_gradient_names_what_made_it():
    x = tf.placeholder(tf.float32, [2], name="x")
    (grad,) = tf.gradients(tf.sqrt(tf.check_numerics(x, "x"), name="y"), x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"which checks .*SqrtGrad"):
        run(grad, {x: [1, 0]})


def test_there_are_as_many_nodes_as_tensorflow_makes():
    """Random operations that follow have seeds by how many there are."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.int32, [None])
        tf.Assert(True, ["of", x])
        tf.set_random_seed(1)
        tf.random_crop(x, [1])
        names = [op.name for op in graph.get_operations()]
        assert names[1:5] == [
            "Assert/Const", "Assert/Assert/condition", "Assert/Assert/data_0", "Assert/Assert"
        ]  # fmt: skip
        crop = [n.removeprefix("random_crop/") for n in names[5:]]
        assert crop[4:9] == [
            "All", "Assert/Const", "Assert/Assert/data_0", "Assert/Assert", "control_dependency"
        ]  # fmt: skip
        drawn = graph.get_operation_by_name("random_crop/random_uniform")
        assert drawn.get_attr("seed2") == names.index("random_crop/random_uniform")
