"""Gradients of what a tape has watched."""

import gc
import weakref

import numpy as np
import pytest

import opdock as tf


def test_gradients_of_tensors_and_variables():
    x, v = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * v
    dx, dv = tape.gradient(y, [x, v])
    assert (dx.numpy(), dv.numpy()) == (12.0, 9.0)
    with pytest.raises(RuntimeError, match="only be called once"):
        tape.gradient(y, x)


def test_what_is_not_watched_has_no_gradient():
    x, frozen = tf.constant(3.0), tf.Variable(2.0, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        y = x * frozen
    assert tape.gradient(y, x) is None and tape.gradient(y, frozen) is None
    zero = tape.gradient(y, x, unconnected_gradients="zero")
    assert zero.numpy() == 0.0


def test_second_order():
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert first.numpy() == 27.0 and outer.gradient(first, x).numpy() == 18.0


def test_stops_and_resets():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * x
        w = y + z
    assert tape.gradient(w, x).numpy() == 4.0
    assert tape.gradient(z, x) is None


def test_variables_in_the_order_in_which_they_were_read():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        b * a * b
    assert [id(v) for v in tape.watched_variables()] == [id(b), id(a)]


def test_jacobians():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stack([x[0] * x[1], x[0] + x[1]])
    np.testing.assert_allclose(tape.jacobian(y, x), [[2, 1], [1, 1]])
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        squares = rows * rows
    np.testing.assert_allclose(
        tape.batch_jacobian(squares, rows), [[[2, 0], [0, 4]], [[6, 0], [0, 8]]]
    )


def test_rows_of_an_embedding_have_slices_as_gradient():
    table = tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.embedding_lookup(table, [2, 2, 0]))
    grad = tape.gradient(y, table)
    assert isinstance(grad, tf.IndexedSlices)
    tf.train.GradientDescentOptimizer(1.0).apply_gradients([(grad, table)])
    assert table.numpy().ravel().tolist() == [0.0, 2.0, 1.0]


def test_custom_gradients():
    @tf.custom_gradient
    def doubled(x):
        return x * 2, lambda dy: dy * 100

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = doubled(x)
    assert y.numpy() == 2.0 and tape.gradient(y, x).numpy() == 100.0


def test_a_tape_that_is_gone_keeps_nothing():
    x = tf.constant([1.0])
    held = weakref.ref(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    assert tape.gradient(y, x) is not None
    del x, tape
    tf.constant(0)
    gc.collect()
    assert held() is None and y.numpy() == np.exp(np.float32(1))


def test_a_state_that_goes_on_does_not_pull_its_past_along():
    v, state, seen = tf.Variable(0.5), tf.constant(1.0), []
    for _ in range(3):
        with tf.GradientTape() as tape:
            state = tf.tanh(state * v)
        tape.gradient(state, v)
        seen.append(weakref.ref(state))
    tf.constant(0)
    gc.collect()
    assert [s() is not None for s in seen] == [False, False, True]


def test_functions_of_tensorflow_eager():
    tfe, v = tf.contrib.eager, tf.Variable(3.0)
    assert tfe.gradients_function(lambda x, y: x * y)(2.0, 5.0)[0].numpy() == 5.0
    value, (grad,) = tfe.value_and_gradients_function(lambda x, y: x * y, params=["y"])(2.0, 5.0)
    assert (value.numpy(), grad.numpy()) == (10.0, 2.0)
    value, [(grad, variable)] = tfe.implicit_value_and_gradients(lambda: v * v)()
    assert (value.numpy(), grad.numpy(), variable) == (9.0, 6.0, v)
    with pytest.raises(ValueError, match="returns None"):
        tfe.implicit_gradients(lambda: None)()
    with pytest.raises(ValueError, match="No trainable variables"):
        tfe.implicit_gradients(lambda: tf.constant(1.0))()
    with pytest.raises(ValueError, match="all strings or all integers"):
        tfe.gradients_function(lambda x: x, params=["y"])


def test_gradients_of_losses_of_many_classes():
    # The gradient that does not flow is of zeros that were filled in, too many for a constant.
    logits = tf.zeros([64, 40])
    labels = tf.range(64) % 40
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
    found = tape.gradient(loss, logits).numpy()
    assert found[0, 0] == pytest.approx((1 / 40 - 1) / 64) and abs(found.sum()) < 1e-5


def test_a_variable_is_a_target_too():
    v = tf.Variable([[2.0]])
    with tf.GradientTape() as tape:
        pass
    assert tape.gradient(v, v).numpy().tolist() == [[1.0]]
    with tf.GradientTape() as tape:
        y = v * v
    (gradient,) = tape.gradient([y, v], [v])
    assert gradient.numpy().tolist() == [[5.0]]
    with tf.GradientTape(persistent=True) as tape:
        z = 3.0 * v
        assert tape.gradient([z, v], v).numpy().tolist() == [[4.0]]
    assert tape.gradient(v, v).numpy().tolist() == [[1.0]]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        pass
    assert tape.gradient(v, v) is None


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_jacobians_without_elements(shape):
    x = tf.zeros(shape)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.jacobian(y, x).shape == (*shape, *shape)
    assert tape.batch_jacobian(y, x).shape == (*shape, shape[1])
