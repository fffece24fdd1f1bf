"""Training's input goes on where it stood."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.data.experimental import CheckpointInputPipelineHook


def estimator(folder: Any, **config: Any) -> SimpleNamespace:
    """What the hook asks of an estimator."""
    usual = {
        "num_worker_replicas": 1, "save_checkpoints_secs": None, "save_checkpoints_steps": 2,
        "task_type": "worker", "task_id": 0,
    }  # fmt: skip
    return SimpleNamespace(model_dir=str(folder), config=SimpleNamespace(**{**usual, **config}))


def trained(model: SimpleNamespace, steps: int) -> list[int]:
    """The elements that so many steps took."""
    with tf.Graph().as_default():
        element = Dataset.range(10).shuffle(4, seed=3).make_one_shot_iterator().get_next()
        with tf.control_dependencies([element]):
            count = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        hook = CheckpointInputPipelineHook(model)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            return [int(session.run([element, count])[0]) for _ in range(steps)]


def test_input_goes_on_where_the_last_training_ended(tmp_path):
    found = [n for steps in (3, 2, 5) for n in trained(estimator(tmp_path), steps)]
    assert sorted(found) == list(range(10)) and found != sorted(found)
    assert (tmp_path / "checkpoint_input").is_file()


def test_workers_have_files_of_their_own(tmp_path):
    trained(estimator(tmp_path, num_worker_replicas=2, task_id=1), 2)
    assert (tmp_path / "checkpoint_input_worker_1").is_file()


def test_there_must_be_an_iterator(tmp_path):
    tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="No variables to save"):
        CheckpointInputPipelineHook(estimator(tmp_path)).begin()
    with pytest.raises(ValueError, match="Either every_secs or every_steps"):
        CheckpointInputPipelineHook(estimator(tmp_path, save_checkpoints_steps=None))
