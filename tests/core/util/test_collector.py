"""The garbage collector while much is made: it waits, and then walks what is new once."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading

import pytest

import opdock as tf
from opdock.util.collector import collector_waits

MANY = 20_000


@pytest.fixture
def walks():
    """The generations that the collector walks for this thread; others walk when they like."""
    seen, mine = [], threading.get_ident()

    def note(phase, info):
        if phase == "start" and threading.get_ident() == mine:
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


@pytest.fixture
def nothing_frozen():
    """The tests' own modules are, and then the collector walks what is new."""
    gc.unfreeze()
    gc.collect()
    yield
    gc.freeze()


def young():
    return {id(o) for generation in (0, 1) for o in gc.get_objects(generation)}


@pytest.mark.usefixtures("nothing_frozen")
def test_it_waits_and_much_is_old_then(walks):
    walks.clear()
    with collector_waits():
        made = [[] for _ in range(MANY)]
        with collector_waits():
            made += [[] for _ in range(MANY)]
        assert not walks
    assert not walks
    assert young().isdisjoint(map(id, made))


@pytest.mark.usefixtures("nothing_frozen")
def test_of_much_that_is_made_in_a_row_the_rest_is_walked(walks):
    walks.clear()
    made = []
    for walked in (0, 0, 0, 0, 1, 1):
        with collector_waits():
            made += [[] for _ in range(MANY)]
        assert len(walks) == walked
        walks.clear()
    assert young().isdisjoint(map(id, made))
    gc.collect()
    walks.clear()
    with collector_waits():
        made += [[] for _ in range(MANY)]
    assert not walks


def test_what_the_user_has_frozen_stays_so(walks):
    gc.freeze()
    frozen = gc.get_freeze_count()
    walks.clear()
    with collector_waits():
        made = [[] for _ in range(MANY)]
    assert walks == [1]
    assert young().isdisjoint(map(id, made))
    assert gc.get_freeze_count() == frozen


def test_little_is_left_to_its_own_time(walks):
    gc.collect()
    walks.clear()
    with collector_waits():
        made = [[] for _ in range(10)]
    assert not walks
    assert made


def test_one_that_is_off_stays_off(walks):
    gc.disable()
    try:
        walks.clear()
        with collector_waits():
            made = [[] for _ in range(MANY)]
        assert not gc.isenabled()
        assert not walks
        assert made
    finally:
        gc.enable()


@pytest.mark.usefixtures("nothing_beside")
def test_a_program_keeps_few_objects_for_each_op():
    """What is kept is walked, whenever the collector looks at everything."""
    count = 1_000
    x = y = tf.placeholder(tf.float32, [8])
    for i in range(count):
        y = tf.gather(y + float(i), [0, 1, 2, 3, 4, 5, 6, 7])
    with tf.Session() as session:
        session.run(x, {x: [0.0] * 8})
        gc.collect()
        before = len(gc.get_objects())
        session.run(y, {x: [0.0] * 8})
        gc.collect()
        kept = len(gc.get_objects()) - before
        nodes = len(session._cache.entries()[-1].program.block.nodes)
    assert nodes > 3 * count
    assert kept < 12 * nodes


FIRST = """
import gc, json
walks = []
gc.callbacks.append(lambda phase, info: phase == "start" and walks.append(info["generation"]))
import opdock as tf
tf.constant(1.0) + tf.constant(2.0)
session = tf.Session()
print(json.dumps([walks.count(generation) for generation in range(3)]))
"""


def test_what_a_process_imports_is_walked_once():
    """Before, the young were walked 124 times on the way to the first session, and all once."""
    said = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    young, middle, all_of_it = json.loads(said.stdout)
    assert all_of_it == 0
    assert middle <= 6
    assert young <= 20


def test_graphs_that_programs_were_made_of_go():
    code = """
import weakref
import opdock as tf
graphs = []
for _ in range(16):
    tf.reset_default_graph()
    x = y = tf.placeholder(tf.float32, [4])
    for _ in range(400):
        y = tf.sin(y) + 0.25
    with tf.Session() as session:
        session.run(tf.gradients(y, x), {x: [1.0] * 4})
    graphs.append(weakref.ref(tf.get_default_graph()))
print(sum(graph() is not None for graph in graphs))
"""
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "OPDOCK_JIT": "off"},
    )  # fmt: skip
    assert int(told.stdout) < 10
