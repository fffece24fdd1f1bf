"""Maps in batches: one call of many elements gives what calls one by one give, errors included."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.graph.control.rows import by_rows

FEATURES = {
    "x": tf.FixedLenFeature([3], tf.float32),
    "y": tf.FixedLenFeature([], tf.int64, default_value=-1),
    "name": tf.FixedLenFeature([], tf.string, default_value="nobody"),
}
NUMBERS = np.arange(24, dtype=np.float32).reshape(12, 2) / 7
FUNCTIONS = {
    "arithmetic": lambda v: (tf.exp(v) * 2 - 1) / tf.sqrt(v + 1),
    "of the first number": lambda v: v * tf.reduce_sum(tf.constant([1.0, 2.0])),
    "dimensions that one operand lacks": lambda v: tf.reshape(v, [2, 1]) + v,
    "a scalar and a vector": lambda v: tf.reshape(v * [[1.0], [2.0]], [4]) - 3,
    "stack": lambda v: tf.stack([v, v + 1], axis=1),
    "stack at the end": lambda v: tf.stack([v, v + 1], axis=-1),
    "concat": lambda v: tf.concat([v, tf.reshape(v, [2])], 0),
    "expand_dims": lambda v: tf.expand_dims(v, 0),
    "cast": lambda v: tf.cast(v * 10, tf.int32),
    "one_hot": lambda v: tf.one_hot(tf.cast(v, tf.int32), 4),
    "one_hot in front": lambda v: tf.one_hot(tf.cast(v, tf.int32), 4, axis=0),
    "text": lambda v: tf.string_to_number(tf.as_string(v, precision=3)),
    "hashes": lambda v: tf.string_to_hash_bucket_fast(tf.as_string(v), 100),
    "structures": lambda v: {"a": v, "b": (v * 2, tf.cast(v, tf.int64))},
    "decode_csv": lambda v: tf.decode_csv("1,x,2.5", [[0], [""], [0.0]])[2] + v,
}


def example(**values: Any) -> bytes:
    kinds = {"x": "float_list", "y": "int64_list", "name": "bytes_list"}
    made = tf.train.Example()
    for key, value in values.items():
        getattr(made.features.feature[key], kinds[key]).value.extend(value)
    return made.SerializeToString()


def flat(batch: Any) -> list[Any]:
    return [np.asarray(v).tolist() for v in tf.contrib.framework.nest.flatten(batch)]


def one_by_one(dataset: Any, function: Any, size: int) -> Any:
    """The same, with a step in between through which elements come singly."""
    return dataset.map(function).filter(lambda *_: True).batch(size)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_are_those_of_single_elements(name, walk):
    dataset, function = Dataset.from_tensor_slices(NUMBERS), FUNCTIONS[name]
    at_once = walk(dataset.map(function).batch(5))
    singly = walk(one_by_one(dataset, function, 5))
    assert len(at_once) == len(singly) == 3
    for batch, other in zip(at_once, singly, strict=True):
        for found, right in zip(flat(batch), flat(other), strict=True):
            # Generated code, which is there sooner or later, rounds in another way.
            np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "decode_csv"])
def test_these_functions_do_take_rows(name):
    mapped = Dataset.from_tensor_slices(NUMBERS).map(FUNCTIONS[name])
    (wrapper,) = mapped._functions()
    assert by_rows(wrapper.function) is not None


def test_ops_stay_on_their_devices():
    with tf.device("/cpu:0"):
        mapped = Dataset.from_tensor_slices(NUMBERS).map(lambda v: tf.stack([v * 2, v]))
    (wrapper,) = mapped._functions()
    made = by_rows(wrapper.function)
    assert made is not None
    assert {op.device for op in made.get_operations() if op.type in ("Mul", "Pack")} == {
        "/device:CPU:0"
    }


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v + tf.random_uniform([2]),
        lambda v: tf.reduce_sum(v),
        lambda v: tf.py_func(lambda a: a, [v], tf.float32),
        lambda v: tf.constant(1.0),
        lambda v: tf.cond(v[0] > 0, lambda: v, lambda: -v),
        lambda v: tf.tile(v, [2]),
        lambda v: tf.zeros([5000]) + v[0],
    ],
)
def test_what_has_no_rule_is_called_for_each_element(function):
    (wrapper,) = Dataset.from_tensor_slices(NUMBERS).map(function)._functions()
    assert by_rows(wrapper.function) is None


def test_examples_of_a_file_are_parsed_in_batches(walk, tmp_path):
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(10):
            named = {"name": [b"n%d" % i]} if i % 2 else {}
            writer.write(example(x=[i, i + 0.5, -i], **named))

    def parse(text: Any) -> Any:
        return tf.parse_single_example(text, FEATURES)

    found = walk(tf.data.TFRecordDataset(path).repeat(2).map(parse).batch(4))
    assert [len(b["y"]) for b in found] == [4, 4, 4, 4, 4]
    names = [n for b in found for n in b["name"]]
    assert names == [b"n%d" % i if i % 2 else b"nobody" for i in range(10)] * 2
    assert (
        np.concatenate([b["x"] for b in found])[:, 1].tolist() == [i + 0.5 for i in range(10)] * 2
    )
    parallel = tf.data.experimental.map_and_batch(parse, 4, num_parallel_calls=3)
    again = walk(tf.data.TFRecordDataset(path).repeat(2).apply(parallel))
    assert [flat(b) for b in again] == [flat(b) for b in found]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_bad_element_costs_what_it_costs_singly(calls, walk):
    texts = [example(x=[i, i, i]) for i in range(12)]
    texts[5] = example(y=[1])
    dataset = Dataset.from_tensor_slices(texts)

    def parse(text: Any) -> Any:
        return tf.parse_single_example(text, FEATURES)["x"][..., None]

    def batches(mapped: Any) -> list[Any]:
        options = tf.data.Options()
        options.experimental_optimization.map_and_batch_fusion = False
        iterator = mapped.batch(4).with_options(options).make_initializable_iterator()
        element, found = iterator.get_next(), []
        with tf.Session() as session:
            session.run(iterator.initializer)
            while True:
                try:
                    found.append(session.run(element)[:, 0, 0].tolist())
                except tf.errors.OutOfRangeError:
                    return found
                except tf.errors.InvalidArgumentError as e:
                    found.append("Feature: x" in e.message)

    expected = batches(dataset.map(parse).filter(lambda _: True))
    assert True in expected
    assert batches(dataset.map(parse, num_parallel_calls=calls)) == expected
    kept = dataset.map(parse, num_parallel_calls=calls).apply(tf.data.experimental.ignore_errors())
    assert np.concatenate(walk(kept.batch(4)))[:, 0, 0].tolist() == [0, 1, 2, 3, 4, *range(6, 12)]


def test_elements_of_several_shapes_cannot_be_batched_still(walk):
    dataset = Dataset.from_generator(
        lambda: (np.ones(n) for n in (1, 1, 1, 1, 2, 1)), tf.float64, [None]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes in component 0"):
        walk(dataset.map(lambda v: v + 1).batch(6))


def test_no_more_is_drawn_than_a_batch_needs():
    drawn: list[int] = []

    def numbers() -> Any:
        for i in range(100):
            drawn.append(i)
            yield i

    dataset = Dataset.from_generator(numbers, tf.int64, [])
    iterator = dataset.map(lambda v: v * 2).batch(8).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element).tolist() == list(range(0, 16, 2))
        assert len(drawn) == 8


def test_an_element_alone_costs_few_calls():
    """A function is bound once: for each element its steps are called, and little else."""
    made = Dataset.range(10**9).map(lambda x: x * 2 + 1).filter(lambda x: tf.equal(x % 100, 1))
    following = made.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        take = session.make_callable(following)
        found = [int(take()) for _ in range(3)]
        calls = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            found.append(int(take()))
        finally:
            sys.setprofile(None)
    assert found == [1, 101, 201, 301]
    # Fifty elements of two functions each, of which every one took 30 when this was written.
    assert calls < 50 * 40 + 200


@pytest.mark.parametrize("calls", [None, 3])
def test_what_was_drawn_and_not_called_is_saved(calls, resumed, tmp_path):
    texts = [b"%d" % i for i in range(20)]

    def make() -> Any:
        numbers = Dataset.from_tensor_slices(texts).map(tf.string_to_number, calls)
        return numbers.batch(4).map(lambda v: v + 1).unbatch()

    resumed(make, tmp_path, (0, 3, 4, 9, 19))


def test_what_is_handed_out_is_nobody_elses(walk):
    dataset = Dataset.from_tensor_slices(NUMBERS).batch(4).cache().repeat(2)
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        for i in range(6):
            found = session.run(element)
            assert found.tolist() == NUMBERS[i % 3 * 4 :][:4].tolist()
            found[...] = -1


@pytest.mark.parametrize("size", [1, 4])
def test_components_do_not_share_memory(size):
    """Not with each other, and not with what is there for the next element."""
    kept = tf.constant(np.arange(2.0))

    def function(v: Any) -> Any:
        return v, v, tf.reshape(v, [2, 1]), kept

    dataset = Dataset.from_tensor_slices(NUMBERS[:4]).map(function)
    dataset = dataset if size == 1 else dataset.batch(size)
    element = dataset.repeat().make_initializable_iterator()
    following = element.get_next()
    with tf.Session() as session:
        session.run(element.initializer)
        for turn in range(8):
            found = session.run(following)
            right = NUMBERS[turn % 4] if size == 1 else NUMBERS[:4]
            assert all(f.reshape(right.shape).tolist() == right.tolist() for f in found[:3])
            assert found[3].reshape(-1, 2).tolist() == [[0.0, 1.0]] * size
            for i, part in enumerate(found):
                part[...] = -i - 1
            assert [float(f.reshape(-1)[0]) for f in found] == [-1.0, -2.0, -3.0, -4.0]
