"""`tf.contrib.summary` in graphs: operations that write to event files by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.summary import recording

summary = tf.contrib.summary


@pytest.fixture(autouse=True)
def _graph(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(recording._current, "writer", None)
    with tf.Graph().as_default():
        yield


def events(folder: Path) -> list[Any]:
    (path,) = folder.iterdir()
    return [e for e in tf.train.summary_iterator(str(path)) if not e.file_version]


def test_kinds_of_summaries(tmp_path: Path) -> None:
    step = tf.train.create_global_step()
    writer = summary.create_file_writer(str(tmp_path), flush_millis=10000, filename_suffix=".x")
    with writer.as_default(), summary.always_record_summaries(), tf.name_scope("a"):
        summary.scalar("number", 2.0)
        summary.histogram("spread", [1.0, 2.0], step=3)
        summary.image("picture", tf.zeros([1, 2, 2, 3]), family="f")
        summary.audio("sound", tf.zeros([1, 8]), 8000.0, 1)
        summary.generic("tensor", tf.constant([5]), tf.SummaryMetadata(display_name="shown"))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with writer.as_default():
            tf.summary.initialize(graph=tf.get_default_graph(), session=session)
        session.run(tf.assign(step, 7))
        assert len(summary.all_summary_ops()) == 5
        session.run(summary.all_summary_ops())
        session.run(writer.close())
    graph, *found = events(tmp_path)
    assert {n.op for n in tf.GraphDef.FromString(graph.graph_def).node} >= {"WriteScalarSummary"}
    values = {v.tag: (e.step, v) for e in found for v in e.summary.value}
    assert values["a/number"][0] == 7
    assert values["a/number"][1].simple_value == 2
    assert values["a/spread"][0] == 3
    assert values["a/spread"][1].histo.num == 2
    assert values["f/a/f/picture/image/0"][1].image.width == 2
    assert values["a/sound/audio"][1].audio.sample_rate == 8000
    shown = values["a/tensor"][1]
    assert shown.metadata.display_name == "shown"
    assert tf.make_ndarray(shown.tensor).tolist() == [5]
    assert next(tmp_path.iterdir()).name.endswith(".x")


def test_every_n_steps(tmp_path: Path) -> None:
    step = tf.train.create_global_step()
    writer = summary.create_file_writer(str(tmp_path))
    writer.set_as_default()
    with summary.record_summaries_every_n_global_steps(2, step):
        written = summary.scalar("loss", tf.cast(step, tf.float32) / 2)
    assert summary.scalar("never", 1.0) is not None
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), *summary.summary_writer_initializer_op()])
        done = []
        for _ in range(4):
            done.append(bool(session.run(written)))
            session.run(tf.assign_add(step, 1))
        session.run(summary.all_summary_ops())
        session.run(writer.flush())
        found = [(e.step, v.tag, v.simple_value) for e in events(tmp_path) for v in e.summary.value]
    assert done == [True, False, True, False]
    assert found == [(0, "loss", 0), (2, "loss", 1), (4, "loss", 2)]


def test_without_a_writer(tmp_path: Path) -> None:
    with summary.create_file_writer(None).as_default(), summary.always_record_summaries():
        assert summary.scalar("x", 1.0, step=1).type == "NoOp"
    with pytest.raises(RuntimeError, match="No default tf.contrib.summary.SummaryWriter"):
        summary.initialize()
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(), summary.always_record_summaries():
        written = summary.scalar("x", 1.0, step=1)
    with tf.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match="summary writer was not initialized"):
            session.run(written)
        session.run(writer.init())
        session.run(writer.init())
        assert session.run(written)
        session.run(writer.close())
    assert len(events(tmp_path)) == 1


def test_events_as_they_are(tmp_path: Path) -> None:
    data = tf.placeholder(tf.string, [])
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        imported = summary.import_event(data)
        raw = tf.raw_ops.WriteRawProtoSummary(
            writer=writer._resource, step=np.int64(4), tensor=[data]
        )
        with pytest.raises(TypeError, match=r"graph\(\) needs a tf.Tensor"):
            summary.graph(tf.GraphDef())
    value = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1)])
    with tf.Session() as session:
        session.run(writer.init())
        session.run(imported, {data: tf.Event(step=9, summary=value).SerializeToString()})
        session.run(raw, {data: value.SerializeToString()})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Not an Event"):
            session.run(imported, {data: b"\xff\xff"})
        session.run(writer.close())
    assert [(e.step, e.summary.value[0].tag) for e in events(tmp_path)] == [(9, "x"), (4, "x")]


def test_file_writers_of_a_session_share_a_file(tmp_path: Path) -> None:
    value = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1)])
    with tf.Session() as session:
        first = tf.summary.FileWriter(str(tmp_path), session=session)
        second = tf.summary.FileWriter(str(tmp_path), session=session)
        third = summary.create_file_writer(str(tmp_path))
        with third.as_default(), summary.always_record_summaries():
            written = summary.scalar("y", 2.0, step=3)
        first.add_summary(value, 1)
        second.add_summary(value, 2)
        session.run(third.init())
        session.run(written)
        first.flush()
        assert [e.step for e in events(tmp_path)] == [1, 2, 3]
        assert first.get_logdir() == str(tmp_path)
        first.close()
        first.close()
        with pytest.warns(UserWarning, match="closed FileWriter"):
            first.add_summary(value, 4)
        first.reopen()
        first.add_summary(value, 5)
        first.close()
    assert len(list(tmp_path.iterdir())) == 2
