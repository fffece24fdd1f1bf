"""`tf.contrib.checkpoint`: containers, NumPy arrays and tensors that are saved together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import checkpoint


@pytest.fixture(autouse=True)
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def names(trackable: Any) -> list[str]:
    return [dependency.name for dependency in trackable._checkpoint_dependencies]


# ---------------------------------------------------------------- containers
def test_a_list_grows_and_tells_its_variables(session: Any, tmp_path: Path) -> None:
    def made(value: float) -> Any:
        dense = tf.layers.Dense(2)
        dense(tf.ones([1, 3]))
        found = checkpoint.List([tf.Variable(value), dense])
        found.append(tf.Variable(value, trainable=False))
        found += [[tf.Variable(value)]]
        return found

    saved, other = made(1.0), made(2.0)
    assert names(saved) == ["0", "1", "2", "3"] and len(saved) == 4
    assert saved.layers == [saved[1]] and len(saved.trainable_variables) == 4
    assert saved.non_trainable_variables == [saved[2]]
    saved.trainable = False
    assert not saved.trainable_weights and len(saved.weights) == 5
    session.run(tf.global_variables_initializer())
    path = tf.train.Checkpoint(all=saved).save(tmp_path / "model")
    tf.train.Checkpoint(all=other).restore(path).assert_consumed().run_restore_ops()
    for theirs, mine in zip(saved.weights, other.weights, strict=False):
        assert session.run(mine).shape == session.run(theirs).shape
    assert session.run([other[0], other[2], other[3][0]]) == [1.0, 1.0, 1.0]
    np.testing.assert_array_equal(session.run(other[1].kernel), session.run(saved[1].kernel))


def test_lists_are_added_and_copied() -> None:
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    whole = checkpoint.List([first]) + [second]
    assert list(whole) == [first, second] and ([second] + whole)[0] is second
    assert list(whole * 2) == [first, second] * 2 and whole.copy() != whole
    whole *= 2
    assert names(whole) == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="removes elements"):
        whole *= 0
    with pytest.raises(ValueError, match="Only trackable objects"):
        whole.append("word")


def test_a_mapping_takes_each_key_once() -> None:
    v = tf.Variable(1.0)
    found = checkpoint.Mapping(a=v)
    found["b"] = [tf.Variable(2.0)]
    found["a"] = v
    assert sorted(found) == ["a", "b"] and names(found) == ["a", "b"]
    with pytest.raises(ValueError, match="Tried to overwrite the key 'a'"):
        found["a"] = tf.Variable(3.0)
    with pytest.raises(TypeError, match="only string keys"):
        found[1] = v


def test_names_are_made_unique() -> None:
    tracker = checkpoint.UniqueNameTracker()
    for name in ("x", "y", "x", "x_1"):
        tracker.track(tf.Variable(1.0), name)
    assert names(tracker) == ["x", "y", "x_1", "x_1_1"]
    assert len(tracker.variables) == 4
    with pytest.raises(ValueError, match="Expected a trackable value"):
        tracker.track(3, "z")


def test_lists_that_are_attributes_may_change_what_is_not_tracked(tmp_path: Path) -> None:
    root = tf.train.Checkpoint()
    root.items = [1, 2, tf.Variable(3.0, name="v")]
    root.items[0] = 7
    root.items[:2] = [8, 9]
    assert names(root.items) == ["2"]
    root.items[2] = tf.Variable(4.0)
    with pytest.raises(ValueError, match="__setslice__"):
        names(root.items)


# ---------------------------------------------------------------- Python's own state
def test_arrays_come_back_without_a_session(session: Any, tmp_path: Path) -> None:
    state = checkpoint.NumpyState()
    root = tf.train.Checkpoint(arrays=state)
    state.x = np.arange(6).reshape(2, 3)
    state.y = np.float32(0.5)
    session.run(root.save_counter.initializer)
    path = root.save(tmp_path / "model")
    state.x[1, 1] = 40
    root.restore(path)
    assert state.x.tolist() == [[0, 1, 2], [3, 4, 5]] and state.y == 0.5
    other = checkpoint.NumpyState()
    tf.train.Checkpoint(arrays=other).restore(path)
    assert other.x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(NotImplementedError, match="not a NumPy array"):
        other.z = [1]
    with pytest.raises(AttributeError, match="no attribute 'w'"):
        other.w


def test_objects_in_arrays_are_not_unpickled() -> None:
    state = checkpoint.NumpyState()
    state.x = np.array([object()])
    with pytest.raises(ValueError, match="allow_pickle"):
        state._lookup_dependency("x").serialize()


# ---------------------------------------------------------------- parts of one tensor
class Halves(tf.train.Checkpoint):
    """A vector that is saved as two, each under an object of its own."""

    def __init__(self, vector: Any) -> None:
        super().__init__()
        self.vector = checkpoint.NoDependency(vector)

        def fill(buffer: dict[str, Any]) -> None:
            buffer["first"], buffer["second"] = vector[:2], vector[2:]

        def consume(buffer: dict[str, Any]) -> Any:
            return vector.assign(tf.concat([buffer["first"], buffer["second"]], 0)).op

        parts = checkpoint.split_dependency(
            ("first", "second"), (tf.float32, tf.float32), fill, consume, "/cpu:0"
        )
        for name, part in parts.items():
            self._track_trackable(part, name)


def test_tensors_are_split_and_joined(session: Any, tmp_path: Path) -> None:
    root = Halves(tf.Variable([1.0, 2.0, 3.0]))
    session.run(tf.global_variables_initializer())
    path = root.save(tmp_path / "model")
    found = dict(tf.train.list_variables(path))
    assert found["first/.ATTRIBUTES/VARIABLE_VALUE"] == [2]
    session.run(root.vector.assign([7.0, 8.0, 9.0]))
    root.restore(path).run_restore_ops()
    assert session.run(root.vector).tolist() == [1.0, 2.0, 3.0]


# ---------------------------------------------------------------- templates and pictures
def test_a_template_is_saved_by_its_own_names(session: Any, tmp_path: Path) -> None:
    def build() -> Any:
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        inner = tf.make_template("inner", lambda: tf.get_variable("w", [1]))
        return v, inner()

    saved, other = tf.make_template("one", build), tf.make_template("two", build)
    _, w = saved()
    assert names(saved) == ["v", "inner"] and tf.train.Checkpoint(t=saved)
    session.run(tf.global_variables_initializer())
    path = tf.train.Checkpoint(t=saved).save(tmp_path / "model")
    status = tf.train.Checkpoint(t=other).restore(path)
    v2, w2 = other()
    status.assert_consumed().run_restore_ops()
    assert session.run(w2) == session.run(w) and session.run(v2).tolist() == [1, 1]


def test_pictures_of_checkpoints(session: Any, tmp_path: Path) -> None:
    v, optimizer = tf.get_variable("v", []), tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(v * v)
    session.run(tf.global_variables_initializer())
    session.run(train)
    path = tf.train.Checkpoint(v=v, optimizer=optimizer).save(tmp_path / "model")
    dot = checkpoint.dot_graph_from_checkpoint(path)
    assert dot.startswith("digraph {") and dot.endswith("}\n")
    for words in (
        '"Variable v shape=[] float32"',
        "color=orange",
        '[label="momentum" style=dotted]',
    ):
        assert words in dot
