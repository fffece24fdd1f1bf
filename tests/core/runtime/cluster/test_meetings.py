"""Members of groups in several tasks, whose sessions know nothing of each other."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

import opdock as tf
from opdock.ops import collective
from tests.core.runtime.cluster.test_faults import SOON, once
from tests.core.runtime.cluster.threads import Fault

TASKS = ("/job:ps", "/job:worker")


class Member:
    """A session of one task's own, which adds its value to the other's."""

    def __init__(self, task: str, target: str, leader: str) -> None:
        config = tf.ConfigProto(device_filters=[task])
        config.experimental.collective_group_leader = leader
        with tf.Graph().as_default() as graph, tf.device(f"{task}/device:CPU:0"):
            self.x = tf.placeholder(tf.float32, [2])
            self._sum = collective.all_reduce(self.x, 2, 1, 1, "Add", "Id")
        self.session = tf.Session(target, graph, config)

    def add(self, value, options=None):
        return self.session.run(self._sum, {self.x: value}, options=options).tolist()


@pytest.fixture
def members(far):
    """One of each task; they meet at that of /job:ps, from which the other one is far."""
    made = [
        Member(task, f"grpc://far:{i}", "/job:ps/replica:0/task:0") for i, task in enumerate(TASKS)
    ]
    yield made
    for member in made:
        member.session.close()


@pytest.fixture
def both(members):
    """What the two get for their values."""
    with ThreadPoolExecutor(2) as threads:
        yield lambda *values, options=None: list(
            threads.map(lambda m, v: m.add(v, options), members, values)
        )


def test_tasks_meet_at_their_leader(both):
    for i in range(3):
        assert both([i, 1], [1, i]) == [[i + 1, i + 1]] * 2


def test_values_that_do_not_fit_are_told_to_both(members):
    with members[1].session.graph.as_default(), tf.device("/job:worker/device:CPU:0"):
        other = collective.all_reduce(tf.constant([1.0]), 2, 1, 1, "Add", "Id")
    with ThreadPoolExecutor(2) as threads:
        told = [
            threads.submit(members[0].add, [1, 1]), threads.submit(members[1].session.run, other),
        ]  # fmt: skip
        for one in told:
            with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
                one.result()


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
def test_what_is_lost_is_known_at_the_deadline(threads, both, members, fault):
    left = once(threads, "far:0", "meet", fault)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(members[0].add, [1, 1], SOON)
        with pytest.raises(tf.errors.DeadlineExceededError):
            members[1].add([1, 1], SOON)
        assert not left
        if fault is Fault.LOST:
            with pytest.raises(tf.errors.DeadlineExceededError):
                waiting.result()
        else:  # as with a step: the answer is lost, not what was done
            assert waiting.result() == [2, 2]
    assert both([1, 2], [3, 4]) == [[4, 6]] * 2


def test_who_comes_twice_counts_once(threads, both, far):
    threads.fault = lambda where, what: Fault.TWICE if what == "meet" else Fault.NONE
    before = len(threads.handled.answers)
    with contextlib.suppress(tf.errors.AbortedError):  # the refusal may come before the answer
        assert both([1, 2], [3, 4]) == [[4, 6]] * 2
    threads.fault = lambda where, what: Fault.NONE
    threads.handled.wait_for(before + 2)
    assert both([1, 2], [3, 4]) == [[4, 6]] * 2


def test_who_comes_when_its_step_is_over_is_sent_away(threads, both, members, far):
    once(threads, "far:0", "meet", Fault.LATE)
    with pytest.raises(tf.errors.DeadlineExceededError):
        members[1].add([100, 100], SOON)
    before = len(threads.handled.answers)
    threads.late.set()
    threads.handled.wait_for(before + 1)
    assert both([1, 2], [3, 4]) == [[4, 6]] * 2


def test_a_leader_that_is_cut_off(threads, both, members):
    threads.fault = lambda where, what: Fault.CUT if what == "meet" else Fault.NONE
    with pytest.raises(tf.errors.UnavailableError, match="far:0 is cut off"):
        members[1].add([1, 1])
    threads.fault = lambda where, what: Fault.NONE
    assert both([1, 2], [3, 4]) == [[4, 6]] * 2


def test_a_leader_that_is_none(far):
    member = Member(TASKS[1], "grpc://far:1", "/job:nobody/replica:0/task:0")
    with member.session, pytest.raises(tf.errors.InvalidArgumentError, match="no task of the clus"):
        member.add([1, 1])
