"""`tf.contrib.training`: hyperparameters, buckets, samples."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.mapping import resolve

HParams = tf.contrib.training.HParams


def test_values_keep_the_type_of_the_first() -> None:
    params = HParams(rate=0.1, steps=10, name="a", sizes=[1, 2], on=False)
    assert params.parse("rate=1,steps=20,name=b c,sizes=[3 4,5],on=true") is params
    assert params.values() == {
        "rate": 1.0, "steps": 20, "name": "b c", "sizes": [3, 4, 5], "on": True
    }  # fmt: skip
    assert params.rate == 1.0 and isinstance(params.rate, float)
    assert "steps" in params and "other" not in params
    assert HParams(**params.values()).parse_json(params.to_json()).values() == params.values()
    params.del_hparam("name")
    assert params.get("name", 3) == 3 and params.get("steps", 4) == 20
    with pytest.raises(ValueError, match=r"incompatible with default=1.5"):
        params.get("steps", 1.5)


def test_hyperparameters_as_a_message():
    given = {"rate": 0.5, "steps": 10, "name": "a", "on": False, "deep": [0.25, 1.5]}
    given |= {"sizes": [1, 2], "words": ["x", "y"], "flags": [True, False]}
    message = HParams(**given).to_proto()
    kinds = {name: kept.WhichOneof("kind") for name, kept in message.hparam.items()}
    assert kinds["steps"] == "int64_value" and kinds["on"] == "bool_value"
    assert kinds["words"] == "bytes_list" and kinds["deep"] == "float_list"
    again = type(message).FromString(message.SerializeToString())
    for read in (HParams(hparam_def=again), HParams.from_proto(again)):
        assert read.values() == given
        assert {n: type(v) for n, v in read.values().items()} == {
            n: type(v) for n, v in given.items()
        }
    module = "contrib.training.python.training.hparam_pb2"
    assert isinstance(message, resolve.lookup(module, "HParamDef"))
    with pytest.raises(AssertionError, match="must be an HParamDef"):
        HParams(hparam_def=1)
    with pytest.raises(ValueError, match="Unsupported parameter type"):
        HParams(what=object()).to_proto()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps=1.5", "Could not parse hparam 'steps' of type 'int' with value '1.5'"),
        ("other=1", "Unknown hyperparameter type for other"),
        ("steps=1,steps=2", "Multiple assignments to variable 'steps'"),
        ("steps", "Malformed hyperparameter value: steps"),
        ("on=perhaps", "Could not parse hparam 'on' of type 'bool'"),
        ("sizes=3", "Must pass a list for multi-valued parameter: sizes"),
        ("sizes[1]=[2]", "Assignment of a list to a list index"),
    ],
)
def test_text_that_does_not_fit_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        HParams(steps=1, sizes=[1], on=True).parse(text)


def test_elements_are_parsed_by_index() -> None:
    found = tf.contrib.training.parse_values("a[1]=3,a[0]=2,b=4", {"a": int}, ignore_unknown=True)
    assert found == {"a": {1: 3, 0: 2}}


def test_reserved_names_and_other_types() -> None:
    with pytest.raises(ValueError, match="Hyperparameter name is reserved: parse"):
        HParams(parse=1)
    with pytest.raises(ValueError, match="cannot be empty: a"):
        HParams(a=[])
    with pytest.raises(ValueError, match="Could not cast hparam 'a'"):
        HParams(a=1).set_hparam("a", 1.5)


def batches(found: object, count: int) -> list[object]:
    """The next batches, with the queue runners that the graph has."""
    with tf.Session() as sess:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        taken = [sess.run(found) for _ in range(count)]
        coordinator.request_stop()
        sess.close()
        coordinator.join(threads)
    return taken


def test_sentences_of_about_one_length_are_batched() -> None:
    with tf.Graph().as_default():
        number = tf.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
        length = number % 6 + 1
        words = {"words": tf.fill([length], number), "number": number}
        found = tf.contrib.training.bucket_by_sequence_length(
            length, words, 2, [3, 5], dynamic_pad=True, allow_smaller_final_batch=True
        )
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            seen = []
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    lengths, batch = sess.run(found)
                    assert len({(n >= 3) + (n >= 5) for n in lengths}) == 1
                    assert batch["words"].shape == (len(lengths), max(lengths))
                    for n, row, of in zip(lengths, batch["words"], batch["number"], strict=True):
                        assert row.tolist() == [of] * n + [0] * (max(lengths) - n)
                    seen += batch["number"].tolist()
            coordinator.request_stop()
            coordinator.join(threads)
    assert sorted(seen) == list(range(12))


def test_buckets_have_sizes_of_their_own() -> None:
    with tf.Graph().as_default():
        number = tf.train.range_input_producer(10, shuffle=False).dequeue()
        which, batch = tf.contrib.training.bucket([number], number % 2, [2, 3], 2)
        assert batch.get_shape().as_list() == [None]
        for kind, numbers in batches([which, batch], 6):
            assert len(numbers) == (2, 3)[kind]
            assert {n % 2 for n in numbers} == {kind}


@pytest.mark.parametrize(
    ("boundaries", "error", "message"),
    [
        ([], ValueError, "bucket_boundaries must not be empty"),
        ([3, 3], ValueError, "must contain sequential increasing lengths, but saw: 3 before 3"),
        ([1.5, 3], TypeError, "bucket boundaries must be integers, but saw: 1.5 and 3"),
        (4, TypeError, "bucket_boundaries must be a list or tuple, but received: 4"),
    ],
)
def test_boundaries_that_do_not_fit(boundaries, error, message) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        tf.contrib.training.bucket_by_sequence_length(1, [tf.constant(1)], 2, boundaries)


def test_lists_by_bucket_that_do_not_fit() -> None:
    bucket = tf.contrib.training.bucket
    with pytest.raises(ValueError, match="batch_size is a list it must have num_buckets elements"):
        bucket([tf.constant(1)], 0, [1, 2, 3], 2)
    with pytest.raises(ValueError, match=r"must have exactly num_buckets \(2\) elements"):
        bucket([tf.constant(1)], 0, 1, 2, bucket_capacities=[1])


# ---------------------------------------------------------------- samples
def test_classes_come_as_often_as_wanted() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        labels = tf.cast(tf.random_uniform([20], seed=2) < 0.1, tf.int32)
        values = tf.cast(labels, tf.float32) + 5
        (value,), label = tf.contrib.training.stratified_sample(
            [values], labels, [0.5, 0.5], 10, init_probs=[0.9, 0.1], enqueue_many=True
        )
        found = batches([value, label], 20)
    shares = np.array([label for _, label in found])
    assert 0.35 < shares.mean() < 0.65
    np.testing.assert_array_equal(np.array([value for value, _ in found]), shares + 5)


def test_examples_are_taken_with_their_probability() -> None:
    with tf.Graph().as_default():
        x = tf.random_uniform([], seed=4)
        (taken,) = tf.contrib.training.rejection_sample(
            [x], lambda found: tf.cast(found[0] > 0.5, tf.float32), 8, runtime_checks=True
        )
        assert np.min(batches(taken, 2)) > 0.5
        (never,) = tf.contrib.training.rejection_sample(
            [x], lambda found: found[0] + 1.5, 8, runtime_checks=True
        )
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run("rejection_sample_1/prob_with_checks:0")
        assert never.shape.as_list() == [8]


def test_shares_are_checked() -> None:
    sample = tf.contrib.training.stratified_sample
    with tf.Graph().as_default():
        labels, x = tf.constant([0, 1]), tf.constant([[1.0], [2.0]])
        with pytest.raises(ValueError, match="must have the same length"):
            sample([x], labels, [0.5, 0.5], 2, init_probs=[1.0, 0.0, 0.0], enqueue_many=True)
        with pytest.raises(ValueError, match="not compatible"):
            sample([x[:1]], labels, [0.5, 0.5], 2, init_probs=[0.5, 0.5], enqueue_many=True)


def test_examples_come_in_proportion_to_weights() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        ids = tf.range(1000)
        weights = tf.cast(ids % 2, tf.float32) * 2 + 1
        (found,), rates = tf.contrib.training.weighted_resample([ids], weights, 0.5, seed=2)
        (all_twice,) = tf.contrib.training.resample_at_rate([ids], tf.fill([1000], 2.0), seed=3)
        session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        some, rate, twice = session.run([found, rates, all_twice])
    assert 400 < len(some) < 600 and 1850 < len(twice) < 2150
    odd = some % 2 == 1
    assert 0.65 < odd.mean() < 0.85
    np.testing.assert_allclose(rate, np.where(odd, 0.75, 0.25), rtol=1e-4)


def test_the_rate_falls_and_begins_anew() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int32, [])
        same = tf.contrib.training.sgdr_decay(2.0, step, 10, t_mul=1.0, m_mul=0.5)
        longer = tf.contrib.training.sgdr_decay(2.0, step, 10)
        found = [session.run([same, longer], {step: n}) for n in (0, 5, 10, 20, 30)]
    np.testing.assert_allclose(np.array(found)[:, 0], [2, 1, 1, 0.5, 0.25], atol=1e-5)
    np.testing.assert_allclose(np.array(found)[:, 1], [2, 1, 2, 1, 2], atol=1e-2)
    with pytest.raises(ValueError, match="global_step is required"):
        tf.contrib.training.sgdr_decay(2.0, None, 10)


def test_variables_go_where_there_is_room() -> None:
    training = tf.contrib.training
    strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
            found = [tf.Variable(tf.zeros([n])) for n in (100, 10, 10, 200)]
        assert [v.device[-1] for v in found] == ["0", "1", "1", "1"]
        other = training.RandomStrategy(7)
        assert {other(v.op) for v in found} <= set(range(7))
        assert other(found[0].op) == training.RandomStrategy(7)(found[0].op)
        with pytest.raises(ValueError, match="must have a single output"):
            training.byte_size_load_fn(tf.no_op())
