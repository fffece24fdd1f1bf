"""Recorded steps and other threads: nobody's update is lost, and nobody sees half a step.

Another thread comes in through the recording device's hooks, at the one moment that matters; no
test waits for time to pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import opdock as tf
from opdock.runtime.resources import Cell
from tests.plugins import recorder

WARM = 2


@pytest.fixture
def hooks() -> Iterator[SimpleNamespace]:
    with tf.Graph().as_default():
        yield recorder.install()
    recorder.uninstall()


@pytest.fixture(params=["reference", "resource"])
def count(request: pytest.FixtureRequest, hooks: SimpleNamespace) -> Any:
    """A variable, `bump`, which adds 1 to it, and `put`, which assigns what is fed."""
    with tf.device("/device:RECORDER:0"):
        v = tf.Variable([1.0, 1.0], use_resource=request.param == "resource", name="v")
        given = tf.placeholder(tf.float32, [2])
        bump = v.assign_add([1.0, 1.0]).op
        put = v.assign(given).op
    with tf.Session() as sess:
        sess.run(v.initializer)
        yield SimpleNamespace(
            bump=lambda: sess.run(bump),
            put=lambda value: sess.run(put, {given: [value, value]}),
            read=lambda: sess.run(v).tolist()[0],
            cell=lambda: _cell(sess),
            told=lambda: told(sess.explain(bump)),
        )


def told(explained: Any) -> str:
    (segment,) = explained.segments.values()
    return segment.partition("; ")[2]


def _cell(sess: tf.Session) -> Cell:
    (cell,) = sess._engine.resources.items("variable")
    return cell


def elsewhere(work: Callable[[], Any]) -> Any:
    """What `work` returns on another thread, which is over when this returns."""
    box: list[Any] = []
    thread = threading.Thread(target=lambda: box.append(work()))
    thread.start()
    thread.join()
    return box[0]


def once(hooks: SimpleNamespace, name: str, work: Callable[[], Any]) -> list[Any]:
    """Calls `work` at the hook's next call only; the list gets what it returns."""
    box: list[Any] = []

    def come_in() -> None:
        setattr(hooks, name, lambda: None)
        box.append(work())

    setattr(hooks, name, come_in)
    return box


def record(count: Any) -> None:
    for _ in range(WARM + 2):
        count.bump()
    assert count.told() == "recorded; 2 runs replayed"


def test_steps_are_recorded(count):
    record(count)
    assert count.read() == 5.0


def test_an_assignment_during_a_replay_stays(count, hooks):
    record(count)
    came = once(hooks, "replay", lambda: elsewhere(lambda: count.put(100.0)))
    count.bump()
    assert len(came) == 1
    assert count.read() == 100.0
    count.bump()
    assert count.read() == 101.0


def test_an_assignment_during_the_recording_stays_and_is_no_part_of_it(count, hooks):
    for _ in range(WARM):
        count.bump()
    came = once(hooks, "record", lambda: elsewhere(lambda: count.put(100.0)))
    count.bump()
    assert len(came) == 1
    assert count.told() == "recorded; 1 runs replayed"
    assert count.read() == 100.0  # it came after the step that was under way
    for value in (20.0, 30.0):
        count.put(value)
        count.bump()
        assert count.read() == value + 1.0


def test_what_is_recorded_but_not_computed_is_seen_by_nobody(count, hooks):
    for _ in range(WARM):
        count.bump()
    seen = []

    def look() -> None:
        if not seen and count.cell().box is before:
            seen.append(elsewhere(count.read))

    before = count.cell().box
    hooks.update = look  # within the recorded work
    count.bump()
    assert seen == [3.0]
    assert count.read() == 4.0


def test_an_update_waits_for_the_replay_that_it_would_undo(count, hooks):
    record(count)
    cell = count.cell()
    other = threading.Thread(target=count.bump)

    def come_in() -> bool:
        other.start()
        return elsewhere(lambda: cell.lock.acquire(blocking=False))

    came = once(hooks, "replay", come_in)
    count.bump()
    other.join()
    assert came == [False]
    assert count.read() == 7.0


def test_who_reads_during_a_replay_undoes_nothing(count, hooks):
    record(count)
    came = once(hooks, "replay", lambda: elsewhere(count.read))
    count.bump()
    assert came == [5.0]
    assert count.read() == 6.0


def test_who_copies_the_value_out_does_not_undo_an_assignment(count, hooks):
    record(count)
    once(hooks, "duplicate", lambda: elsewhere(lambda: count.put(100.0)))
    assert count.read() in (5.0, 100.0)
    assert count.read() == 100.0


def test_a_trace_has_one_record_of_a_recorded_step_which_names_its_ops(hooks):
    with tf.device("/device:RECORDER:0"):
        v = tf.Variable([1.0, 1.0], name="v")
        doubled = tf.multiply(v + 1.0, 2.0, name="doubled")
        bump = tf.assign_add(v, doubled, name="bump")
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess:
        sess.run(v.initializer)
        for _ in range(WARM + 2):
            sess.run(bump.op)
        metadata = tf.RunMetadata()
        sess.run(bump.op, options=options, run_metadata=metadata)
    (device,) = [d for d in metadata.step_stats.dev_stats if "RECORDER" in d.device]
    (record,) = [n for n in device.node_stats if "_Segment" in n.timeline_label]
    assert "3 ops: " in record.timeline_label
    assert "doubled Mul" in record.timeline_label
    assert "bump AssignAdd" in record.timeline_label
    assert record.all_end_rel_micros == record.op_end_rel_micros
