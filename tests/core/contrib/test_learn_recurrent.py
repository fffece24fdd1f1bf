"""The recurrent estimators of `tf.contrib.learn`, and what their models are made of."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.learn import recurrent
from opdock.contrib.learn.recurrent import PredictionType

learn = tf.contrib.learn
PROBLEMS = tf.contrib.learn.ProblemType
# Steps beyond the length of a sequence are there to lead a model astray that looks at them.
STEPS = np.random.RandomState(0).randn(24, 6, 1).astype(np.float32)
LENGTHS = np.random.RandomState(1).randint(2, 7, 24)
LAST = np.array([STEPS[i, n - 1, 0] for i, n in enumerate(LENGTHS)])


def columns():
    return [tf.contrib.layers.real_valued_column("x")]


def of(labels=None, **more):
    def input_fn():
        features = {"x": tf.constant(STEPS), "sequence_length": tf.constant(LENGTHS)}
        features |= {key: tf.constant(value) for key, value in more.items()}
        return features, None if labels is None else tf.constant(labels)

    return input_fn


def made(problem, prediction, **settings):
    return learn.DynamicRnnEstimator(
        problem, prediction, columns(), num_units=4, learning_rate=0.1, optimizer="Adam",
        config=learn.RunConfig(tf_random_seed=3), **settings,
    )  # fmt: skip


def test_a_sequence_has_the_class_of_its_own_last_step(tmp_path):
    labels = (LAST > 0).astype(np.int64)
    model = made(
        PROBLEMS.CLASSIFICATION, PredictionType.SINGLE_VALUE, num_classes=2, cell_type="gru",
        predict_probabilities=True, dropout_keep_probabilities=[1.0, 1.0], model_dir=str(tmp_path),
    )  # fmt: skip
    model.fit(input_fn=of(labels), steps=60)
    found = model.evaluate(input_fn=of(labels), steps=1)
    assert found["accuracy"] > 0.9 and found["global_step"] == 60
    said = list(model.predict(input_fn=of()))
    classes = np.array([each["classes"] for each in said])
    assert np.mean(classes == labels) == pytest.approx(found["accuracy"])
    chances = np.array([each["probabilities"] for each in said])
    np.testing.assert_array_equal(chances.argmax(1), classes)
    assert said[0]["rnn_cell_state_0"].shape == (4,)


def test_each_step_has_a_number_and_what_is_beyond_the_end_does_not_count():
    labels = 2 * STEPS[:, :, 0]
    counted = np.arange(6) < LENGTHS[:, None]
    model = made(PROBLEMS.LINEAR_REGRESSION, PredictionType.MULTIPLE_VALUE)
    model.fit(input_fn=of(labels), steps=5)
    scores = np.array([each["scores"] for each in model.predict(input_fn=of())])
    assert scores.shape == (24, 6)
    found = model.evaluate(input_fn=of(labels), steps=1)
    squares = (scores - labels) ** 2
    assert found["loss"] == pytest.approx(squares[counted].mean(), rel=1e-4)
    astray = np.where(counted, labels, 1e6).astype(np.float32)
    assert model.evaluate(input_fn=of(astray), steps=1)["loss"] == pytest.approx(found["loss"])
    # What comes before changes what is said: the state is fed.
    before = of(rnn_cell_state_0=np.ones([24, 4], np.float32))
    other = np.array([each["scores"] for each in model.predict(input_fn=before)])
    assert np.abs(other - scores)[:, 0].max() > 1e-4


def test_features_of_sequences_are_beside_each_step():
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as session:
        features = {"x": tf.constant(STEPS[:2]), "of": tf.constant([[7.0], [8.0]])}
        context = [layers.real_valued_column("of")]
        steps = session.run(recurrent.build_sequence_input(features, columns(), context))
    np.testing.assert_array_equal(steps[:, :, :1], STEPS[:2])
    np.testing.assert_array_equal(steps[:, :, 1], [[7.0] * 6, [8.0] * 6])


def test_a_state_is_there_as_a_whole_or_not_at_all():
    with tf.Graph().as_default(), tf.Session() as session:
        cell = recurrent.construct_rnn_cell([2, 3], "lstm")
        parts = recurrent.state_tuple_to_dict(cell.zero_state(5, tf.float32))
        assert [p.shape.as_list() for p in parts.values()] == [[5, 2], [5, 2], [5, 3], [5, 3]]
        again = recurrent.dict_to_state_tuple(parts, cell)
        assert [type(part).__name__ for part in again] == ["LSTMStateTuple"] * 2
        assert session.run(again)[1].h.shape == (5, 3)
        assert recurrent.dict_to_state_tuple({"x": 1}, cell) is None
        del parts["rnn_cell_state_2"]
        with pytest.raises(ValueError, match="partially specified"):
            recurrent.dict_to_state_tuple(parts, cell)


def test_dropout_stands_before_each_layer_and_after_the_last():
    with tf.Graph().as_default(), tf.Session() as session:
        cells = [tf.nn.rnn_cell.BasicRNNCell(n, activation=lambda x: x + 5) for n in (40, 50)]
        first, last = recurrent.apply_dropout(cells, [1.0, 1.0, 0.5], random_seed=1)
        x = tf.ones([2, 3])
        outputs = [cell(x, cell.zero_state(2, tf.float32))[0] for cell in (first, last)]
        session.run(tf.global_variables_initializer())
        between, after = session.run(outputs)
        assert np.all(between != 0) and 0 < np.mean(after == 0) < 1
        with pytest.raises(ValueError, match="one greater"):
            recurrent.apply_dropout(cells, [0.5, 0.5])


def test_what_no_recurrent_estimator_can_be():
    single, classes = PredictionType.SINGLE_VALUE, PROBLEMS.CLASSIFICATION
    for what, arguments in {
        "num_classes must be": (classes, single),
        "prediction_type must be": (PROBLEMS.LINEAR_REGRESSION, 7),
        "problem_type must be": (PROBLEMS.UNSPECIFIED, single),
    }.items():
        with pytest.raises(ValueError, match=what):
            made(*arguments)
    with pytest.raises(ValueError, match="predict_probabilities"):
        made(PROBLEMS.LINEAR_REGRESSION, single, predict_probabilities=True)
    with pytest.raises(ValueError, match="supported cell types"):
        recurrent.construct_rnn_cell(3, "tree")


def test_a_long_sequence_is_learnt_a_segment_at_a_time(tmp_path):
    """Each step is the class of the one before it, which a segment's first step has from the state
    that the segment before has left."""
    from opdock.contrib.learn.state_saving_rnn import StateSavingRnnEstimator

    made = np.random.RandomState(2).randint(0, 2, 25)

    def of(labels):
        def input_fn():
            x = tf.constant(made[1:, None].astype(np.float32))
            weight = tf.constant([0.5])
            return {"x": x, "w": weight}, tf.constant(made[:-1]) if labels else None

        return input_fn

    context = [tf.contrib.layers.real_valued_column("w")]
    model = StateSavingRnnEstimator(
        PROBLEMS.CLASSIFICATION, num_unroll=4, batch_size=2, sequence_feature_columns=columns(),
        context_feature_columns=context, num_classes=2, num_units=[8], cell_type="lstm",
        optimizer_type="Adam", learning_rate=0.05, predict_probabilities=True, queue_capacity=8,
        num_threads=1, seed=1, model_dir=str(tmp_path), config=learn.RunConfig(tf_random_seed=1),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="dense Tensor of unknown shape"):  # as in TensorFlow
        model.fit(input_fn=of(True), steps=250)
    assert model.evaluate(input_fn=of(True), steps=20)["accuracy"] > 0.9
    said = next(iter(model.predict(input_fn=of(False), as_iterable=True)))
    assert said["probabilities"].shape == (4, 2)
    assert said["rnn_cell_state_0"].shape == said["rnn_cell_state_1"].shape == (8,)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"problem_type": 0}, "problem_type must be"),
        ({"num_classes": None}, "num_classes must be specified"),
        ({"num_unroll": 0}, "num_unroll must be positive"),
    ],
)
def test_what_segments_cannot_be_made_of(settings, told):
    from opdock.contrib.learn.state_saving_rnn import StateSavingRnnEstimator

    usual = {
        "problem_type": PROBLEMS.CLASSIFICATION, "num_unroll": 2, "batch_size": 1,
        "sequence_feature_columns": columns(), "num_classes": 2, "num_units": 2,
    }  # fmt: skip
    with pytest.raises(ValueError, match=told):
        StateSavingRnnEstimator(**{**usual, **settings})
