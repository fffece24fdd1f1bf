"""Datasets: what their elements are."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset


class Pair(NamedTuple):
    a: Any
    b: Any


def ints(values):
    return [int(v) for v in values]


def test_structures_come_out_as_they_went_in(walk):
    value = Pair(np.arange(4), {"x": np.ones((4, 2)), "y": (["a", "b", "c", "d"],)})
    dataset = Dataset.from_tensor_slices(value)
    assert isinstance(dataset.element_spec, Pair)
    first = walk(dataset)[0]
    assert isinstance(first, Pair) and first.a == 0
    assert first.b["x"].tolist() == [1, 1] and first.b["y"] == (b"a",)
    assert dataset.output_types == Pair(tf.int64, {"x": tf.float64, "y": (tf.string,)})


def test_sparse_tensors_are_elements_that_can_be_batched(walk):
    sparse = tf.SparseTensor([[0, 0], [2, 1]], [5, 6], [3, 2])
    dataset = Dataset.from_tensor_slices(sparse)
    assert dataset.output_classes is tf.SparseTensor
    rows = walk(dataset)
    assert [r.values.tolist() for r in rows] == [[5], [], [6]]
    (batch,) = walk(Dataset.from_tensor_slices(sparse).batch(3))
    assert batch.dense_shape.tolist() == [3, 2] and batch.indices.tolist() == [[0, 0], [2, 1]]
    unbatched = walk(Dataset.from_tensors(sparse).unbatch())
    assert [r.values.tolist() for r in unbatched] == [[5], [], [6]]


def test_the_elements_of_simple_transformations(walk):
    ten = Dataset.range(10)
    cases = {
        "take": (ten.take(3), [0, 1, 2]),
        "take all": (ten.take(-1), list(range(10))),
        "skip": (ten.skip(8), [8, 9]),
        "skip all": (ten.skip(-1), []),
        "repeat": (ten.take(2).repeat(2), [0, 1, 0, 1]),
        "shard": (ten.shard(4, 1), [1, 5, 9]),
        "concatenate": (ten.take(1).concatenate(ten.skip(9)), [0, 9]),
        "filter": (ten.filter(lambda x: tf.equal(x % 3, 0)), [0, 3, 6, 9]),
        "range": (Dataset.range(5, 0, -2), [5, 3, 1]),
        "cache": (ten.take(2).cache().repeat(2), [0, 1, 0, 1]),
        "flat_map": (Dataset.range(3).flat_map(Dataset.range), [0, 0, 1]),
        "prefetch": (ten.prefetch(2), list(range(10))),
    }
    for name, (dataset, expected) in cases.items():
        assert ints(walk(dataset)) == expected, name


def test_interleave_goes_round_its_cycle(walk):
    def repeated(x):
        return Dataset.from_tensors(x).repeat(x)

    source = Dataset.from_tensor_slices(np.array([4, 5, 6], np.int64))
    expected = [4, 4, 5, 5, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6]
    assert ints(walk(source.interleave(repeated, 2, 2))) == expected
    assert ints(walk(source.interleave(repeated, 2, 2, num_parallel_calls=2))) == expected


def test_batches_and_what_is_left(walk):
    seven = Dataset.range(7)
    assert [b.tolist() for b in walk(seven.batch(3))] == [[0, 1, 2], [3, 4, 5], [6]]
    dropped = seven.batch(3, drop_remainder=True)
    assert dropped.output_shapes.as_list() == [3]
    assert [b.tolist() for b in walk(dropped)] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Batch size must be greater"):
        walk(seven.batch(0))


def test_batching_elements_of_several_shapes_says_which(walk):
    ragged = Dataset.range(1, 3).map(lambda x: tf.fill([x], x))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[1\] and element 1"):
        walk(ragged.batch(2))


def test_padded_batches(walk):
    rows = Dataset.range(1, 4).map(lambda x: tf.fill([x], x))
    (batch,) = walk(rows.padded_batch(3, [None]))
    assert batch.tolist() == [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
    (batch,) = walk(rows.padded_batch(3, [4], np.int64(-1)))
    assert batch.tolist()[0] == [1, -1, -1, -1]
    with pytest.raises(tf.errors.DataLossError, match="Attempted to pad to a smaller size"):
        walk(rows.padded_batch(3, [2]))
    with pytest.raises(TypeError, match="does not match output type"):
        rows.padded_batch(3, [None], "x")


def test_padded_shapes_are_int64():
    rows = tf.data.Dataset.from_tensors([1, 2, 3])
    for shape in ([1.5, 2.0, 3.0], [4]):
        with pytest.raises(TypeError, match="1-D tensor of tf.int64 values"):
            rows.padded_batch(5, padded_shapes=tf.constant(shape))


def test_a_table_is_made_outside_of_the_function_that_asks_it():
    def asks(x):
        keys = tf.contrib.lookup.KeyValueTensorInitializer(["a"], [1.0])
        tf.contrib.lookup.HashTable(keys, 0.0)
        return x

    with pytest.warns(UserWarning, match="Creating resources inside a function passed to .*map"):
        tf.data.Dataset.range(3).map(asks)


def test_padded_batches_of_scalar_strings_have_bytes_in_them(walk):
    rows = tf.data.Dataset.from_tensor_slices((["one", "two", "three"], [1, 2, 3]))
    first, last = walk(rows.padded_batch(2, ([], [])))
    assert [type(word) for word in (*first[0], *last[0])] == [bytes] * 3
    assert [*first[0], *last[0]] == [b"one", b"two", b"three"]


def test_windows_are_datasets(walk):
    windows = Dataset.range(7).window(3, shift=2, stride=2, drop_remainder=True)
    assert [b.tolist() for b in walk(windows.flat_map(lambda d: d.batch(3)))] == [
        [0, 2, 4],
        [2, 4, 6],
    ]


def test_reduce(walk):
    total = Dataset.range(5).reduce(np.int64(0), lambda state, x: state + x)
    grown = Dataset.range(3).reduce(
        tf.zeros([0], tf.int64), lambda state, x: tf.concat([state, [x]], 0)
    )
    with tf.Session() as session:
        assert session.run(total) == 10
        assert session.run(grown).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="element types for the new state"):
        Dataset.range(3).reduce(np.int32(0), lambda state, x: x)


def test_a_function_without_a_usable_result_is_refused():
    with pytest.raises(TypeError, match=r"Unsupported return value .* Dataset.map"):
        Dataset.range(3).map(lambda x: None)
    with pytest.raises(ValueError, match="`predicate` must return a scalar boolean"):
        Dataset.range(3).filter(lambda x: x)
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        Dataset.range(3).flat_map(lambda x: x)


def test_an_error_in_a_map_names_the_users_line(walk):
    dataset = Dataset.range(3).map(lambda x: tf.div(1, tf.cast(x, tf.int32) - 1))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        walk(dataset)
    assert "test_dataset.py" in str(caught.value)


def test_what_is_captured(walk):
    variable = tf.Variable(np.int64(3))
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(np.arange(3), np.arange(3) * 10), np.int64(-1)
    )
    fed = tf.placeholder(tf.int64, [])

    def function(x):
        with tf.control_dependencies([variable.assign_add(1)]):
            return table.lookup(x) + fed

    iterator = Dataset.range(3).map(function).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run([variable.initializer, table.initializer])
        session.run(iterator.initializer, {fed: 100})
        assert [int(session.run(element)) for _ in range(3)] == [100, 110, 120]
        assert session.run(variable) == 6


def test_names_inside_a_function_are_its_own():
    Dataset.range(3).map(lambda x: tf.add(x, 1, name="sum"))
    assert tf.add(1, 1, name="sum").op.name == "sum"


def test_random_numbers_begin_anew_with_each_initialization(walk):
    dataset = Dataset.range(3).map(lambda _: tf.random_uniform([], seed=7)).repeat(2)
    first = walk(dataset)
    assert len({float(v) for v in first}) == 6
    assert walk(dataset) == first


def test_graphs_with_datasets_go_out_and_come_in():
    it = Dataset.range(4).map(lambda x: x * 10).filter(lambda x: x > 0).make_one_shot_iterator()
    tf.identity(it.get_next(), name="out")
    definition = tf.get_default_graph().as_graph_def()
    assert {n.op for n in definition.node} >= {"OneShotIterator", "IteratorGetNext"}
    assert len(definition.library.function) == 3
    with tf.Graph().as_default():
        (out,) = tf.import_graph_def(definition, return_elements=["out:0"], name="")
        with tf.Session() as session:
            assert [int(session.run(out)) for _ in range(3)] == [10, 20, 30]


def test_a_generator_is_asked_for_each_walk(walk):
    calls = []

    def generate():
        calls.append(1)
        for i in range(3):
            yield i, [1] * i

    dataset = Dataset.from_generator(generate, (tf.int32, tf.int64), ([], [None]))
    found = walk(dataset.repeat(2))
    assert len(calls) == 2 and [int(n) for n, _ in found] == [0, 1, 2, 0, 1, 2]
    assert found[2][1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (("x", 1), "could not be converted to the expected type"),
        ((1,), "did not match the expected structure"),
        ((1, [1, 2]), "of shape"),
        ((1 + 2j, 1), "could not be converted to the expected type"),
    ],
)
def test_what_a_generator_yields_is_checked(value, told, walk):
    dataset = Dataset.from_generator(lambda: iter([value]), (tf.int64, tf.int64), ([], []))
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        walk(dataset)


def test_what_a_generator_yields_is_converted(walk):
    yielded = (np.int32(1), np.array([1.7, 2.0]), np.array(300), np.array([b"7"]))
    types = (tf.float32, tf.int64, tf.uint8, tf.int32)
    ((one, whole, low, number),) = walk(Dataset.from_generator(lambda: iter([yielded]), types))
    assert one.dtype == np.float32 and one == 1.0
    assert whole.tolist() == [1, 2] and low == 44 and number.tolist() == [7]


def test_an_error_in_a_generator_is_told(walk):
    def generate():
        yield 1
        raise KeyError("lost")

    with pytest.raises(tf.errors.UnknownError, match="lost"):
        walk(Dataset.from_generator(generate, tf.int64))


def test_datasets_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="Two datasets to concatenate have different types"):
        Dataset.range(3).concatenate(Dataset.from_tensors("x"))
    with pytest.raises(TypeError, match="do not support Python lists"):
        Dataset.zip([Dataset.range(3), Dataset.range(3)])
    with pytest.raises(ValueError):
        Dataset.from_tensor_slices((np.zeros(3), np.zeros(4)))
    with pytest.raises(RuntimeError, match="__iter__"):
        iter(Dataset.range(3))


def test_options_merge_or_contradict():
    first, second = tf.data.Options(), tf.data.Options()
    first.experimental_deterministic = True
    second.experimental_optimization.autotune = True
    both = Dataset.range(3).with_options(first).map(lambda x: x).with_options(second).options()
    assert (
        both.experimental_deterministic is True and both.experimental_optimization.autotune is True
    )
    second.experimental_deterministic = False
    with pytest.raises(ValueError, match="incompatible values of option"):
        Dataset.range(3).with_options(first).with_options(second)
    with pytest.raises(AttributeError, match="Cannot set the property"):
        first.speed = 3
    with pytest.raises(TypeError, match="must be of type"):
        first.experimental_deterministic = 3


def test_a_seed_of_the_graph_in_a_function_is_warned_of():
    tf.set_random_seed(10)
    with pytest.warns(UserWarning, match="Seed 10 from outer graph might be") as heard:
        Dataset.range(3).map(lambda x: tf.random_uniform([]))
    assert [w.filename for w in heard] == [__file__]

    def seeded(x):
        tf.get_default_graph().seed = None
        return tf.random_uniform([])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset.range(3).map(lambda x: x + 1)
        Dataset.range(3).map(seeded)
        Dataset.range(3).map(lambda x: tf.random_uniform([], seed=3))


def test_a_sparse_element_keeps_its_static_shape() -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [3, 4])
    seen = []

    def look(element: tf.SparseTensor) -> tf.Tensor:
        seen.append(element.shape.as_list())
        return tf.sparse.to_dense(element)

    dense = tf.data.Dataset.from_tensors(sparse).map(look)
    assert seen[0] == [3, 4]
    value = tf.data.make_one_shot_iterator(dense).get_next()
    assert value.shape.as_list() == [3, 4]
    batches = tf.data.Dataset.from_tensors(sparse).repeat(2).batch(2)
    assert tf.data.make_one_shot_iterator(batches).get_next().shape.as_list() == [None, 3, 4]
    with tf.Session() as sess:
        assert sess.run(value).tolist() == [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]]
