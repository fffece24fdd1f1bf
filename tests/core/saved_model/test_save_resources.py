"""`tf.saved_model.save`: datasets that functions take from outside, tables with their contents."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.variables.trackable_resources import (
    CapturableResourceDeleter,
    TrackableResource,
)
from opdock.ops.composed.concrete_function import scope_of

INTS = TensorSpec([None], tf.int64)


@pytest.fixture(params=[False, True], ids=["graph", "eager"])
def eager(request: pytest.FixtureRequest) -> Iterator[bool]:
    with eager_mode() if request.param else tf.Graph().as_default():
        yield request.param


def save(thing: Any, folder: Path, *first: Any) -> str:
    """Saves a model; in a graph after some operations, with what a session has initialized."""
    if tf.executing_eagerly():
        tf.saved_model.save(thing, str(folder))
        return str(folder)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run(first)
        tf.saved_model.save(thing, str(folder))
    return str(folder)


def found(fetches: Any) -> Any:
    if tf.executing_eagerly():
        return fetches.numpy()
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


class Summing(tf.Module):
    """Adds up a dataset that is an attribute, or one that follows from it."""

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        self.dataset = dataset

    @tf.function(input_signature=[])
    def total(self) -> Any:
        total = tf.constant(0, tf.int64)
        for x in self.dataset.batch(2):
            total += tf.reduce_sum(x)
        return total


def squares() -> Any:
    added = tf.constant(1, tf.int64)  # taken from outside by the map
    return tf.data.Dataset.range(5).map(lambda x: x * x + added)


def chosen() -> Any:
    two = tf.data.Dataset.zip((tf.data.Dataset.range(5), tf.data.Dataset.range(10, 20)))
    return (
        two.filter(lambda a, b: tf.equal(a % 2, 0)).map(lambda a, b: a + b).concatenate(squares())
    )


def drawn_each_time() -> Any:
    return tf.data.Dataset.from_tensor_slices(np.arange(6)).shuffle(6, seed=1).repeat(2).take(12)


@pytest.mark.parametrize(
    ("make", "total"), [(squares, 35), (chosen, 77), (drawn_each_time, 30)]
)  # fmt: skip
def test_a_function_keeps_its_dataset(
    tmp_path: Path, eager: bool, make: Callable[[], Any], total: int
) -> None:
    path = save(Summing(make()), tmp_path / "one")
    loaded = tf.saved_model.load_v2(path)
    assert found(loaded.total()) == total
    again = tf.saved_model.load_v2(save(loaded, tmp_path / "two"))
    assert found(again.total()) == total
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], path)
        assert session.run(meta.signature_def["serving_default"].outputs["output_0"].name) == total


def test_a_dataset_that_a_model_cannot_hold_says_so(tmp_path: Path, eager: bool) -> None:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(np.arange(3), np.arange(3)), -1
    )
    model = Summing(tf.data.Dataset.range(3).map(table.lookup))
    with pytest.raises(ValueError, match=r"captures depends on .* \(op HashTableV2\)"):
        save(model, tmp_path)


def scalars() -> tuple[Any, Any, Any]:
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3)
    return table, [5, 6], [50, 60]


def rows() -> tuple[Any, Any, Any]:
    table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, [-1.0, -1.0])
    return table, [5, 6], [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("make", [scalars, rows])
def test_a_table_keeps_its_entries(
    tmp_path: Path, eager: bool, make: Callable[[], tuple[Any, Any, Any]]
) -> None:
    model = tf.Module()
    model.table, keys, values = make()
    added = model.table.insert(np.int64(keys), tf.constant(values, model.table.value_dtype))
    model.find = tf.function(lambda keys: model.table.lookup(keys), input_signature=[INTS])
    path = save(model, tmp_path / "one", *([] if eager else [added]))
    loaded = tf.saved_model.load_v2(path)
    wanted = [*values, (-np.ones_like(values[0])).tolist()]
    assert found(loaded.find(np.int64([*keys, 9]))).tolist() == wanted
    again = tf.saved_model.load_v2(save(loaded, tmp_path / "two"))
    assert found(again.find(np.int64([*keys, 9]))).tolist() == wanted
    with tf.Graph().as_default(), tf.Session() as session:
        told = tf.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        (given,), (result,) = told.inputs.values(), told.outputs.values()
        assert session.run(result.name, {given.name: [*keys, 9]}).tolist() == wanted


class Deleter(CapturableResourceDeleter):
    """Ends a cell by its name."""

    def destroy_resource(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=cell(), ignore_lookup_error=True)


def cell() -> Any:
    return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="one_of_a_model")


class Cell(TrackableResource):
    """A variable that only its name leads to."""

    def __init__(self) -> None:
        super().__init__(deleter=Deleter())

    def _create_resource(self) -> Any:
        return cell()

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=1.0)


def test_a_loaded_resource_ends_with_its_holder(tmp_path: Path) -> None:
    with eager_mode():
        root = tf.Module()
        root.cell = Cell()
        root.read = tf.function(
            lambda: tf.raw_ops.ReadVariableOp(resource=root.cell.resource_handle, dtype=tf.float32),
            input_signature=[],
        )
        tf.saved_model.save(root, str(tmp_path))
        held = tf.saved_model.load_v2(str(tmp_path))
        assert held.read().numpy() == 1
        handle = held.cell.resource_handle
        del held
        gc.collect()
        with pytest.raises(tf.errors.OpError):
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


@pytest.mark.parametrize(
    ("name", "scope"), [("<lambda>", "lambda"), ("_f", "f"), ("a.b/c", "a.b/c"), ("é", "function")]
)
def test_functions_of_any_name_are_called_in_a_scope(name: str, scope: str) -> None:
    assert scope_of(name) == scope
