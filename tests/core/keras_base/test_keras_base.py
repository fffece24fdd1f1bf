"""What Keras 2.3 takes from TensorFlow: recurrences, functions, sessions, losses."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.keras_base import function, numbers, rnn, settings, state

# What `tensorflow.python.keras.backend` is where no library has it.
K: Any = SimpleNamespace(
    **{
        name: value
        for module in (settings, state, function, rnn, numbers)
        for name, value in vars(module).items()
        if not name.startswith("_")
    }
)
RNG = np.random.RandomState(1)
VALUES = RNG.randn(2, 4, 3).astype(np.float32)
KEPT = np.array([[1, 1, 0, 1], [0, 1, 1, 0]], bool)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield
        K.set_session(None)


def cumulated(mask: Any, zero: bool, backwards: bool) -> tuple[Any, Any, Any]:
    """Outputs, the last one and the last state of `state + 2 * state` in NumPy."""
    values, kept = (VALUES[:, ::-1], KEPT[:, ::-1]) if backwards else (VALUES, KEPT)
    state, last, outputs = np.ones((2, 3)), np.zeros((2, 3)), []
    for t in range(4):
        new = state + values[:, t]
        seen = kept[:, t, None] if mask else np.ones((2, 1), bool)
        last = np.where(seen, 2 * new, 0 if zero else last)
        state = np.where(seen, new, state)
        outputs.append(last)
    return outputs[-1], np.stack(outputs, 1), state


@pytest.mark.parametrize("unroll", [False, True], ids=["loop", "unrolled"])
@pytest.mark.parametrize(
    ("mask", "zero", "backwards"),
    [(False, False, False), (True, False, False), (True, True, False), (True, False, True)],
)
def test_a_recurrence_is_its_steps(unroll: bool, mask: bool, zero: bool, backwards: bool) -> None:
    def step(x: Any, states: Any) -> Any:
        state, factor = states
        return factor * (state + x), [state + x]

    inputs = tf.placeholder_with_default(VALUES, [None, 4, 3])
    last, outputs, (state,) = K.rnn(
        step, inputs, [tf.ones_like(inputs[:, 0])], go_backwards=backwards,
        mask=tf.constant(KEPT) if mask else None, constants=[tf.constant(2.0)], unroll=unroll,
        input_length=4, zero_output_for_mask=zero,
    )  # fmt: skip
    assert outputs.shape.as_list()[1:] == [4, 3]
    slope = tf.gradients(outputs, inputs)[0]
    with tf.Session() as sess:
        found = sess.run([last, outputs, state, slope])
    for value, wanted in zip(found, cumulated(mask, zero, backwards), strict=False):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    if not mask:  # a time is in its own output and in all that follow
        np.testing.assert_allclose(found[3][0, :, 0], [8, 6, 4, 2])


def test_steps_cannot_be_written_out_if_their_number_is_not_known() -> None:
    inputs = tf.placeholder(tf.float32, [2, None, 3])
    with pytest.raises(ValueError, match="Unrolling requires a fixed number of timesteps"):
        K.rnn(lambda x, s: (x, s), inputs, [], unroll=True)
    with pytest.raises(ValueError, match="No initial states provided"):
        K.rnn(lambda x, s: (x, s), inputs, [], mask=tf.ones([2, 4]))


def test_a_function_runs_its_updates_and_initializes_variables() -> None:
    x, v = K.placeholder((None,), name="x"), K.variable([1.0, 2.0])
    total = tf.reduce_sum(x * v)
    seen: list[Any] = []
    extra = tf.constant(5.0)
    f = K.function([x], [total, v], updates=[(v, v * 10)], fetches=[extra])
    f.fetch_callbacks[f.fetches[0]] = seen.append
    assert f([np.array([3.0, 4.0])])[0] == 11.0
    assert f([np.array([3.0, 4.0])])[0] == 110.0
    assert seen == [5.0, 5.0]
    K.set_value(v, [7.0, 8.0])
    K.batch_set_value([(v, [1.0, 1.0])])
    assert K.batch_get_value([v])[0].tolist() == [1.0, 1.0]
    # What is fed may be a tensor, whose value is fed then.
    assert f([tf.constant([3.0, 4.0])])[0] == 7.0
    with pytest.raises(ValueError, match="Some keys in session_kwargs"):
        K.function([x], [total], target="here")


def test_the_learning_phase_is_fed_or_set() -> None:
    phase = K.learning_phase()
    assert phase.op.name == "keras_learning_phase"
    assert K.learning_phase() is phase
    with K.learning_phase_scope(1):
        assert K.learning_phase() == 1
    assert K.learning_phase() is phase
    with pytest.raises(ValueError, match="Expected learning phase to be 0 or 1"):
        K.set_learning_phase(2)
    assert [K.get_uid("dense"), K.get_uid("dense"), K.get_uid("conv")] == [1, 2, 1]


def test_losses_see_through_activations() -> None:
    logits = tf.constant([[30.0, 0.0, -3.0], [1.0, 2.0, 40.0]])
    classes, ones = tf.constant([1, 0]), tf.one_hot([1, 0], 3)
    exact = -np.array([-30.0, -39.0])
    p = tf.nn.softmax(logits)
    flat = tf.identity(tf.constant([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]))
    both = [
        K.categorical_crossentropy(ones, p),
        K.categorical_crossentropy(ones, logits, from_logits=True),
        K.sparse_categorical_crossentropy(classes, p),
        K.sparse_categorical_crossentropy(classes, logits, from_logits=True),
    ]
    plain = [
        K.categorical_crossentropy(ones, flat),
        K.sparse_categorical_crossentropy(classes, flat),
    ]
    two = K.binary_crossentropy(tf.constant([1.0, 0.0]), tf.sigmoid(tf.constant([-40.0, 50.0])))
    with tf.Session() as sess:
        for found in sess.run(both):
            np.testing.assert_allclose(found, exact, rtol=1e-5)
        for found in sess.run(plain):
            np.testing.assert_allclose(found, -np.log([0.5, 0.6]), rtol=1e-5)
        np.testing.assert_allclose(sess.run(two), [40.0, 50.0], rtol=1e-5)
        np.testing.assert_allclose(
            sess.run(K.hard_sigmoid(tf.constant([-9.0, 0.0, 1.0, 9.0]))), [0, 0.5, 0.7, 1]
        )


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_classes_may_be_along_any_axis(axis: int) -> None:
    rng = np.random.default_rng(0)
    logits = tf.constant(rng.normal(size=[2, 4, 3]).astype(np.float32))
    classes = rng.integers(0, [2, 4, 3][axis], np.delete([2, 4, 3], axis))
    p = tf.nn.softmax(logits, axis)
    asked = [
        K.sparse_categorical_crossentropy(classes, p, axis=axis),
        K.sparse_categorical_crossentropy(classes, tf.identity(p), axis=axis),
        K.sparse_categorical_crossentropy(classes, logits, from_logits=True, axis=axis),
    ]
    with tf.Session() as sess:
        *found, p = sess.run([*asked, p])
    wanted = -np.log(np.take_along_axis(p, np.expand_dims(classes, axis), axis).squeeze(axis))
    for one in found:
        np.testing.assert_allclose(one, wanted, rtol=1e-4)
    with pytest.raises(ValueError, match="unknown rank"):
        K.sparse_categorical_crossentropy(classes, tf.placeholder(tf.float32), axis=1)


def test_the_numbers_types_are_checked() -> None:
    assert [K.floatx(), K.image_data_format()] == ["float32", "channels_last"]
    with pytest.raises(ValueError, match="Unknown floatx type: int8"):
        K.set_floatx("int8")
    with pytest.raises(ValueError, match="Unknown data_format: nowhere"):
        K.set_image_data_format("nowhere")
    drawn = K.random_binomial([1000], 0.25, seed=3)
    with tf.Session() as sess:
        assert 200 < sess.run(drawn).sum() < 300
