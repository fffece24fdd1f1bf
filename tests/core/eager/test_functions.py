"""Functions of tf.function, called where operations run as they are made: each is one operation."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.function import defun
from opdock.ops.composed.function_traces import run_functions_eagerly


def counted(function: Any, **options: Any) -> tuple[Any, list[int]]:
    """A function, and how often its Python has run."""
    runs = [0]

    def inner(*args: Any, **kwargs: Any) -> Any:
        runs[0] += 1
        return function(*args, **kwargs)

    return tf.function(inner, **options), runs


def test_a_function_is_traced_for_each_type_shape_and_value_and_for_no_other_reason():
    runs = [0]

    @tf.function
    def double(x: Any, k: Any = 2) -> Any:
        runs[0] += 1
        return x * tf.cast(k, x.dtype)

    assert [double(tf.constant([1.0, float(i)])).numpy()[1] for i in range(3)] == [0, 2, 4]
    assert double(np.float32([1, 5])).numpy().tolist() == [2, 10] and runs == [1]
    assert double(tf.constant([1])).dtype == tf.int32 and runs == [2]
    assert double(tf.ones([3])).shape == (3,) and runs == [3]
    assert double(tf.constant([1.0, 1.0]), 5).numpy().tolist() == [5, 5] and runs == [4]
    assert double(tf.constant([1.0, 1.0]), k=5).numpy().tolist() == [5, 5] and runs == [4]
    assert double(tf.constant([1.0, 1.0]), True).numpy().tolist() == [1, 1] and runs == [5]


def test_a_signature_traces_once_for_all_that_fits_it():
    total, runs = counted(tf.reduce_sum, input_signature=[tf.TensorSpec([None], tf.float32)])
    assert [total(np.ones(n)).numpy() for n in (1, 2, 5)] == [1, 2, 5] and runs == [1]
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        total(tf.ones([2, 2]))


def test_control_flow_depends_on_values_and_effects_happen_in_order():
    state = tf.Variable(0.0)

    @tf.function
    def collatz(n: Any) -> Any:
        steps = tf.constant(0)
        while n > 1:
            state.assign(tf.cast(n, tf.float32))
            n = n // 2 if tf.equal(n % 2, 0) else 3 * n + 1
            steps += 1
        return steps

    assert collatz(tf.constant(6)).numpy() == 8 and state.numpy() == 2
    assert collatz(tf.constant(1)).numpy() == 0


def test_results_keep_their_structure():
    @tf.function
    def parts(x: Any) -> Any:
        sparse = tf.SparseTensor([[0]], x[:1], [3])
        return {"a": (x, None), "s": sparse}, [tf.size(x)]

    found, (size,) = parts(tf.constant([4.0, 5.0]))
    assert found["a"][1] is None and size.numpy() == 2
    assert tf.sparse.to_dense(found["s"]).numpy().tolist() == [4, 0, 0]
    assert tf.function(lambda: None)() is None


def test_an_object_counts_as_itself_and_goes_with_the_function():
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

    scaled, runs = counted(lambda x, scale: x * scale.by)
    two, three = Scale(2.0), Scale(3.0)
    assert [scaled(tf.constant(1.0), s).numpy() for s in (two, three, two)] == [2, 3, 2]
    assert runs == [2]
    gone = weakref.ref(two)
    del two, scaled, runs
    gc.collect()
    assert gone() is None


def test_variables_are_made_once():
    class Dense(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w: Any = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = tf.Variable(tf.ones([int(x.shape[-1]), 1]) * 2.0)
            return x @ self.w

    one, other = Dense(), Dense()
    assert (
        one(tf.ones([2, 3])).numpy().tolist() == [[6], [6]] and one(tf.ones([4, 3])).shape[0] == 4
    )
    assert other(tf.ones([2, 5])).numpy()[0, 0] == 10
    assert [v.shape.as_list() for v in (one.w, other.w)] == [[3, 1], [5, 1]]
    greedy = tf.function(lambda n: tf.Variable(n).read_value())
    assert greedy(1.0).numpy() == 1
    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        greedy(2.0)


def test_each_trace_of_a_defun_may_make_variables():
    made = defun(lambda n: tf.Variable(n).read_value())
    assert [made(n).numpy() for n in (1.0, 2.0)] == [1, 2]


def test_layers_and_cells_are_built_within_functions():
    """Each function has its own names: nothing in an eager program is shared by name."""
    for _ in range(2):
        dense = tf.layers.Dense(3)
        call = defun(dense)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(tf.ones([2, 4])))
        assert [v.shape.as_list() for v in dense.trainable_variables] == [[4, 3], [3]]
        assert all(g is not None for g in tape.gradient(loss, dense.trainable_variables))
    norm = tf.layers.BatchNormalization(momentum=0.0)
    tf.function(lambda x: norm(x, training=True))(tf.constant([[1.0], [3.0]]))
    assert norm.moving_mean.numpy().tolist() == [2]
    cell = tf.nn.rnn_cell.LSTMCell(4)
    output, _ = defun(lambda x, s: cell(x, s))(tf.ones([2, 3]), cell.zero_state(2, tf.float32))
    assert output.shape == (2, 4) and len(cell.trainable_variables) == 2


def test_gradients_are_those_of_the_call_that_was_made():
    """Nothing is drawn or written again for the gradient."""
    w = tf.Variable([2.0, 3.0])
    calls = tf.Variable(0)

    @tf.function
    def noisy(x: Any) -> Any:
        calls.assign_add(1)
        noise = tf.random_uniform([2])
        return tf.reduce_sum(w * x * noise), noise

    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            x = tf.constant([1.0, 4.0])
            tape.watch(x)
            loss, noise = noisy(x)
            extra = loss * 2.0
        np.testing.assert_allclose(tape.gradient(extra, x), 2 * w.numpy() * noise.numpy(), 1e-6)
        np.testing.assert_allclose(tape.gradient(loss, w), x.numpy() * noise.numpy(), 1e-6)
    assert calls.numpy() == 3


def test_gradients_go_through_loops_and_branches_and_twice():
    @tf.function
    def power(x: Any, n: Any) -> Any:
        result = tf.ones_like(x)
        for _ in tf.range(n):
            result *= x
        return result if x > 0 else -result

    with tf.GradientTape() as outer:
        x = tf.constant(2.0)
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = power(x, tf.constant(4))
        first = inner.gradient(y, x)
    assert (y.numpy(), first.numpy(), outer.gradient(first, x).numpy()) == (16, 32, 48)


def test_second_derivatives_go_through_what_a_call_hands_out_or_are_refused():
    waves = tf.function(lambda x: tf.sin(x * x) * tf.exp(x))
    noisy = tf.function(lambda x: tf.square(x * x + tf.random_uniform([])))

    def twice(function: Any) -> Any:
        with tf.GradientTape() as outer:
            x = tf.constant(0.7)
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x).numpy()

    assert twice(waves) == pytest.approx(twice(waves.python_function), rel=1e-5)
    with pytest.raises(tf.errors.UnimplementedError, match="second derivative .* is random"):
        twice(noisy)


def test_a_function_calls_functions_and_differentiates_within():
    w = tf.Variable(3.0)
    square = tf.function(lambda x: x * x * w)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = square(x)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    assert [round(float(step(tf.constant(1.0))), 5) for _ in range(3)] == [3.0, 2.9, 2.8]


def test_what_has_no_gradient_is_told_when_it_is_asked_for():
    @tf.function
    def rounded(x: Any) -> Any:
        return tf.bitcast(x, tf.int32), x * 2.0

    with tf.GradientTape() as tape:
        x = tf.constant(1.5)
        tape.watch(x)
        bits, twice = rounded(x)
    assert bits.numpy() == 0x3FC00000 and tape.gradient(twice, x).numpy() == 2


def test_iterators_and_datasets_are_arguments():
    following, runs = counted(lambda it: next(it) + 1)
    for _ in range(2):
        iterator = iter(tf.data.Dataset.range(2))
        assert [following(iterator).numpy(), following(iterator).numpy()] == [1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            following(iterator)
    assert runs == [1]

    @tf.function
    def total(dataset: Any) -> Any:
        found = tf.constant(0, tf.int64)
        for x in dataset:
            found += x
        return found

    assert [total(tf.data.Dataset.range(n)).numpy() for n in (3, 5)] == [3, 10]


def test_composites_are_arguments_of_concrete_functions(tmp_path):
    @tf.function
    def total(x):
        if isinstance(x, tf.SparseTensor):
            return tf.sparse.reduce_sum(x)
        sums = tf.constant(0, tf.int64)
        for value in x:
            sums += value
        return sums

    numbers = total.get_concrete_function(tf.data.Dataset.range(3))
    assert not numbers.graph.captures
    assert total.get_concrete_function(tf.data.Dataset.range(5).map(lambda v: v)) is numbers
    assert numbers(tf.data.Dataset.range(5)).numpy() == 10
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], [2, 2])
    entries = total.get_concrete_function(sparse)
    assert entries is not numbers and entries(sparse).numpy() == total(sparse).numpy() == 7.0
    with pytest.raises(TypeError, match="takes"):
        entries(sparse.indices)
    module = tf.Module()
    module.total = total
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load_v2(str(tmp_path))
    assert loaded.total(sparse).numpy() == 7.0


def test_errors_have_their_class():
    @tf.function
    def checked(x: Any) -> Any:
        with tf.control_dependencies([tf.assert_positive(x)]):
            return tf.identity(x)

    assert checked(tf.constant(1)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        checked(tf.constant(-1))


def test_concrete_functions_are_one_operation_too():
    found = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([None], tf.int32))
    assert found(tf.constant([1, 2])).numpy().tolist() == [2, 3]


def test_functions_run_as_python_when_they_are_told_to():
    seen = []
    look = tf.function(lambda x: seen.append(x.numpy()) or x)
    run_functions_eagerly(True)
    try:
        look(tf.constant(7))
    finally:
        run_functions_eagerly(False)
    assert seen == [7]
    with pytest.raises(AttributeError, match="numpy"):
        look(tf.constant(7))


def test_eager_tensors_tell_no_graph():
    x = tf.constant([1.0])
    assert not hasattr(x, "graph")
    with pytest.raises(AttributeError, match="meaningless when eager execution is enabled"):
        _ = x.graph
    assert repr(tf.constant(2.5)).endswith("numpy=2.5>")


def test_constants_take_sizes_of_dimensions():
    x = tf.ones([2, 3])
    assert tf.constant([x.shape[0], -1]).numpy().tolist() == [2, -1]
    with pytest.raises(ValueError, match="unknown Dimension"):
        tf.constant([tf.Dimension(None), 1])


def test_a_variable_may_be_made_of_an_argument():
    class Running(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total: Any = None
            self.length: Any = None
            self.runs = 0

        @tf.function
        def __call__(self, x: Any) -> Any:
            self.runs += 1
            if self.total is None:
                self.total = tf.Variable(2.0 * x, name="total")
                self.length = tf.Variable(tf.shape(x)[0], trainable=False, dtype=tf.int32)
            self.total.assign_add(x)
            return self.total * tf.cast(self.length, tf.float32)

    running = Running()
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        first = running(x)
    assert first.numpy().tolist() == [6, 12]
    assert tape.gradient(first, running.total).numpy().tolist() == [2, 2]
    # The trace that gives the variables their values serves once, and no later one does.
    assert [running(x).numpy().tolist() for _ in range(2)] == [[8, 16], [10, 20]]
    assert running.runs == 2 and running.total.numpy().tolist() == [5, 10]
    assert running.total.name == "total:0" and running.trainable_variables == (running.total,)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[2\].* shape \[3\]"):
        running(tf.ones([3]))


def test_of_a_variable_of_an_argument_whose_call_failed_the_value_comes_from_the_next_call():
    made: list[Any] = []

    @tf.function
    def divide(x: Any, by: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_positive(by)]):
            start = x // by
        if not made:
            made.append(tf.Variable(start, dtype=tf.int32))
        return made[0] + 1

    with pytest.raises(tf.errors.InvalidArgumentError):
        divide(tf.constant(6), tf.constant(0))
    assert divide(tf.constant(6), tf.constant(3)).numpy() == 3
    assert divide(tf.constant(60), tf.constant(3)).numpy() == 3


def test_calls_use_what_was_traced_for_their_arguments():
    runs = []

    @tf.function
    def double(x: Any) -> Any:
        runs.append(x)
        return 2 * x

    concrete = double.get_concrete_function(tf.TensorSpec([None], tf.float32, "named"))
    assert double(tf.ones([2])).numpy().tolist() == [2, 2] and len(runs) == 2
    named = double.get_concrete_function(tf.TensorSpec([3], tf.float32, "named"))
    assert double(tf.ones([3])).numpy().tolist() == [2, 2, 2] and len(runs) == 3
    assert concrete.inputs[0].op.name == named.inputs[0].op.name == "named"


def test_derivatives_of_any_order_of_a_function_of_a_variable():
    v = tf.Variable(1.0)
    cosine = tf.function(lambda: tf.cos(v))
    with tf.GradientTape(persistent=True) as tape:
        y = cosine()
        found = [y.numpy()]
        for _ in range(4):
            (y,) = tape.gradient(y, [v])
            found.append(y.numpy())
    want = [np.cos(1), -np.sin(1), -np.cos(1), np.sin(1), np.cos(1)]
    np.testing.assert_allclose(found, want, rtol=1e-5)


def test_arguments_may_be_called_what_no_node_is():
    assert tf.function(lambda _: _ + _)(tf.constant(1.0)).numpy() == 2.0
    assert tf.function(lambda _a, **more: _a + more["_b"])(1.0, _b=tf.constant(2.0)).numpy() == 3.0


def test_all_tensors_of_a_concrete_function_may_be_given_by_place():
    spec = tf.TensorSpec([], tf.float32)
    concrete = tf.function(lambda x, **more: x[0] - x[1] * more["d"]).get_concrete_function(
        (spec, spec), d=spec
    )
    one, two, three = (tf.constant(x) for x in (1.0, 2.0, 3.0))
    assert concrete(one, two, three).numpy() == -5.0
    assert concrete(one, d=three, x_1=two).numpy() == -5.0
