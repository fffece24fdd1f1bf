"""Functions in graphs, chosen ones, ones of rows, and ones of Python's own."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import opdock as tf
from opdock.util import inspecting


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def test_effects_happen_in_order():
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def step(x):
        v.assign_add(x)
        v.assign(v * 2.0)
        return v.read_value() + 1.0

    assert step.__name__ == "step"
    assert run(step(tf.constant(2.0))) == 7.0


def test_a_function_without_results_is_an_operation():
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def twice():
        v.assign(v * 2.0)

    @tf.function
    def nothing(x):
        del x

    for made in (twice(), nothing(v)):
        assert isinstance(made, tf.Operation)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([twice(), nothing(3.0)]) == [None, None]
        assert session.run(v) == 2.0


def test_a_read_is_between_the_writes_around_it():
    for use_resource in (True, False):
        v = tf.Variable(1.0, use_resource=use_resource)

        @tf.function
        def step(v=v):
            v.assign_add(1.0)
            between = v.read_value()
            v.assign(0.0)
            return between, v.read_value()

        assert run(step()) == (2.0, 0.0)


def test_a_signature_and_methods():
    class Doubler:
        factor = 2.0

        @tf.function(input_signature=[tf.placeholder(tf.float32, [None])])
        def scale(self, x):
            return {"out": x * self.factor}

    assert run(Doubler().scale([1, 2])["out"]).tolist() == [2, 4]
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        Doubler().scale([[1.0]])
    with pytest.raises(TypeError, match="tuple or a list"):
        tf.function(lambda x: x, input_signature=3)


def test_variables_are_made_once():
    @tf.function
    def make():
        return tf.Variable(1.0, use_resource=True).read_value()

    make()
    with pytest.raises(ValueError, match="non-first call"):
        make()
    with pytest.raises(ValueError, match="non-first call"):
        make.get_concrete_function()


def test_switch_case():
    index = tf.placeholder(tf.int32, [])
    functions = [lambda: tf.constant(10), lambda: tf.constant(20)]
    plain = tf.switch_case(index, functions)
    default = tf.switch_case(index, dict(enumerate(functions)), default=lambda: tf.constant(-1))
    found = [run([plain, default], {index: i}) for i in (0, 1, 7, -1)]
    assert found == [[10, 10], [20, 20], [20, -1], [20, -1]]
    with pytest.raises(TypeError, match="must a Tensor"):
        tf.switch_case(1, functions)
    with pytest.raises(ValueError, match="contiguous range"):
        tf.switch_case(index, {0: functions[0], 2: functions[1]})


def test_vectorized_map():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    outer = tf.vectorized_map(lambda row: tf.tensordot(row, row, 0), x)
    assert np.array_equal(run(outer), x[:, :, None] * x[:, None])
    both = tf.vectorized_map(lambda p: (p[0] + p[1], tf.reduce_sum(p[0])), (x, x))
    assert [v.tolist() for v in run(both)] == [(2 * x).tolist(), x.sum(1).tolist()]


def test_vectorized_map_of_gradients():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    grads = tf.vectorized_map(lambda row: tf.gradients(tf.reduce_sum(row * row), x)[0], x)
    assert run(grads).tolist() == [[[2, 4], [0, 0]], [[0, 0], [6, 8]]]  # each row's own


def test_py_function():
    def log(x, text):
        assert text.numpy() == b"hello" and x.numpy().tolist() == [1, 2]
        return tf.square(x), np.float64(x.numpy().sum())

    squares, total = tf.py_function(log, [[1.0, 2.0], "hello"], [tf.float32, tf.float64])
    assert run(squares).tolist() == [1, 4] and run(total) == 3
    assert run(tf.py_function(lambda x: x + 1, [3], tf.int32)) == 4
    with pytest.raises(ValueError, match="callable"):
        tf.py_function(1, [], [])


def test_a_py_function_computes_as_it_goes():
    def huber(x, m):
        return x**2 if abs(x) <= m else m**2 * (1 - 2 * tf.log(m) + tf.log(x**2))

    x, m = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    y = tf.py_function(huber, [x, m], tf.float32)
    slopes = tf.gradients(y, [x, m])
    for at, bound, want in ((1, 2, [1, 2, 0]), (4, 2, [4 * (1 + np.log(4)), 2, 4 * np.log(4)])):
        got = run([y, *slopes], {x: at, m: bound})
        np.testing.assert_allclose(got, want, rtol=1e-5)

    def draws(count):
        first = tf.random_uniform([int(count)])
        assert (np.asarray(first) == first.numpy()).all() and len(first) == 3
        return first - first.numpy(), [float(v) for v in first], str(count.dtype)

    nothing, values, kind = run(tf.py_function(draws, [3], [tf.float32, tf.float32, tf.string]))
    assert nothing.tolist() == [0] * 3 and len(set(values)) == 3 and kind == b"<dtype: 'int32'>"


def test_gradients_flow_through_each_turn_of_a_loop():
    x = tf.constant(3.0)
    out = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, y: (i + 1, tf.ensure_shape(tf.py_function(lambda v: v * v, [y], tf.float32), [])),
        (0, x),
    )[1]
    assert run([out, tf.gradients(out, x)[0]]) == [3.0**8, 8 * 3.0**7]
    both = tf.py_function(lambda a, b, n: (a * b, a / b), [x, 2.0, 1], [tf.float32] * 2)
    assert run(tf.gradients(both[0] + both[1], [x]))[0] == 2.5
    assert run(tf.gradients(both[1], [x]))[0] == 0.5


def test_what_a_py_function_leaves_behind():
    kept = []

    def keeps(v):
        kept.extend([v, tf.square(v)])
        return v.numpy()

    x = tf.constant([2.0, 3.0])
    y = tf.py_function(keeps, [x], tf.float32)
    (slope,) = tf.gradients(y, x)
    assert [a.tolist() for a in run([y, slope])] == [[2, 3], [0, 0]]
    assert [tensor.numpy().tolist() for tensor in kept[:2]] == [[2, 3], [4, 9]]
    (slope,) = tf.gradients(tf.py_function(tf.square, [x], tf.float32), x)
    with pytest.raises(LookupError, match="differentiated once"):
        tf.gradients(slope, x)


def test_a_py_function_returns_no_variable():
    out = tf.py_function(lambda: tf.Variable(1.0, use_resource=True), [], tf.float32)
    with pytest.raises(tf.errors.UnknownError, match="Attempting to return a variable"):
        run(out)
    assert tf.py_func(lambda: None, [], [], stateful=False) == []


def test_pythons_inspection_sees_the_parameters():
    class Model:
        @tf.function
        def call(self, inputs, *more, scale=2.0):
            return inputs * scale

    assert str(inspect.signature(Model().call)) == "(inputs, *more, scale=2.0)"
    assert inspect.getfullargspec(Model.call).args == ["self", "inputs"]
    assert "python_function" in inspect.signature(type(Model.call)).parameters
    spec = inspecting.getfullargspec(Model().call)
    assert spec.args == ["self", "inputs"] and spec.kwonlyargs == ["scale"]


def test_a_signature_of_values_of_several_tensors():
    ragged = tf.ragged.constant([[1, 2], [3]])
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 3])
    signature = [tf.RaggedTensorSpec([None, None], tf.int32), tf.SparseTensorSpec([2, 3])]

    @tf.function(input_signature=signature)
    def f(rows, cells):
        return tf.reduce_sum(rows, axis=1), tf.sparse.to_dense(cells)

    sums, dense = f(ragged, sparse)
    with tf.Session() as session:
        assert session.run(sums).tolist() == [3, 3]
        assert session.run(dense).tolist() == [[0, 2, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        f(tf.ragged.constant([[1.0]]), sparse)
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        f(ragged, tf.zeros([2, 3]))


def test_values_that_a_function_returns_become_tensors_that_wait_for_its_effects():
    count = tf.get_variable("count", [], tf.int32, initializer=tf.zeros_initializer())

    @tf.function
    def counted(x):
        count.assign_add(x)
        return "text", [2.5, None], {"n": np.arange(3), "x": x}

    text, (number, nothing), more = counted(tf.constant(2))
    assert (text.dtype, number.dtype, nothing) == (tf.string, tf.float32, None)
    with tf.Session() as session:
        session.run(count.initializer)
        assert session.run(text) == b"text"
        assert session.run(count) == 2
        assert session.run([number, more["n"], more["x"]])[1].tolist() == [0, 1, 2]
        assert session.run(count) == 4


def test_arrays_among_the_arguments_are_tensors_in_the_function():
    spec = tf.TensorSpec((2,), tf.float32)

    @tf.function
    def first(rows, others):
        assert tf.is_tensor(rows) and tf.is_tensor(others["number"])
        assert spec.is_compatible_with(rows[0]) and rows.op.name.startswith("first")
        return rows[0] * others["number"]

    with tf.Graph().as_default(), tf.Session() as sess:
        found = first(np.ones((1, 2), np.float32), {"number": np.float32(3)})
        assert sess.run(found).tolist() == [3.0, 3.0]


def test_a_dataset_is_an_argument_of_a_concrete_function():
    @tf.function
    def count(dataset):
        found = tf.constant(0)
        for _ in dataset:
            found += 1
        return found

    concrete = count.get_concrete_function(tf.data.Dataset.range(3))
    with tf.Session() as session:
        assert session.run([concrete(tf.data.Dataset.range(n)) for n in (2, 6)]) == [2, 6]


def test_variables_that_a_function_makes_are_initialized_by_nobody_else():
    made = []

    @tf.function
    def scaled(x):
        if not made:
            made.append(tf.Variable(2.0, use_resource=True))
        made[0].assign_add(1.0)
        return x * made[0]

    with tf.Graph().as_default(), tf.Session() as session:
        result = scaled(tf.constant(1.0))
        session.run(tf.global_variables_initializer())
        # What the function does is done in every run; its variable begins once.
        assert [session.run(result) for _ in range(3)] == [3.0, 4.0, 5.0]


def test_what_a_partial_has_given_is_no_parameter():
    def f(a, b, c, d=5, *, e=7):
        return a + b + c + d + e

    function = tf.function(functools.partial(f, 1, e=tf.constant(2), d=3))
    spec = function.function_spec.fullargspec
    assert (spec.args, spec.defaults, spec.kwonlyargs) == (["b", "c"], None, [])
    with tf.Graph().as_default(), tf.Session() as session:
        bound = tf.function(functools.partial(f, 1, e=2, d=3))
        assert session.run([bound(10, c=20), bound(10, 20, d=0)]) == [36, 33]
