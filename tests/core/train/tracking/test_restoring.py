"""What becomes of a restore: warnings of what nobody took, objects that go, those that come."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.api import logging
from opdock.eager.modes import eager_mode
from opdock.graph.variables.trackable import Trackable
from opdock.train.tracking.object_graph import ObjectGraphView
from opdock.train.tracking.util import TrackableSaver


@pytest.fixture
def at_once() -> Iterator[None]:
    with eager_mode(alone=True):
        yield


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(logging, "warning", lambda msg, *args: found.append(msg % args))
    return found


def trained(folder: Path) -> str:
    """A checkpoint of a variable and an optimizer after a step."""
    optimizer, v = tf.train.MomentumOptimizer(0.1, 0.9), tf.Variable([1.0, 2.0])
    optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    path: str = tf.train.Checkpoint(optimizer=optimizer, v=v).save(str(folder / "c"))
    return path


def test_an_optimizer_goes_on_after_a_reset(at_once: None, tmp_path: Path) -> None:
    optimizer, v = tf.train.AdamOptimizer(0.1), tf.Variable([1.0, 2.0])
    optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    tf.reset_default_graph()
    optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    path = tf.train.Checkpoint(optimizer=optimizer, v=v).save(str(tmp_path / "c"))
    beta = tf.train.load_variable(path, "optimizer/beta1_power/.ATTRIBUTES/VARIABLE_VALUE")
    assert len(optimizer.variables()) == 4 and beta == pytest.approx(0.9**3)


# ---------------------------------------------------------------- what nobody took
def test_what_nobody_took_is_told_when_the_objects_go(
    at_once: None, warnings: list[str], tmp_path: Path
) -> None:
    path = trained(tmp_path)
    checkpoint = tf.train.Checkpoint(v=tf.Variable([0.0, 0.0]))
    checkpoint.restore(path)
    assert not warnings
    del checkpoint
    assert warnings[:-1] == [
        "Unresolved object in checkpoint: (root).optimizer",
        "Unresolved object in checkpoint: (root).optimizer's state 'momentum' for (root).v",
    ]
    assert "expect_partial()" in warnings[-1]


def test_attributes_that_no_object_has_are_told(
    at_once: None, warnings: list[str], tmp_path: Path
) -> None:
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "c"))
    tf.train.Checkpoint(v=Trackable()).restore(path)
    assert warnings[0] == "Unused attribute in object (root).v: ['VARIABLE_VALUE']"


def test_what_is_whole_or_expected_is_not_told(
    at_once: None, warnings: list[str], tmp_path: Path
) -> None:
    path = trained(tmp_path)
    tf.train.Checkpoint(v=tf.Variable([0.0, 0.0])).restore(path).expect_partial()
    whole = tf.train.Checkpoint(v=tf.Variable(1.0))
    whole.restore(whole.save(str(tmp_path / "w"))).assert_consumed()
    del whole
    assert not warnings


def test_a_checkpoint_goes_with_the_last_reference(at_once: None, tmp_path: Path) -> None:
    gc.disable()
    try:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        checkpoint.restore(checkpoint.save(str(tmp_path / "c")))
        refs = weakref.ref(checkpoint), weakref.ref(checkpoint.v)
        del checkpoint
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


# ---------------------------------------------------------------- functions
class Lazy(tf.Module):
    """Its variable is made when it is called."""

    v: Any = None

    def __call__(self, x: Any) -> Any:
        if self.v is None:
            self.v = tf.Variable([[2.0]], use_resource=True)
        return tf.matmul(x, self.v)


def test_a_variable_that_a_function_makes_is_restored_in_a_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        saved = Lazy()
        saved([[1.0]])
        session.run(saved.v.initializer)
        session.run(saved.v.assign([[42.0]]))
        path = tf.train.Checkpoint(model=saved).save(str(tmp_path / "c"))
        model = Lazy()
        status = tf.train.Checkpoint(model=model).restore(path)
        y = tf.function(lambda x: model(x))(tf.constant([[1.0]]))
        status.initialize_or_restore()
        assert session.run(y) == [[42.0]]
        session.run(model.v.assign([[7.0]]))
        assert session.run([y, model.v]) == [[[7.0]], [[7.0]]]  # nothing restores it again


def test_a_view_of_objects_is_what_a_saver_is_made_of(at_once: None, tmp_path: Path) -> None:
    root = Trackable()
    root._track_trackable(tf.Variable(3.0, name="v"), "v")
    view = ObjectGraphView(root)
    saver = TrackableSaver(view)
    root._track_trackable(tf.Variable(4.0), "later")
    saveables, proto, feeds = view.serialize_object_graph()
    keys = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("v", "later")]
    assert [s.name for s in saveables] == keys and len(proto.nodes) == 3 and not feeds
    path = saver.save(str(tmp_path / "c"))
    assert {k for k, _ in tf.train.list_variables(path)} >= set(keys)
    assert view.list_objects()[1:] == [d.ref for d in root._checkpoint_dependencies]
