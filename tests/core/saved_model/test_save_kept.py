"""`tf.saved_model.save`: properties, captures, sizes that are open, resources and their ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.variables.trackable_resources import (
    CapturableResource,
    CapturableResourceDeleter,
    TrackableResource,
)
from opdock.graph.variables.tracked_attributes import AutoTrackable

VECTOR = TensorSpec([None], tf.float32)


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def save(thing: Any, folder: Path, signatures: Any = None) -> str:
    """Saves what a session has just initialized; gives the model's directory."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.saved_model.save(thing, str(folder), signatures)
    return str(folder)


def found(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


class Numbered(AutoTrackable):
    """Each time it is asked for its function it gives another."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def number(self) -> Any:
        value, self.asked = self.asked, self.asked + 1
        return tf.function(lambda: tf.constant(value), input_signature=[])

    @property
    def broken(self) -> Any:
        raise KeyError("no such thing")


def test_functions_that_are_properties_are_asked_for_once(tmp_path: Path) -> None:
    numbered = Numbered()
    path = save(numbered, tmp_path)
    assert numbered.asked == 1
    assert found(tf.saved_model.load_v2(path).number()) == 0


def test_a_checkpoint_that_is_saved_gets_no_counter(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0, use_resource=True))
    save(checkpoint, tmp_path)
    assert checkpoint._save_counter is None


def test_functions_of_a_model_say_what_they_take_from_outside(tmp_path: Path) -> None:
    root = tf.Module()
    root.v, root.w = (tf.Variable(value, use_resource=True) for value in (1.0, 2.0))
    root.f = tf.function(lambda x: root.v * x + root.w, input_signature=[VECTOR])
    loaded = tf.saved_model.load_v2(save(root, tmp_path, root.f))
    handles = {id(loaded.v.handle), id(loaded.w.handle)}
    functions = loaded.f.get_concrete_function(), loaded.signatures["serving_default"]
    assert all({id(t) for t in f.graph.external_captures} == handles for f in functions)


def test_sizes_that_may_change_may_change_in_what_was_loaded(tmp_path: Path) -> None:
    root = tf.Module()
    root.grows = tf.Variable([1, 2, 3], shape=tf.TensorShape([None]), use_resource=True)
    loaded = tf.saved_model.load_v2(save(root, tmp_path))
    assert loaded.grows.shape.as_list() == [None]
    longer = loaded.grows.assign([1, 2, 3, 4])
    assert found(longer).tolist() == [1, 2, 3, 4]


def test_a_variable_of_an_argument_is_saved(tmp_path: Path) -> None:
    class Late(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v: Any = None

        @tf.function(input_signature=[VECTOR])
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = tf.Variable(x)
            return self.v + x

    with eager_mode():
        late = Late()
        late([1.0, 2.0])
        tf.saved_model.save(late, str(tmp_path))
        loaded = tf.saved_model.load_v2(str(tmp_path))
        assert loaded([5.0, 5.0]).numpy().tolist() == [6, 7]
        loaded.v.assign([0.0])
        assert loaded([5.0, 5.0]).numpy().tolist() == [5, 5]


class Deleter(CapturableResourceDeleter):
    """Ends a cell by its name."""

    def destroy_resource(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=cell(), ignore_lookup_error=True)


def cell() -> Any:
    return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="a_cell")


class Cell(TrackableResource):
    """A variable that only its name leads to."""

    def __init__(self) -> None:
        super().__init__(deleter=Deleter())

    def _create_resource(self) -> Any:
        return cell()

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=1.0)


def test_a_resource_says_how_it_is_ended(tmp_path: Path) -> None:
    with eager_mode():
        root = tf.Module()
        root.cell = Cell()
        root.read = tf.function(
            lambda: tf.raw_ops.ReadVariableOp(resource=root.cell.resource_handle, dtype=tf.float32),
            input_signature=[],
        )
        tf.saved_model.save(root, str(tmp_path))
        loaded = tf.saved_model.load_v2(str(tmp_path))
        assert loaded.read().numpy() == 1
        loaded.cell._destroy_resource()
        with pytest.raises(tf.errors.FailedPreconditionError):
            loaded.read()


def test_a_deleter_ends_what_it_is_for_with_its_holder() -> None:
    ended = []
    with eager_mode():
        held = CapturableResource(deleter=CapturableResourceDeleter(lambda: ended.append(1)))
    assert not ended
    del held
    assert ended == [1]
    of_a_graph = CapturableResource(deleter=CapturableResourceDeleter(lambda: ended.append(2)))
    del of_a_graph
    assert ended == [1]
