"""`Defun`: functions of the library, their calls, gradients and definitions."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.defined_function import Defun, from_library, symbolic_gradient


@pytest.fixture(autouse=True)
def _graph() -> object:
    with tf.Graph().as_default() as graph:
        yield graph


def run(*fetches: object, feed: object = None) -> list[np.ndarray]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches), feed)


def test_a_call_is_one_operation_of_the_functions_name() -> None:
    @Defun(tf.float32, tf.float32, func_name="Line", out_names=["y", "twice"])
    def line(a, x):
        return a * x + 1.0, x * 2.0

    y, twice = line(2.0, [1.0, 3.0], name="call")
    assert y.op.type == "Line"
    assert y.op.name == "call"
    signature = line.definition.signature
    assert [a.name for a in signature.input_arg] == ["a", "x"]
    assert [a.name for a in signature.output_arg] == ["y", "twice"]
    assert [r.tolist() for r in run(y, twice)] == [[3.0, 7.0], [2.0, 6.0]]


def test_what_it_uses_from_outside_becomes_an_argument() -> None:
    w = tf.Variable([[2.0]])

    @Defun(tf.float32)
    def product(x):
        return tf.matmul(w, x)

    y = product([[10.0]])
    assert len(y.op.inputs) == 2
    assert [r.tolist() for r in run(y, *tf.gradients(y, w))] == [[[20.0]], [[10.0]]]


def test_a_gradient_is_the_bodys_the_other_functions_or_python_s() -> None:
    @Defun(tf.float32, tf.float32)
    def ten_times(x, dy):
        return 10.0 * dy

    def hundred_times(op, dy):
        return 100.0 * dy

    @Defun(tf.float32)
    def cube(x):
        return x * x * x

    own = Defun(tf.float32, grad_func=ten_times, func_name="A")(lambda x: x + 1.0)
    python = Defun(tf.float32, python_grad_func=hundred_times, func_name="B")(lambda x: x + 1.0)
    x = tf.constant(2.0)
    grads = [tf.gradients(f(x), x)[0] for f in (cube, own, python)]
    second = tf.gradients(grads[0], x)[0]
    assert run(*grads, second) == [12.0, 10.0, 100.0, 12.0]


def test_graph_defs_carry_the_library(_graph: tf.Graph) -> None:
    @Defun(tf.float32)
    def inner(x):
        return x + 1.0

    @Defun(tf.float32)
    def outer(x):
        return inner(x) * tf.cond(x > 0.0, lambda: x, lambda: -x)

    x = tf.placeholder(tf.float32, (), "x")
    y = outer(x, name="y")
    tf.gradients(y, x, name="g")
    text = _graph.as_graph_def()
    assert {f.signature.name for f in text.library.function} >= {inner.name, outer.name}
    with tf.Graph().as_default() as again:
        tf.import_graph_def(text, name="")
        found = [op.outputs[0] for op in again.get_operations() if op.type == "SymbolicGradient"]
        assert run("y:0", *found, feed={"x:0": -3.0}) == [-6.0, 1.0 * 3.0 + -2.0 * -1.0]
    names = {f.name for f in from_library(text.library)}
    assert names >= {inner.name, outer.name}


def test_two_calls_draw_different_numbers_and_effects_happen() -> None:
    @Defun()
    def draw():
        return tf.random_uniform([100])

    v = tf.Variable(0.0, use_resource=True)

    @Defun()
    def count():
        with tf.control_dependencies([v.assign_add(1.0).op]):
            return tf.constant(7)

    a, b = run(draw(), draw())
    assert (a != b).any()
    first, second = count(), count()
    with tf.control_dependencies([first, second]):
        after = v.read_value()
    assert run(after) == [2.0]


def test_what_a_call_waits_for_comes_first() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @Defun(tf.float32)
    def same(x):
        return x

    with tf.control_dependencies([v.assign(5.0).op]):
        late = same(tf.constant(3.0))
    with tf.control_dependencies([late]):
        after = v.read_value()
    assert run(after) == [5.0]


def test_functions_without_types_are_one_for_each_combination() -> None:
    @Defun(func_name="Double")
    def double(x):
        return x + x

    assert double(1.5).op.type == "Double_f32"
    assert double(2).op.type == "Double_i32"


def test_symbolic_gradient_by_name() -> None:
    @Defun(tf.float32, func_name="Square")
    def square(x):
        return x * x

    square(1.0)
    (dx,) = symbolic_gradient([3.0, 0.5], [tf.float32], "Square")
    assert run(dx) == [3.0]


def test_errors_say_what_is_wrong() -> None:
    @Defun(tf.float32, func_name="F")
    def f(x):
        return x

    f(1.0)
    with pytest.raises(ValueError, match="Expected number of arguments: 1, received: 2"):
        f(1.0, 2.0)
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        f(1.0, device="/cpu:0")
    with pytest.raises(ValueError, match="specified input types"):
        Defun(tf.float32)(lambda a, b: a)
    with pytest.raises(ValueError, match="can not return None"):
        Defun()(lambda: [None])()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a different function with the same"):
        Defun(tf.float32, func_name="F")(lambda x: x + 1.0)(1.0)
    with pytest.raises(tf.errors.NotFoundError, match="Function Nowhere is not defined"):
        run(symbolic_gradient([1.0, 1.0], [tf.float32], "Nowhere")[0])


def test_arguments_of_a_variables_type_take_its_values():
    """`t.dtype` of a variable is a reference, whose values the function gets."""
    variable = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
    assert variable.dtype is not variable.dtype.base_dtype

    @Defun(variable.dtype, tf.float32)
    def add(x, y):
        return x + y

    assert add.declared_input_types == (tf.float32, tf.float32)
    total = add(variable, 1.0)
    with tf.Session() as sess:
        sess.run(variable.initializer)
        assert sess.run(total).tolist() == [2.0, 3.0]


def test_a_function_has_one_gradient() -> None:
    @Defun(tf.float32, tf.float32)
    def own(x, grad):
        return grad * x

    twice = Defun(tf.float32, grad_func=own, python_grad_func=lambda op, grad: grad)(lambda x: x)
    with pytest.raises(ValueError, match="Gradient defined twice"):
        twice(1.0)
