"""Steps over tasks, split: who gets which nodes, and in how many messages values cross."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.compiler.clean.prune import as_written
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.compiler.tasks.assign import assign
from opdock.compiler.tasks.split import Part, split

TASKS = ["/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def parts(fetches, runs=(), feeds=(), soft=False) -> dict[str, Part]:
    targets = [
        Target(
            name=f"{task}/device:CPU:0", aliases=(), backend="", distribution="", priority=0,
            open=None,
        )
        for task in TASKS
    ]  # fmt: skip
    fed = [(t, t.dtype, (2,)) for t in feeds]
    block = as_written([t.value() if hasattr(t, "value") else t for t in fetches], runs, fed)
    found = split(block, assign(block, Placer(targets, soft)), tf.get_default_graph())
    return {part.task: part for part in found}


def ops(part: Part, kind: str = "") -> list[str]:
    return [n.name for n in part.graph_def.node if not kind or n.op == kind]


def test_what_one_task_needs_of_another_comes_at_once():
    with tf.device("/job:ps/task:0"):
        values = [tf.Variable([1.0, float(i)]) for i in range(5)]
    with tf.device("/job:worker"):
        total = tf.add_n([v * 2.0 for v in values])
    found = parts([total])
    assert set(found) == set(TASKS[:2])
    (sent,) = ops(found[TASKS[1]], "_SendToTask")
    (taken,) = ops(found[TASKS[0]], "_ReceiveFromTask")
    node = next(n for n in found[TASKS[1]].graph_def.node if n.name == sent)
    assert len(node.attr["T"].list.type) == 5
    assert found[TASKS[1]].targets == [sent]
    assert found[TASKS[0]].fetches == [total.name]
    assert taken != sent or sent.startswith("send")


def test_nodes_that_ask_for_nothing_are_the_masters():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:ps"):
        there = x + 1.0
    result = there * 2.0
    found = parts([result, x], feeds=[x])
    assert result.op.name in ops(found[TASKS[0]])
    # What is fed goes to where it is needed, and so do constants.
    assert found[TASKS[1]].fed == [0]
    assert not found[TASKS[0]].fed
    assert found[TASKS[0]].fetched == [0]
    assert len(ops(found[TASKS[0]], "_ReceiveFromTask")) == 1
    assert not ops(found[TASKS[1]], "_ReceiveFromTask")


def test_a_group_stays_together():
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.device("/job:worker/task:0"):
        read, update = v.read_value(), v.assign_add(1.0).op
    found = parts([read], [update])
    kinds = {task: {n.op for n in part.graph_def.node} for task, part in found.items()}
    assert {"VarHandleOp", "ReadVariableOp", "AssignAddVariableOp"} <= kinds[TASKS[2]]
    assert not any("Variable" in op for op in kinds[TASKS[0]])
    devices = {n.device for n in found[TASKS[2]].graph_def.node if n.op != "Placeholder"}
    assert all(d.startswith("/job:ps/replica:0/task:1") for d in devices if d)


def test_what_waits_does_not_hold_up_what_does_not():
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
        waited, ready = queue.dequeue(), tf.random_uniform([])
    with tf.device("/job:worker"):
        result = [waited + 1.0, ready + 1.0]
    found = parts(result)
    assert len(ops(found[TASKS[1]], "_SendToTask")) == 2


def waits(part: Part) -> list[int]:
    """For each message that a task waits for, how many others it waits for before."""
    receives = [n for n in part.graph_def.node if n.op == "_ReceiveFromTask"]
    names = {f"^{n.name}" for n in receives}
    return [len(names.intersection(n.input)) for n in receives]


def test_messages_of_several_tasks_are_waited_for_in_order():
    values = []
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            values.append(tf.Variable([1.0, float(task)]))
    with tf.device("/job:worker"):
        total = tf.add_n(values)
    assert waits(parts([total])[TASKS[0]]) == [0, 1]


def test_a_replica_waits_for_its_token_when_it_has_handed_in_its_gradients():
    with tf.device("/job:ps/task:0"):
        v, accumulator = tf.Variable([1.0, 2.0]), tf.ConditionalAccumulator(tf.float32, [2])
        tokens = tf.FIFOQueue(1, [tf.int64], shapes=[[]])
    with tf.device("/job:worker"):
        gradient = v * 2.0
    put = accumulator.apply_grad(gradient)
    with tf.device("/job:ps/task:0"), tf.control_dependencies([put]):
        token = tokens.dequeue()
    with tf.device("/job:worker"):
        result = token + 1
    found = parts([result])
    assert waits(found[TASKS[0]]) == [0, 1]
    # The number of its step goes with them.
    assert waits(found[TASKS[1]]) == [0]
    (sent,) = (n for n in found[TASKS[0]].graph_def.node if n.op == "_SendToTask")
    assert len(sent.attr["T"].list.type) == 2


def test_nothing_is_held_up_by_what_waits():
    """What a task does without a message is not to come after it."""
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
        first, v = queue.dequeue(), tf.Variable(2.0)
    with tf.device("/job:worker"):
        put = queue.enqueue(v * 3.0)  # it may be this one that `first` waits for
        result = first + 1.0
    assert waits(parts([result], [put])[TASKS[0]]) == [0, 0]
    with tf.device("/job:ps/task:1"):
        w = tf.Variable(2.0)
    with tf.device("/job:worker"):
        both = [first + 1.0, w + 1.0, v + 1.0]
    # The dequeuing may keep its task from sending `v`, and nothing keeps `w`.
    assert sorted(waits(parts(both)[TASKS[0]])) == [0, 0, 1]


def test_parts_know_the_functions_of_their_nodes():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:ps"):
        _, doubled = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x))
    found = parts([doubled * 1.0], feeds=[x])
    assert len(found[TASKS[1]].graph_def.library.function) == 2
    assert not found[TASKS[0]].graph_def.library.function


def test_devices_that_no_task_has():
    with tf.device("/job:ps/task:0/device:GPU:3"):
        there = tf.random_uniform([])
    with pytest.raises(tf.errors.InvalidArgumentError, match="available devices are"):
        parts([there])
    assert set(parts([there], soft=True)) == {TASKS[1]}
    with tf.device("/job:ps/task:7"):
        nowhere = tf.random_uniform([])
    for soft in (False, True):
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:ps/task:7"):
            parts([nowhere], soft=soft)
