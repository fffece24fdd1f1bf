"""`tf.test.TestCase`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode, graph_mode


class Pair(NamedTuple):
    x: Any
    y: Any


class Example(tf.test.TestCase):
    def test_the_test_case(self):
        with self.cached_session() as session:
            x = tf.constant([1.0, 2.0])
            self.assertAllClose(x * 2, [2, 4])
            self.assertAllEqual(tf.constant(["a"]), ["a"])
            self.assertNotAllClose(x, [1, 3])
            self.assertAllInSet(x, [1.0, 2.0, 3.0])
            with self.assertRaises(AssertionError):
                self.assertAllEqual(x, [1, 3])
            with self.assertRaisesOpError("assertion failed"):
                session.run(tf.Assert(tf.reduce_any(x > 5), [x]))
            error = tf.test.compute_gradient_error(
                x, [2], x * x, [2], x_init_value=np.array([1.0, 2.0])
            )
            self.assertLess(error, 1e-2)
        with self.session(use_gpu=True):
            self.assertEqual(self.evaluate(tf.constant(3)), 3)
        self.assertTrue(self.get_temp_dir())
        self.assertIn(tf.test.is_gpu_available(), (True, False))

    def test_structures_that_are_near(self):
        value = {"x": np.ones((3, 2)), "y": (2, [{"m": tf.constant(3), "n": 4}])}
        self.assertAllClose(value, Pair(**value))
        self.assertAllClose([Pair(np.zeros(2), 1.0)], [Pair([0, 0], 1)])

    def test_where_structures_differ(self):
        value = {"x": 1.0, "y": (2, [{"m": 3, "n": 4}])}
        with self.assertRaisesRegex(AssertionError, r"a\[y\]\[1\]\[0\]\[n\] is different"):
            self.assertAllClose(value, {"x": 1.0, "y": (2, [{"m": 3, "n": 4.2}])})
        with self.assertRaisesRegex(AssertionError, "mismatched keys: a has keys"):
            self.assertAllClose(value, {"x": 1.0})
        with self.assertRaisesRegex(
            ValueError, r"Can't compare dict to non-dict, a\[y\]\[1\]\[0\]"
        ):
            self.assertAllClose(value, {"x": 1.0, "y": (2, [3])})
        with self.assertRaisesRegex(ValueError, r"Mismatched length: a\[y\] has 2 items"):
            self.assertAllClose(value, {"x": 1.0, "y": (2,)})

    def test_what_a_failure_says(self):
        with self.assertRaisesRegex(AssertionError, r"(?s)Not equal to tolerance.*dif = \[1"):
            self.assertAllClose([0.0, 2.0], [0.0, 3.0])
        with self.assertRaisesRegex(
            AssertionError, r"not equal lhs = \[2\]\nnot equal rhs = \[3\]"
        ):
            self.assertAllEqual([0, 2], [0, 3])
        with self.assertRaisesRegex(
            AssertionError, r"expected \(2,\), got \(1,\) with contents \[7\]"
        ):
            self.assertAllEqual([0, 2], [7])
        with self.assertRaisesRegex(AssertionError, "not have an ordered numeric type"):
            self.assertAllInRange(tf.constant([1j]), 0.0, 1.0)

    def test_half_precision_gets_no_tolerance_that_was_not_asked_for(self):
        with self.assertRaises(AssertionError):
            self.assertAllClose(np.float16([1]), np.float16([1.0005]))
        self.assertAllCloseAccordingToType(np.float16([1]), np.float16([1.0005]))

    def test_the_cached_session_is_asked_for_in_one_way(self):
        with self.test_session() as session, self.cached_session() as same:
            assert same is session
            for other in ({"graph": tf.Graph()}, {"force_gpu": True}, {"config": tf.ConfigProto()}):
                with self.assertRaisesRegex(ValueError, "is different than the one"):
                    with self.cached_session(**other):
                        pass
            with self.test_session(config=tf.ConfigProto()) as older_name:
                assert older_name is session


def _graph_def(*nodes):
    made = tf.GraphDef()
    for name, op, inputs, attrs in nodes:
        node = made.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            node.attr[key].s = value
    return made


def test_equal_graphs_whatever_their_order_and_internal_attributes():
    one = _graph_def(("a", "A", [], {}), ("b", "B", ["a:0", "^c", "^d"], {"x": b"1"}))
    two = _graph_def(("b", "B", ["a", "^d", "^c"], {"x": b"1", "_y": b"2"}), ("a", "A", [], {}))
    tf.test.assert_equal_graph_def(one, two)


@pytest.mark.parametrize(
    ("actual", "says"),
    [
        ((), r"^Did not find expected node '{{node a}} = A\[x=s: \"1\"\]\(b, \^c\)'"),
        (
            ("a", "B", ["b", "^c"], {"x": b"1"}),
            "^Node named 'a' has op 'B' that is not expected 'A'",
        ),
        (("a", "A", ["b"], {"x": b"1"}), "has inputs 'b' that don't match expected 'b, \\^c'"),
        (("a", "A", ["d", "^c"], {"x": b"1"}), "has input 0 'd' that doesn't match expected 'b'"),
        (("a", "A", ["b", "^d"], {"x": b"1"}), "missing expected control input '\\^c'"),
        (("a", "A", ["b", "^c"], {}), "missing expected attr 'x' with value: s: \"1\""),
        (("a", "A", ["b", "^c"], {"x": b"2"}), "has attr 'x' with value: s: \"2\" that does not"),
        (("a", "A", ["b", "^c"], {"x": b"1", "y": b"2"}), "has unexpected attr 'y'"),
    ],
)
def test_graphs_that_differ(actual, says):
    expected = _graph_def(("a", "A", ["b", "^c"], {"x": b"1"}))
    with pytest.raises(AssertionError, match=says):
        tf.test.assert_equal_graph_def(_graph_def(*([actual] if actual else [])), expected)


def test_unexpected_nodes_and_values_that_are_no_graphs():
    with pytest.raises(AssertionError, match="^Found unexpected node '{{node a}}"):
        tf.test.assert_equal_graph_def(_graph_def(("a", "A", [], {})), tf.GraphDef())
    with pytest.raises(TypeError, match="Expected tf.GraphDef for expected, got str"):
        tf.test.assert_equal_graph_def(tf.GraphDef(), "")


def test_names_that_were_drawn_at_random_may_differ():
    one, two = (
        _graph_def(("t", "HashTableV2", [], {"shared_name": b"hash_table_" + drawn}))
        for drawn in (b"1a-2", b"3b-4")
    )
    tf.test.assert_equal_graph_def(one, two, hash_table_shared_name=True)
    with pytest.raises(AssertionError, match="shared_name"):
        tf.test.assert_equal_graph_def(one, two)


# A test whose directory is the current one when it ends, and where the next one is.
_DIRECTORIES = """
import os, unittest
import opdock as tf

