"""The writer of events under TensorFlow's C interface, which loggers of agents use directly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import opdock as tf
from opdock.mapping import resolve


def writer_of(prefix: Path) -> object:
    return resolve.lookup("python.pywrap_tensorflow", "EventsWriter")(os.fsencode(prefix))


def event(step: int) -> tf.Event:
    value = tf.Summary.Value(tag="loss", simple_value=step)
    return tf.Event(wall_time=1.0, step=step, summary=tf.Summary(value=[value]))


def test_events_lie_in_a_file_that_begins_with_the_prefix(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "logs" / "agent")
    assert not list((tmp_path / "logs").iterdir())
    writer.WriteEvent(event(1))
    writer.Flush()
    path = os.fsdecode(writer.FileName())
    assert os.path.basename(path).startswith("agent.out.tfevents.")
    assert [e.step for e in tf.train.summary_iterator(path)] == [0, 1]
    writer.Close()
    writer.WriteEvent(event(2))
    writer.Close()
    steps = [e.step for p in (tmp_path / "logs").iterdir() for e in tf.train.summary_iterator(p)]
    assert sorted(steps) == [0, 0, 1, 2]


def test_a_suffix_and_what_is_no_event(tmp_path: Path) -> None:
    writer = writer_of(tmp_path / "events")
    writer.InitWithSuffix(b".end")
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".end")
    assert os.fsencode(path) == writer.FileName()
    with pytest.raises(TypeError, match="Expected an event_pb2.Event proto"):
        writer.WriteEvent("loss")
