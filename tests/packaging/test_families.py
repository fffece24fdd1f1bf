"""The tables of what defines ops and kernels are current, and programs load what they use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def told(program: str, *arguments: str) -> Any:
    """What a program in an interpreter of its own prints as JSON.

    Devices are known once every plugin was asked for its own, and to ask PyTorch or JAX is to load
    it with all that it loads. What is told here is of opdock and its CPU alone.
    """
    done = subprocess.run(
        [sys.executable, *arguments, "-c", program],
        env={**os.environ, "OPDOCK_PLUGINS": "cpu"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_tables_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_families.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


SUM = """
import json, sys
import opdock as tf
with tf.Session() as sess:
    assert sess.run(tf.constant([1.0, 2.0]) + 3.0).tolist() == [4.0, 5.0]
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules of a program that adds two numbers."""
    return frozenset(told(SUM))


def test_a_sum_loads_the_kernels_of_sums(loaded: frozenset[str]) -> None:
    tables = {
        name for name in loaded if name.startswith(("opdock_cpu.kernels.", "opdock_cpu.onednn."))
    }
    assert tables == {"opdock_cpu.onednn.stays"}
    assert "opdock.ops.sparse_segment" not in loaded
    assert "opdock.kernels.portable.conv" not in loaded


@pytest.mark.parametrize(
    "name",
    [
        "array_api_compat", "scipy", "numpy.f2py", "numpy.ma", "google.protobuf.descriptor",
        "opdock.graph.serial.importer", "opdock.mapping", "opdock.runtime.cluster.master",
        "opdock.runtime.inspect.explain", "opdock.testing", "opdock.view.model",
        "opdock.compiler.emit.turns", "opdock.runtime.program.turns",
    ],
)  # fmt: skip
def test_a_sum_does_without(name: str, loaded: frozenset[str]) -> None:
    assert name not in loaded


def test_generated_code_is_not_loaded_for_one_op(loaded: frozenset[str]) -> None:
    assert not {name for name in loaded if name.startswith("opdock_cpu.jit.cluster")}


# Every import of opdock's is interrupted once, some within a module that imports it; as Ctrl-C does
# it, in the main thread.
INTERRUPTED = """
import json, sys, threading

class Interrupts:
    def __init__(self):
        self.seen = set()
    def find_spec(self, name, *_):
        main = threading.current_thread() is threading.main_thread()
        if main and name.startswith(("opdock.kernels.", "opdock_cpu.")):
            if name not in self.seen:
                self.seen.add(name)
                raise KeyboardInterrupt(name)

import opdock as tf
once = Interrupts()
sys.meta_path.insert(0, once)

def insist(do):
    while True:
        try:
            return do()
        except KeyboardInterrupt:
            pass

def program():
    tf.reset_default_graph()
    x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
    y = tf.reduce_sum(tf.nn.relu(tf.matmul(x, x) + 1.0))
    with tf.Session() as sess:
        return sess.run([y, tf.gradients(y, x)[0]])

first = [a.tolist() for a in insist(program)]
met = len(once.seen)
print(json.dumps({"first": first, "again": [a.tolist() for a in program()], "met": met}))
"""

# An op family is left in the middle of its definitions, and taken up again.
HALFWAY = """
import json
from opdock.graph.nodes import registry

define, left = registry.define_op, {"LogicalOr", "Greater"}

def defining(name, *args, **words):
    spec = define(name, *args, **words)
    if name in left:
        left.remove(name)
        raise KeyboardInterrupt
    return spec

registry.define_op = defining
import opdock as tf
for _ in range(3):
    try:
        tf.greater(2.0, 1.0)
        tf.logical_or(True, False)
    except KeyboardInterrupt:
        continue
with tf.Session() as sess:
    print(json.dumps([bool(sess.run(tf.greater(2.0, 1.0))), sorted(left)]))
"""


def test_what_was_interrupted_while_it_was_imported_is_imported_again():
    found = told(INTERRUPTED)
    assert found["met"] > 20
    # relu(x @ x + 1) summed, and its gradient, from the same program undisturbed.
    assert found["first"] == found["again"]
    assert found["first"][0] == 27.0


def test_ops_that_an_interrupted_import_had_defined_may_be_defined_again():
    assert told(HALFWAY) == [True, []]


AT_ONCE = """
import json, threading
import opdock as tf

results, start = [], threading.Barrier(4)

def run(i):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.ones([4, 4]) * i
        values = [tf.matmul(x, x), tf.nn.softmax(x), tf.cumsum(x), tf.reduce_max(x)]
        start.wait()
        with tf.Session(graph=graph) as sess:
            results.append((i, [v.tolist() for v in sess.run(values)]))

threads = [threading.Thread(target=run, args=(i % 2,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(json.dumps([len(results), all(v == dict(results)[i] for i, v in results)]))
"""


def test_first_runs_of_several_threads_at_once():
    assert told(AT_ONCE) == [4, True]
