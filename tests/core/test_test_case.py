"""`tf.test.TestCase`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf


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


def test_the_directory_that_was_asked_for_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = tmp_path / "not" / "there"
    monkeypatch.setenv("TEST_TMPDIR", str(asked))
    assert tf.test.get_temp_dir() == str(asked) and asked.is_dir()
