"""Iterators: where sessions stand in datasets."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset, Iterator


def test_an_iterator_wants_to_be_initialized():
    element = Dataset.range(3).make_initializable_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element)


def test_the_end_is_told_each_time():
    element = Dataset.range(1).make_one_shot_iterator().get_next(name="next")
    assert element.op.name == "next"
    with tf.Session() as session:
        session.run(element)
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                session.run(element)


def test_one_shot_datasets_stand_alone():
    table = tf.Variable([1.0])
    with pytest.raises(ValueError, match="Failed to create a one-shot iterator"):
        Dataset.from_tensors(table).make_one_shot_iterator()
    with pytest.raises(ValueError, match="Cannot capture a placeholder"):
        Dataset.from_tensors(tf.placeholder(tf.int32)).make_one_shot_iterator()
    assert Dataset.range(3).make_one_shot_iterator() is not None
    with pytest.raises(ValueError, match="does not have an initializer"):
        _ = Dataset.range(3).make_one_shot_iterator().initializer


def test_reinitializable_iterators():
    iterator = Iterator.from_structure(tf.int64, [])
    element = iterator.get_next()
    first = iterator.make_initializer(Dataset.range(2))
    second = iterator.make_initializer(Dataset.range(10, 12))
    with tf.Session() as session:
        session.run(first)
        assert session.run(element) == 0
        session.run(second)
        assert [session.run(element) for _ in range(2)] == [10, 11]
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(Dataset.from_tensors("x"))
    with pytest.raises(TypeError, match="Expected output shapes compatible"):
        iterator.make_initializer(Dataset.from_tensors(np.zeros(3, np.int64)))


def test_feedable_iterators():
    one = Dataset.range(5).make_one_shot_iterator()
    other = Dataset.range(10, 15).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    element = Iterator.from_string_handle(handle, tf.int64, []).get_next()
    wrong = Iterator.from_string_handle(handle, tf.float32, []).get_next()
    with tf.Session() as session:
        session.run(other.initializer)
        a, b = session.run([one.string_handle(), other.string_handle()])
        assert [session.run(element, {handle: h}) for h in (a, b, a)] == [0, 10, 1]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Data type mismatch at component 0"
        ):
            session.run(wrong, {handle: a})
        with pytest.raises(tf.errors.InvalidArgumentError, match="string handle"):
            session.run(element, {handle: b"nothing"})


def test_two_fetches_take_two_elements():
    iterator = Dataset.range(10).make_one_shot_iterator()
    a, b = iterator.get_next(), iterator.get_next()
    with tf.Session() as session:
        assert sorted(session.run([a, b])) == [0, 1]


def test_several_threads_share_an_iterator():
    element = Dataset.range(200).make_one_shot_iterator().get_next()
    found, lock = [], threading.Lock()
    with tf.Session() as session:

        def work():
            try:
                while True:
                    value = int(session.run(element))
                    with lock:
                        found.append(value)
            except tf.errors.OutOfRangeError:
                pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(200))


def test_optionals():
    iterator = Dataset.range(1).make_initializable_iterator()
    found = tf.data.experimental.get_next_as_optional(iterator)
    has, value = found.has_value(), found.get_value()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run([has, value]) == [True, 0]
        assert not session.run(has)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
            session.run(value)


# ---------------------------------------------------------------- saving
def optional(value):
    return tf.data.experimental.Optional.from_value(value)


def test_sums_and_zeros_of_optionals():
    spec = optional(0.0).value_structure
    none = tf.data.experimental.Optional.none_from_structure(spec)

    def of(variant, like):
        return type(like)(variant, like.value_structure)

    def total(*given):
        return of(tf.add_n([o._variant_tensor for o in given]), given[0])

    pair = total(optional((1.0, [2, 3])), optional((3.0, [4, 5])))
    nested = total(optional(optional(1.0)), optional(optional(2.0)))
    zeros = of(tf.zeros_like(pair._variant_tensor), pair)
    within = of(tf.zeros_like(nested._variant_tensor), nested)
    with tf.Session() as sess:
        assert_equal(sess.run(pair.get_value()), (4.0, [6, 8]))
        assert sess.run(nested.get_value().get_value()) == 3.0
        assert_equal(sess.run(zeros.get_value()), (0.0, [0, 0]))
        assert sess.run(within.get_value().get_value()) == 0.0
        nothing = (total(none, none), of(tf.zeros_like(none._variant_tensor), none))
        assert sess.run([o.has_value() for o in nothing]) == [False, False]
        with pytest.raises(tf.errors.InvalidArgumentError, match="one has a value"):
            sess.run(total(optional(1.0), none).has_value())
        with pytest.raises(tf.errors.InvalidArgumentError, match="different numbers of components"):
            sess.run(total(optional(1.0), optional((1.0, 2.0))).has_value())
        with pytest.raises(tf.errors.InvalidArgumentError, match="different kinds"):
            lists = tf.raw_ops.EmptyTensorList(
                element_shape=-1, max_num_elements=-1, element_dtype=tf.float32
            )
            sess.run(tf.add_n([none._variant_tensor, lists]))


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def shuffled():
    return Dataset.range(12).shuffle(5, seed=3).repeat(2).batch(4)


def mapped():
    return Dataset.range(9).map(lambda x: (x, x * x), num_parallel_calls=3).prefetch(2)


def flattened():
    return Dataset.range(4).flat_map(lambda x: Dataset.range(x)).cache().repeat(2)


def grouped():
    return Dataset.range(16).apply(
        tf.data.experimental.group_by_window(lambda x: x % 2, lambda _, d: d.batch(3), 3)
    )


def interleaved():
    return Dataset.range(1, 4).interleave(lambda x: Dataset.from_tensors(x).repeat(x), 2, 1)


def several():
    parts = (Dataset.range(6).skip(1).take(4), Dataset.range(10).filter(lambda x: x > 3))
    return Dataset.zip(parts).concatenate(Dataset.zip((Dataset.range(1), Dataset.range(1))))


def scanned():
    seven = Dataset.range(7).apply(tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s)))
    return seven.window(2, 1).flat_map(lambda d: d.batch(2)).apply(tf.data.experimental.unbatch())


@pytest.mark.parametrize(
    "make", [shuffled, mapped, flattened, grouped, interleaved, several, scanned]
)
def test_a_resumed_iterator_gives_exactly_what_was_left(make, resumed, tmp_path):
    resumed(make, tmp_path, (0, 3, 5))


def test_a_damaged_state_is_refused(tmp_path):
    from opdock.kernels.data import state

    saved = state.save({"next": 3, "elements": [(np.arange(3), np.array(b"x", object))]})
    loaded = state.load(saved)
    assert loaded["next"] == 3 and loaded["elements"][0][0].tolist() == [0, 1, 2]
    for damaged in (b"", saved[: len(saved) // 2], b"\xff" * 20):
        with pytest.raises(tf.errors.DataLossError, match="damaged"):
            state.load(damaged)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a saved iterator"):
        state.load(3)


def test_the_state_of_another_dataset_is_refused(tmp_path):
    path = str(tmp_path / "state")
    for i, dataset in enumerate((Dataset.range(4), Dataset.range(4).shuffle(2))):
        iterator = dataset.make_initializable_iterator()
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        saveable.name = saveable.specs[0].name = "state"
        saver = tf.train.Saver({"state": saveable})
        with tf.Session() as session:
            session.run(iterator.initializer)
            if not i:
                saver.save(session, path, write_meta_graph=False)
            else:
                with pytest.raises(tf.errors.DataLossError, match="not one of the dataset"):
                    saver.restore(session, path)
