"""A plugin's ops are citizens: passes treat them by what they declare.

The yardstick is the same program without any pass.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("own_ops_programs.py")


def run(site: Any, program: str) -> tuple[Any, Any]:
    done = site.run(str(PROGRAMS), program)
    with_passes, without = json.loads(done.stdout.splitlines()[-1])
    return with_passes, without


@pytest.mark.parametrize("program", ["effects", "state", "draws", "alias"])
def test_the_same_with_every_pass_and_with_none(site: Any, program: str) -> None:
    with_passes, without = run(site, program)
    assert with_passes == without


def test_effects_happen_once_each_and_in_order(site: Any) -> None:
    (_, first, last), _ = run(site, "effects")
    assert first == [[1, 3.0], [1, 3.0]]
    assert last == [[2, 6.0], [3, 12.0]]


def test_reads_and_writes_of_one_variable_keep_their_order(site: Any) -> None:
    (values, held), _ = run(site, "state")
    assert values == [[1.0, 2.0], [11.0, 12.0], [110.0, 132.0]]
    assert held == [12.0, 13.0]


def test_equal_random_ops_draw_for_themselves(site: Any) -> None:
    (a, b, *_), _ = run(site, "draws")
    assert a == b  # the same seeds: two streams that agree, from a node each
    assert len(set(a)) == 3


def test_blocking_ops_overlap(site: Any) -> None:
    with_passes, _ = run(site, "blocks")
    assert with_passes == [5.0, 8.0]


def test_what_the_compiler_decided(site: Any) -> None:
    with_passes, without = run(site, "decisions")
    assert with_passes == {"tags": 0, "bends": 2, "in_cluster": True}
    assert without["tags"] == 2
    assert without["bends"] == 4


def test_a_kernel_for_an_op_of_its_own_comes_before_the_decomposition(site: Any) -> None:
    """On a backend that does not know the plugin; where it has no kernel the parts are used."""
    done = site.run("-c", PARTS)
    assert done.stdout.split() == ["[3.0]", "[-3.0]"]


def test_a_graph_with_its_ops_is_read_before_any_session(site: Any) -> None:
    done = site.run("-c", READ)
    assert done.stdout.split() == ["True", "[3.0]"]


PARTS = """
import opdock as tf
from fixture_own_ops import parts_op
x = tf.placeholder(tf.float32, [1])
for device in ("/device:CPU:0", "/device:ECHO:0"):
    with tf.device(device):
        y = parts_op(x)
    with tf.Session() as s:
        print(s.run(y, {x: [3.0]}).tolist())
"""
READ = """
import sys
import opdock as tf
graph = tf.GraphDef()
node = graph.node.add(name="x", op="Placeholder")
node.attr["dtype"].type = 1
node = graph.node.add(name="y", op="own>Parts", input=["x"])
node.attr["T"].type = 1
before = "fixture_own_ops" not in sys.modules
y, = tf.import_graph_def(graph, return_elements=["y:0"])
print(before)
with tf.Session() as s:
    print(s.run(y, {"import/x:0": [3.0]}).tolist())
"""
