"""`tf.compat.v2.summary` where operations run as they are made, and in functions there."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import opdock as tf
from opdock.summary import recording

summary = tf.compat.v2.summary


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in ("writer", "step", "records"):
        monkeypatch.setattr(recording._current, name, None)


def written(folder: Path) -> list[list[tuple[int, str]]]:
    """(step, tag) of what each file has, in the order of their names."""
    return [
        [(e.step, v.tag) for e in tf.train.summary_iterator(str(path)) for v in e.summary.value]
        for path in sorted(folder.iterdir())
    ]


def test_writers_of_one_directory_have_a_file_each(tmp_path: Path) -> None:
    first = summary.create_file_writer(str(tmp_path))
    assert written(tmp_path) == [[]]
    second = summary.create_file_writer(str(tmp_path))
    for step in (1, 2):
        with first.as_default():
            assert summary.write("a", 1, step=step).numpy()
        with second.as_default():
            summary.write("b", 1, step=step)
    assert sorted(written(tmp_path)) == [[(1, "a"), (2, "a")], [(1, "b"), (2, "b")]]


def test_functions_write_to_a_writer_around_them(tmp_path: Path) -> None:
    writer = summary.create_file_writer(str(tmp_path))
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(x):
        with writer.as_default(), summary.record_if(tf.equal(step % 2, 0)):
            done = summary.scalar("loss", x, step=step)
        step.assign_add(1)
        return done

    assert [bool(train(tf.constant(1.0))) for _ in range(3)] == [True, False, True]
    assert written(tmp_path) == [[(0, "loss"), (2, "loss")]]


def test_a_writer_that_a_function_makes_is_made_outside(tmp_path: Path) -> None:
    made = []

    @tf.function
    def write():
        if not made:
            made.append(summary.create_file_writer(str(tmp_path)))
        with made[0].as_default():
            summary.write("a", 1, step=3)

    write()
    write()
    assert written(tmp_path) == [[(3, "a"), (3, "a")]]

    @tf.function
    def wrong():
        summary.create_file_writer(tf.constant(str(tmp_path)))

    with pytest.raises(ValueError, match=r'Invalid graph Tensor argument "logdir=.*inside an @tf'):
        wrong()
    with tf.Graph().as_default():
        inside = tf.constant(1)
    with pytest.raises(ValueError, match="eagerly executed create_file_writer"):
        summary.create_file_writer(str(tmp_path), max_queue=inside)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_writer_that_is_closed_stays_so(tmp_path: Path) -> None:
    writer = summary.create_file_writer(tf.constant(str(tmp_path)))
    writer.init()
    writer.close()
    writer.close()
    writer.flush()
    for use in (writer.init, writer.set_as_default, lambda: writer.as_default().__enter__()):
        with pytest.raises(RuntimeError, match="already closed"):
            use()
    assert written(tmp_path) == [[]]


def test_the_file_has_what_waited_once_more_waits_than_may(tmp_path: Path) -> None:
    writer = summary.create_file_writer(str(tmp_path), max_queue=1, flush_millis=10**6)
    writer.set_as_default()
    summary.write("a", 1, step=0)
    assert written(tmp_path) == [[]]
    summary.write("a", 1, step=1)
    assert written(tmp_path) == [[(0, "a"), (1, "a")]]
    summary.write("a", 1, step=2)
    summary.flush()
    assert len(written(tmp_path)[0]) == 3


def test_messages_are_written_as_they_are(tmp_path: Path) -> None:
    values = [tf.Summary(value=[tf.Summary.Value(tag=t, simple_value=1)]) for t in "ab"]
    with summary.create_file_writer(str(tmp_path)).as_default():
        summary.experimental.write_raw_pb([v.SerializeToString() for v in values], step=4)
        with pytest.raises(tf.errors.DataLossError, match="Bad tf.compat.v1.Summary binary proto"):
            summary.experimental.write_raw_pb("notaproto", step=4)
    assert written(tmp_path) == [[(4, "a"), (4, "b")]]


def test_steps_are_those_of_the_moment(tmp_path: Path) -> None:
    step = tf.Variable(10, dtype=tf.int64)
    with summary.create_file_writer(str(tmp_path)).as_default():
        summary.experimental.set_step(step)
        summary.write("a", 1)
        step.assign(12)
        summary.write("a", 1)
    assert written(tmp_path) == [[(10, "a"), (12, "a")]]


def test_summaries_of_version_1_are_initialized_by_themselves(tmp_path: Path) -> None:
    old = tf.contrib.summary
    with old.create_file_writer(str(tmp_path)).as_default(), old.always_record_summaries():
        old.scalar("a", 1.0, step=5)
        tf.summary.initialize()
        assert tf.summary.all_v2_summary_ops() is None
        with pytest.raises(RuntimeError, match="only supported in graph mode"):
            old.summary_writer_initializer_op()
    gc.collect()
    assert written(tmp_path) == [[(5, "a")]]