class T(tf.test.TestCase):
    def test_1(self):
        os.chdir(self.get_temp_dir())
        open("kept", "w").close()
        self.assertEqual(self.get_temp_dir(), self.get_temp_dir())
        T.first = self.get_temp_dir()

    def test_2(self):
        self.assertEqual(os.listdir(os.getcwd()), ["kept"])
        self.assertNotEqual(self.get_temp_dir(), T.first)
        if os.fork() == 0:
            raise SystemExit  # which removes nothing of its parent's
        os.wait()
        self.assertTrue(os.path.isdir(T.first))
        print(tf.test.get_temp_dir())

unittest.main()
"""


@pytest.mark.parametrize("asked", [None, "not/there"])
def test_directories_last_until_the_process_ends(asked: str | None, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "TEST_TMPDIR"} | {"TMPDIR": str(tmp_path)}
    if asked is not None:
        env["TEST_TMPDIR"] = str(tmp_path / asked)
    done = subprocess.run(
        [sys.executable, "-c", _DIRECTORIES], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [made] = [Path(line) for line in done.stdout.split()]
    assert str(made).startswith(str(tmp_path / (asked or "opdock_test_")))
    assert not made.exists()


def _leave() -> None:
    """What the next test must not find; a step later it would say that it exists."""
    assert tf.get_collection("mine") == []
    assert tf.train.get_global_step() is None
    tf.add_to_collection("mine", 1)
    tf.train.get_or_create_global_step()
    tf.get_variable("w", [])


class Isolated(tf.test.TestCase):
    def test_1(self) -> None:
        _leave()
        tf.add_to_collection(tf.GraphKeys.SUMMARIES, 2)

    test_2 = test_1

    def test_3(self) -> None:
        with eager_mode():
            _leave()

    test_4 = test_3

    def test_5(self) -> None:
        with graph_mode():
            _leave()

    test_6 = test_5

    def test_7(self) -> None:
        with tf.Graph().as_default(), eager_mode():
            tf.add_to_collection("mine", 1)
            self.setUp()
            assert tf.executing_eagerly()
            _leave()
        with tf.Graph().as_default() as graph:
            self.setUp()
            assert tf.get_default_graph() is not graph and not tf.executing_eagerly()
            tf.reset_default_graph()


@pytest.mark.parametrize("everywhere", [False, True])
def test_no_test_finds_what_another_left(everywhere: bool) -> None:
    made = [Isolated(f"test_{i}") for i in range(1, 8)]
    if everywhere:
        with eager_mode(alone=True):
            found = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.TestSuite(made))
            assert tf.executing_eagerly()
    else:
        found = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.TestSuite(made))
    assert found.testsRun == 7 and found.wasSuccessful(), found.errors + found.failures


def test_a_reset_where_operations_run_at_once() -> None:
    with eager_mode(alone=True), tf.device("/cpu:0"), tf.name_scope("a"):
        tf.set_random_seed(1)
        expected = [tf.random_uniform([]).numpy() for _ in range(2)]
        tf.set_random_seed(1)
        v = tf.Variable(2.0)
        tf.add_to_collection("mine", v)
        with tf.GradientTape() as tape:
            y = v * 3.0
            first = tf.random_uniform([]).numpy()
            tf.reset_default_graph()
            # The seed's numbers go on, as do tape and scopes; variables are there.
            assert [first, tf.random_uniform([]).numpy()] == expected
            assert tf.executing_eagerly() and tf.get_collection("mine") == []
            z = y * v
        assert tape.gradient(z, v).numpy() == 12.0
        assert z.op.name == "a/mul" or z.name.startswith("a/")
        with tf.Graph().as_default(), pytest.raises(AssertionError, match="nested graphs"):
            tf.reset_default_graph()


def test_a_default_writer_is_no_other_tests(tmp_path: Path) -> None:
    class Written(tf.test.TestCase):
        def test_1(self) -> None:
            with eager_mode():
                tf.contrib.summary.create_file_writer(str(tmp_path)).set_as_default()

        def test_2(self) -> None:
            with eager_mode(), tf.contrib.summary.always_record_summaries():
                tf.train.get_or_create_global_step()
                tf.contrib.summary.scalar("loss", 1.0)
                tf.contrib.summary.flush()

    found = unittest.TestResult()
    unittest.TestSuite([Written("test_1"), Written("test_2")]).run(found)
    assert found.wasSuccessful(), found.errors
    written = [e for f in tmp_path.iterdir() for e in tf.train.summary_iterator(str(f))]
    assert not [e for e in written if e.HasField("summary")]
