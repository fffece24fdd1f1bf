"""What the CPU's products may rely on: constants, variables and what no turn of a loop changes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import opdock as tf
from opdock import plugin
from opdock.plugin import GraphPass, hookimpl
from opdock_cpu.onednn.stays import kept_of

NAME = "kept-inputs-for-tests"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def products():
    """Node name to the inputs that stay, of every product compiled in the test."""
    found = {}

    def look(block):
        found.update((n.name, kept_of(n.attrs)) for n in block.nodes if n.op == "MatMul")

    @hookimpl
    def opdock_graph_passes():
        yield GraphPass(name="zz_look", stage="after_place", run=look)

    plugin.register(SimpleNamespace(opdock_graph_passes=opdock_graph_passes), NAME)
    yield found
    plugin.unregister(NAME)


def test_in_a_program(products):
    x = tf.placeholder(tf.float32, [4, 4])
    v = tf.Variable(np.eye(4, dtype=np.float32))
    fetches = [
        tf.matmul(x, x, name="fed"), tf.matmul(x, v, name="weights"),
        tf.matmul(tf.constant(np.ones((4, 4), np.float32)), x + 1, name="constant"),
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(fetches, {x: np.ones((4, 4))})
    assert products == {"fed": (), "weights": (1,), "constant": (0,)}


def test_in_a_loop(products):
    """What is fed, computed or a variable outside stays inside; what a turn makes does not."""
    x = tf.placeholder(tf.float32, [4, 4])
    v = tf.Variable(np.eye(4, dtype=np.float32))
    outside = tf.tanh(x)

    def body(i, h, w, s, t):
        h = tf.matmul(h, x, name="fed") + tf.matmul(h, outside, name="computed")
        h = h + tf.matmul(h, v, name="weights") + tf.matmul(w, h, name="passed_on")
        return i + 1, h + tf.matmul(s, t, name="swapped"), tf.identity(w), t, s

    loop = tf.while_loop(lambda i, *_: i < 2, body, [tf.constant(0), x, x, x, x + 1])
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(loop, {x: np.ones((4, 4))})
    assert products == {
        "while/fed": (1,), "while/computed": (1,), "while/weights": (1,),
        "while/passed_on": (0,), "while/swapped": (),
    }  # fmt: skip


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_each_step_has_its_own(turns):
    """The same array with other contents, and another array, between steps of one program."""
    x, w = tf.placeholder(tf.float32, [64, 256]), tf.placeholder(tf.float32, [256, 256])
    n = tf.placeholder(tf.int32, [])
    twice = w * 2.0
    _, h = tf.while_loop(
        lambda i, h: i < n,
        lambda i, h: (i + 1, tf.matmul(h, w) + tf.matmul(h, twice, transpose_b=True)),
        [tf.constant(0), x],
    )
    rng = np.random.default_rng(0)
    start, weights = (rng.normal(0, 0.05, s).astype(np.float32) for s in ((64, 256), (256, 256)))
    with tf.Session() as session:
        for k in range(4):
            weights *= -0.5 - k  # in place
            fed = weights if k % 2 else weights.copy()
            want = start
            for _ in range(turns):
                want = want @ weights + want @ (2 * weights).T
            got = session.run(h, {x: start, w: fed, n: turns})
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
