"""Statistics as objects, of programs of both kinds."""

import pytest

import opdock as tf
from opdock.eager.modes import eager_mode

tfe_metrics = tf.contrib.eager.metrics


def test_means_at_once():
    with eager_mode(alone=True):
        mean = tfe_metrics.Mean(name="m")
        mean(1.0)
        mean([2.0, 6.0])
        assert mean.result().numpy() == 3.0 and mean.result().dtype == tf.float64
        mean([8.0, 100.0], weights=[1.0, 0.0])
        assert mean.value()().numpy() == 17.0 / 4
        mean.init_variables()
        mean(5)
        assert mean.result().numpy() == 5.0 and mean.name == "m"
        assert [v.name for v in mean.variables] == ["m/numer:0", "m/denom:0"]


def test_means_in_a_graph():
    with tf.Graph().as_default(), tf.Session() as session:
        mean = tfe_metrics.Mean()
        values = tf.placeholder(tf.float32, [None])
        update, result = mean(values), mean.value()
        session.run(mean.init_variables())
        for batch in ([1.0], [2.0, 6.0]):
            assert session.run(update, {values: batch}).tolist() == batch
        assert session.run(result) == 3.0
        assert tf.get_collection("metric_variables") == mean.variables == tf.local_variables()


@pytest.mark.parametrize(
    ("metric", "labels", "predictions", "wanted"),
    [
        (tfe_metrics.Accuracy, [1, 2, 3], [1, 2, 0], 2 / 3),
        (tfe_metrics.CategoricalAccuracy, [[0, 1], [1, 0]], [[0.2, 0.8], [0.1, 0.9]], 0.5),
        (lambda: tfe_metrics.BinaryAccuracy(0.5), [1, 0], [0.7, 0.9], 0.5),
        (tfe_metrics.SparseAccuracy, [1, 0], [[0.2, 0.8], [0.9, 0.1]], 1.0),
    ],
)
def test_shares_that_are_right(metric, labels, predictions, wanted):
    with eager_mode(alone=True):
        found = metric()
        found(tf.constant(labels), tf.constant(predictions))
        assert found.result().numpy() == pytest.approx(wanted)


def test_what_does_not_fit_is_an_error():
    with eager_mode(alone=True):
        accuracy = tfe_metrics.Accuracy()
        with pytest.raises(tf.errors.InvalidArgumentError, match="are unequal"):
            accuracy([1, 2], [1])
        mean = tfe_metrics.Mean()
        mean(1.0)
        with pytest.raises(RuntimeError, match="except in build"):
            mean.add_variable("x", [])
        with pytest.raises(TypeError, match="must be the same type"):
            mean.aggregate([accuracy])
        other = tfe_metrics.Mean()
        other(5.0)
        mean.aggregate([other])
        assert mean.result().numpy() == 3.0
        with pytest.raises(NotImplementedError, match="build"):
            tfe_metrics.Metric()(1)
