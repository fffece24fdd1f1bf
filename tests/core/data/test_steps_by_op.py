"""Datasets that TF's own graphs hold, and that no public function makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.data.dataset import VariantDataset
from opdock.data.util import structure, traverse

FEATURES = {
    "words": tf.VarLenFeature(tf.string),
    "a": tf.FixedLenFeature([2], tf.float32, default_value=[1.0, 2.0]),
    "z": tf.FixedLenFeature([], tf.int64, default_value=-1),
}


def example(**values: Any) -> bytes:
    made = tf.train.Example()
    for key, value in values.items():
        kind = {"words": "bytes_list", "a": "float_list", "z": "int64_list"}[key]
        getattr(made.features.feature[key], kind).value.extend(value)
    return made.SerializeToString()


TEXTS = [example(words=[b"x", b"y"], z=[3]), example(a=[5.0, 6.0]), example(words=[b"w"], z=[4])]


def parsed(batches: Any, **attrs: Any) -> Any:
    """What `ParseExampleDataset` makes, as `parse_example_dataset` gives it."""
    given = batches.apply(tf.data.experimental.parse_example_dataset(FEATURES))
    variant = tf.raw_ops.ParseExampleDataset(
        input_dataset=batches._variant_tensor, num_parallel_calls=tf.constant(2, tf.int64),
        dense_defaults=[[1.0, 2.0], tf.constant(-1, tf.int64)], sparse_keys=["words"],
        dense_keys=["a", "z"], sparse_types=[tf.string], dense_shapes=[[2], []],
        **{**structure.flat_structure(given.element_spec), **attrs},
    )  # fmt: skip
    return VariantDataset(variant, given.element_spec), given


def values(dataset: Any) -> list[Any]:
    element = tf.data.make_initializable_iterator(dataset)
    following = element.get_next()
    found = []
    with tf.Session() as session:
        session.run(element.initializer)
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found


@pytest.mark.parametrize("size", [1, 2, 3])
def test_parsed_examples_are_those_of_the_function(size):
    by_op, by_function = parsed(Dataset.from_tensor_slices(TEXTS).batch(size))
    found, expected = values(by_op), values(by_function)
    assert len(found) == len(expected) == -(-3 // size)
    for one, other in zip(found, expected, strict=True):
        for key in ("a", "z"):
            np.testing.assert_array_equal(one[key], other[key])
        for part, wanted in zip(one["words"], other["words"], strict=True):
            assert part.tolist() == wanted.tolist()


def test_what_is_no_example_is_told():
    by_op, _ = parsed(Dataset.from_tensor_slices([b"nothing of the kind"]).batch(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input"):
        values(by_op)


def test_elements_come_later():
    source = Dataset.range(3)
    variant = tf.raw_ops.SleepDataset(
        input_dataset=source._variant_tensor, sleep_microseconds=tf.constant(20_000, tf.int64),
        **structure.flat_structure(source.element_spec),
    )  # fmt: skip
    assert values(VariantDataset(variant, source.element_spec)) == [0, 1, 2]


def test_who_waits_for_one_is_let_go():
    source = Dataset.range(3)
    variant = tf.raw_ops.SleepDataset(
        input_dataset=source._variant_tensor, sleep_microseconds=tf.constant(10**10, tf.int64),
        **structure.flat_structure(source.element_spec),
    )  # fmt: skip
    element = tf.data.make_one_shot_iterator(VariantDataset(variant, source.element_spec))
    following = element.get_next()
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=100))


def test_what_a_dataset_follows_from_is_found_in_its_graph():
    held = Dataset.range(3).repeat(2)
    dataset = Dataset.zip((Dataset.range(4), Dataset.range(5))).flat_map(lambda x, _: held.batch(x))
    found = [op.type for op in traverse.obtain_all_variant_tensor_ops(dataset)]
    assert found[0] == "FlatMapDataset"
    assert sorted(found[1:]) == ["RangeDataset"] * 3 + ["RepeatDataset", "ZipDataset"]


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("inferred", [None, True, False])
def test_what_is_not_known_of_a_tensor_array_stays_so(dynamic, inferred):
    spec = tf.TensorArraySpec([2, 2], tf.int32, dynamic, inferred)
    shape = tf.TensorShape([dynamic, inferred, 2, 2])
    found = structure.convert_legacy_structure(tf.int32, shape, tf.TensorArray)
    assert found == spec
    assert (found._dynamic_size, found._infer_shape) == (dynamic, inferred)
    assert structure.legacy_shapes(found).as_list() == shape.as_list()
