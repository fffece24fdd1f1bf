"""Object-based checkpoints: names by attributes, objects that come later, and what must match."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.nodes import default_session
from opdock.graph.variables.trackable import NoDependency, Trackable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.train.tracking import util
from opdock.train.tracking.base import PythonState

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def trained(session: tf.Session) -> tf.train.Checkpoint:
    """Two variables, one of either kind, after a step of Adam."""
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    w = tf.Variable(3.0, name="w", use_resource=False)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(v * v) + w * w)
    session.run(tf.global_variables_initializer())
    session.run(step)
    return tf.train.Checkpoint(v=v, w=w, optimizer=optimizer)


@pytest.fixture(autouse=True)
def _no_session_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras, where another test has loaded it, gives its session where there is none."""
    monkeypatch.setattr(default_session, "_providers", [])


def test_saved_and_restored(tmp_path: Path) -> None:
    with tf.Session() as session:
        checkpoint = trained(session)
        path = checkpoint.save(str(tmp_path / "c"), session=session)
        assert path == str(tmp_path / "c-1")
        assert tf.train.latest_checkpoint(str(tmp_path)) == path
        keys = {name for name, _ in tf.train.list_variables(path)}
        assert keys == {
            "_CHECKPOINTABLE_OBJECT_GRAPH", f"v{VALUE}", f"w{VALUE}", f"save_counter{VALUE}",
            f"optimizer/beta1_power{VALUE}", f"optimizer/beta2_power{VALUE}",
            f"v/.OPTIMIZER_SLOT/optimizer/m{VALUE}", f"v/.OPTIMIZER_SLOT/optimizer/v{VALUE}",
            f"w/.OPTIMIZER_SLOT/optimizer/m{VALUE}", f"w/.OPTIMIZER_SLOT/optimizer/v{VALUE}",
        }  # fmt: skip
        slots = [checkpoint.optimizer.get_slot(v, "m") for v in (checkpoint.v, checkpoint.w)]
        before = session.run([checkpoint.v, checkpoint.w, *slots, "beta1_power:0"])
        session.run(tf.global_variables_initializer())
        status = checkpoint.restore(path).assert_consumed().assert_nontrivial_match()
        status.run_restore_ops(session)
        after = session.run([checkpoint.v, checkpoint.w, *slots, "beta1_power:0"])
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
        assert session.run(checkpoint.save_counter) == 1
        nodes = len(tf.get_default_graph().get_operations())
        checkpoint.restore(path).run_restore_ops(session)
        assert checkpoint.save(str(tmp_path / "c"), session=session) == str(tmp_path / "c-2")
        checkpoint.save(str(tmp_path / "c"), session=session)
        assert len(tf.get_default_graph().get_operations()) <= nodes + 2, "nothing is made twice"


def test_objects_that_come_later(tmp_path: Path) -> None:
    with tf.Session() as session:
        path = trained(session).save(str(tmp_path / "c"), session=session)
        slot = session.run(
            tf.get_default_graph().get_tensor_by_name("v/Adam/Read/ReadVariableOp:0")
        )
    with tf.Graph().as_default(), tf.Session() as session:
        later = tf.train.Checkpoint()
        status = later.restore(path)
        with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)"):
            status.assert_consumed()
        later.v = tf.get_variable("other", [2], use_resource=True)
        later.optimizer = tf.train.AdamOptimizer(0.1)
        later.optimizer.minimize(tf.reduce_sum(later.v))
        status.assert_existing_objects_matched().initialize_or_restore(session)
        np.testing.assert_array_equal(session.run(later.optimizer.get_slot(later.v, "m")), slot)
        with pytest.raises(AssertionError, match="Unresolved object"):
            status.assert_consumed()
        later.w = tf.get_variable("w", initializer=0.0, use_resource=True)
        later.optimizer.minimize(later.w)
        status.assert_consumed()


