"""Checkpoints that functions of `tf.function` write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.train.tracking.base import PythonState

VALUE = "v/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_each_call_of_a_function_writes_a_checkpoint(tmp_path: Path) -> None:
    v = tf.Variable(1.0, use_resource=True)
    checkpoint = tf.train.Checkpoint(v=v)
    prefix = str(tmp_path / "folder" / "ckpt")

    @tf.function
    def step() -> Any:
        v.assign_add(1.0)
        return checkpoint.write(prefix)

    written = step()
    with tf.Session() as session:
        session.run(v.initializer)
        assert not list(tmp_path.rglob("*.index"))
        for value in (2.0, 3.0):
            assert session.run(written) == prefix.encode()
            assert tf.train.load_checkpoint(prefix).get_tensor(VALUE) == value
        session.run(v.initializer)
        tf.train.Checkpoint(v=v).restore(prefix).run_restore_ops(session)
        assert session.run(v) == 3.0


def test_each_call_of_a_function_writes_a_checkpoint_where_operations_run_at_once(
    tmp_path: Path,
) -> None:
    with eager_mode(alone=True):
        v = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(v=v)

        @tf.function
        def step(prefix: Any) -> Any:
            v.assign_add(1.0)
            return checkpoint.write(prefix) if v > 0.0 else tf.constant("")

        for value in (2.0, 3.0):
            prefix = str(tmp_path / f"at{value}")
            assert step(tf.constant(prefix)).numpy() == prefix.encode()
            assert tf.train.load_checkpoint(prefix).get_tensor(VALUE) == value


def test_what_functions_cannot_save_they_refuse(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0, use_resource=True))
    with pytest.raises(NotImplementedError, match="save.. from a function is not supported"):
        tf.function(lambda: checkpoint.save(str(tmp_path / "ckpt")))()
    checkpoint.text = Text()
    with pytest.raises(NotImplementedError, match="state lives in Python"):
        tf.function(lambda: checkpoint.write(str(tmp_path / "ckpt")))()


class Text(PythonState):
    """A text."""

    def serialize(self) -> str:
        """The text."""
        return "text"

    def deserialize(self, string_value: str) -> None:
        """Nothing to take back."""