def test_what_does_not_match(tmp_path: Path) -> None:
    with tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0, use_resource=True)
        session.run(v.initializer)
        path = tf.train.Checkpoint(v=v).write(str(tmp_path / "c"), session=session)
        other = tf.train.Checkpoint(u=tf.get_variable("u", initializer=5.0, use_resource=True))
        status = other.restore(path)
        with pytest.raises(AssertionError, match="not found in the checkpoint"):
            status.assert_existing_objects_matched()
        status.initialize_or_restore(session)
        assert session.run(other.u) == 5.0
        with pytest.raises(ValueError, match="expecting a trackable object"):
            tf.train.Checkpoint(x=3)
        nothing = other.restore(None)
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            nothing.assert_consumed()
        nothing.initialize_or_restore(session)
        with pytest.raises(tf.errors.NotFoundError):
            other.restore(str(tmp_path / "none"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="in a session"):
        other.save(str(tmp_path / "d"))


def test_lists_dicts_and_layers(tmp_path: Path) -> None:
    root = AutoTrackable()
    layer = tf.layers.Dense(2, name="dense")
    layer(tf.ones([1, 3]))
    v = tf.get_variable("v", initializer=4.0, use_resource=True)
    root.items = [layer, {"a/b.c": v}]
    root.plain = NoDependency([v])
    assert type(root.plain) is list
    assert [d.name for d in root._checkpoint_dependencies] == ["items"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        checkpoint = tf.train.Checkpoint(root=root)
        path = checkpoint.save(str(tmp_path / "c"), session=session)
        keys = dict(tf.train.list_variables(path))
        assert keys[f"root/items/0/kernel{VALUE}"] == [3, 2]
        assert f"root/items/1/a.Sb..c{VALUE}" in keys
        session.run(v.assign(0.0))
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run(v) == 4.0
        root.items.append(tf.get_variable("w", initializer=1.0, use_resource=True))
        assert len(util.list_objects(checkpoint)) == 10
        root.items[2] = 3
        with pytest.raises(ValueError, match="A list element was replaced"):
            checkpoint.write(str(tmp_path / "c"), session=session)


class Counter(PythonState):
    """A number that is saved as text."""

    def __init__(self) -> None:
        self.number = 0

    def serialize(self) -> str:
        return str(self.number)

    def deserialize(self, string_value: Any) -> None:
        self.number = int(string_value)


def test_state_that_lives_in_python(tmp_path: Path) -> None:
    counter = Counter()
    checkpoint = tf.train.Checkpoint(counter=counter)
    with tf.Session() as session:
        session.run(checkpoint.save_counter.initializer)
        paths = []
        for counter.number in (3, 4):
            paths.append(checkpoint.save(str(tmp_path / "c"), session=session))
        for path, number in zip(paths, (3, 4), strict=True):
            checkpoint.restore(path).assert_consumed()
            assert counter.number == number
        lazy = tf.train.Checkpoint()
        lazy.restore(paths[0])
        lazy.counter = Counter()
        assert lazy.counter.number == 3


def test_a_dependency_may_be_made_when_it_is_looked_up(tmp_path: Path) -> None:
    class Number(PythonState):
        value = 0.0

        def serialize(self) -> str:
            return repr(self.value)

        def deserialize(self, string_value: bytes) -> None:
            self.value = float(string_value)

    class Box(Trackable):
        def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Any:
            known = super()._lookup_dependency(name)
            if known is None:
                known = self._unconditional_dependency_names[name] = Number()
            return known

    box, later = Box(), Box()
    box._track_trackable(Number(), "n", overwrite=True)
    box._lookup_dependency("n").value = 2.5
    with tf.Session():
        path = tf.train.Checkpoint(box=box).save(str(tmp_path / "c"))
        tf.train.Checkpoint(box=later).restore(path)
    assert later._lookup_dependency("n").value == 2.5


def test_both_kinds_of_checkpoint_are_read(tmp_path: Path) -> None:
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    w = tf.Variable(3.0, name="w")
    checkpoint, saver = tf.train.Checkpoint(first=v, second=w), tf.train.Saver([v, w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        by_objects = checkpoint.write(str(tmp_path / "o"), session=session)
        by_names = saver.save(session, str(tmp_path / "n"))
        for restore in (
            lambda: saver.restore(session, by_objects),
            lambda: checkpoint.restore(by_names).assert_nontrivial_match().run_restore_ops(session),
        ):
            session.run([v.assign([0.0, 0.0]), w.assign(0.0)])
            restore()
            assert session.run(v).tolist() == [1.0, 2.0]
            assert session.run(w) == 3.0
        u = tf.get_variable("u", initializer=0.0)
        with pytest.raises(tf.errors.NotFoundError, match="Could not find some variables"):
            tf.train.Saver([u]).restore(session, by_objects)
    assert len(util.object_metadata(by_objects).nodes) == 3
    with pytest.raises(ValueError, match="does not appear to be object-based"):
        util.object_metadata(by_names)


def test_names_are_unique() -> None:
    root, leaf = Trackable(), Trackable()
    root._track_trackable(leaf, "leaf")
    with pytest.raises(ValueError, match="already declared as a dependency"):
        root._track_trackable(Trackable(), "leaf")
    with pytest.raises(TypeError, match="not a Trackable"):
        root._track_trackable(3, "number")
    root._track_trackable(other := Trackable(), "leaf", overwrite=True)
    assert util.list_objects(root) == [root, other]


def test_the_manager_keeps_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("opdock.train.tracking.manager.time.time", lambda: clock[0])
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 2, 1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(4):
            clock[0] += 1800
            manager.save()
        manager.save(checkpoint_number=77)
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-4", "ckpt-77"]
    kept = sorted(f for f in os.listdir(tmp_path) if f.endswith(".index"))
    assert kept == ["ckpt-2.index", "ckpt-4.index", "ckpt-77.index"]
    again = tf.train.CheckpointManager(checkpoint, str(tmp_path), 2)
    assert again.latest_checkpoint == manager.latest_checkpoint == str(tmp_path / "ckpt-77")
    assert again.checkpoints == manager.checkpoints
    with pytest.raises(ValueError, match="positive integer"):
        tf.train.CheckpointManager(checkpoint, str(tmp_path), 0)


def test_variables_of_an_object() -> None:
    owner = tf.train.Checkpoint()
    with tf.variable_scope("scope"):
        weights = util.add_variable(owner, "weights", [2, 2])
    given = util.add_variable(owner, "given", initializer=3.0)
    zeros = util.add_variable(owner, "zeros", [2], tf.float64, tf.zeros_initializer)
    with pytest.raises(ValueError, match="do not specify shape"):
        util.add_variable(owner, "twice", [], initializer=1)
    assert weights.op.name == "scope/weights"
    assert zeros.dtype.base_dtype == tf.float64
    with tf.Session() as session:
        session.run(util.gather_initializers(owner))
        found = session.run([weights, given, zeros])
    assert found[0].any()
    assert found[1] == 3
    assert not found[2].any()


def test_what_a_later_restore_gave_is_not_initialized(tmp_path: Path) -> None:
    def made() -> tuple[tf.train.Checkpoint, tf.train.Checkpoint, tf.Variable, tf.Variable]:
        w, b = tf.Variable(1.0, use_resource=True), tf.Variable(2.0, use_resource=True)
        return tf.train.Checkpoint(w=w, b=b), tf.train.Checkpoint(b=b), w, b

    with tf.Graph().as_default(), tf.Session() as sess:
        _, part, w, b = made()
        whole = tf.train.Checkpoint(w=w)
        sess.run([w.assign(10.0), b.assign(20.0)])
        of_w, of_b = whole.save(f"{tmp_path}/w"), part.save(f"{tmp_path}/b")
    with tf.Graph().as_default(), tf.Session() as sess:
        whole, part, w, b = made()
        first, none, last = whole.restore(of_w), part.restore(None), part.restore(of_b)
        last.run_restore_ops(sess)
        first.initialize_or_restore(sess)
        none.initialize_or_restore(sess)
        assert sess.run([w, b]) == [10.0, 20.0]
        part.restore(None).initialize_or_restore(sess)  # which is the last one now
        assert sess.run([w, b]) == [10.0, 2.0]


@pytest.mark.parametrize("family", [tf.train, tf.contrib.optimizer_v2])
def test_a_checkpoint_of_what_was_restored_at_once_has_the_slots(tmp_path, family):
    with eager_mode(alone=True):
        v = tf.Variable([1.0, 2.0])
        optimizer = family.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
        path = tf.train.Checkpoint(optimizer=optimizer, v=v).save(str(tmp_path / "first"))
        for number in range(2):  # the second is saved before a step of training
            optimizer = family.MomentumOptimizer(0.1, 0.9)
            v = tf.Variable([0.0, 0.0])
            checkpoint = tf.train.Checkpoint(optimizer=optimizer, v=v)
            checkpoint.restore(path).assert_consumed()
            path = checkpoint.save(str(tmp_path / f"again{number}"))
        assert optimizer.get_slot(v, "momentum").numpy().tolist() == [2.0, 4.0]
        optimizer.minimize(lambda: tf.reduce_sum(v * 0.0), var_list=[v])
        np.testing.assert_allclose(optimizer.get_slot(v, "momentum").numpy(), [1.8, 3.6])
