"""A kernel that declines or runs out of memory while running moves its node, if that is allowed."""

from __future__ import annotations

PREAMBLE = """
import numpy as np, opdock as tf
import fixture_moody as moody

x = tf.placeholder(tf.float32, [None], name="x")
with tf.device("/device:MOODY:0"):
    total = tf.add(x, x, name="total")
    product = tf.multiply(x, x, name="product")

def session(soft):
    return tf.Session(config=tf.ConfigProto(allow_soft_placement=soft))
"""


def run(site, program):
    return site.run("-c", PREAMBLE + program, OPDOCK_PLUGINS="cpu,moody").stdout.splitlines()


def test_what_it_likes_runs_there(site):
    assert run(site, """
with session(False) as sess:
    print(*sess.run([total, product], {x: [1.0, 2.0]}))
print(dict(moody.calls))
""") == ["[2. 4.] [1. 4.]", "{'Add': 1, 'Mul': 1}"]  # fmt: skip


def test_a_declined_node_moves_once(site):
    assert run(site, """
with session(True) as sess:
    for _ in range(3):
        print(sess.run(total, {x: [-1.0, 2.0]}))
print(dict(moody.calls))
""") == ["[-2.  4.]"] * 3 + ["{'Add': 1}"]  # fmt: skip


def test_a_node_without_memory_moves(site):
    assert run(site, """
with session(True) as sess:
    print(sess.run(product, {x: [1.0] * 5}))
""") == ["[1. 1. 1. 1. 1.]"]  # fmt: skip


def test_state_of_the_step_is_kept(site):
    """What ran before the decline does not run again: a counter counts the step once."""
    assert run(site, """
with tf.device("/cpu:0"):
    counter = tf.Variable(0)
    count = tf.assign_add(counter, 1)
with tf.control_dependencies([count]), tf.device("/device:MOODY:0"):
    late = tf.add(x, x)
with session(True) as sess:
    sess.run(counter.initializer)
    print(sess.run(late, {x: [-1.0]}), sess.run(counter))
""") == ["[-2.] 1"]  # fmt: skip


def test_without_soft_placement_the_error_names_all(site):
    (told,) = run(site, """
try:
    session(False).run(total, {x: [-1.0]})
except tf.errors.UnimplementedError as e:
    assert e.op is total.op
    print(str(e).replace(chr(10), " "))
try:
    session(False).run(product, {x: [1.0] * 5})
except tf.errors.ResourceExhaustedError as e:
    assert e.op is product.op
""")  # fmt: skip
    assert "moody dislikes negative numbers" in told
    assert "total" in told


def test_a_kernel_that_declines_at_placement(site):
    assert run(site, """
y = tf.placeholder(tf.float64, [1])
with tf.device("/device:MOODY:0"):
    z = tf.multiply(y, y)
print(session(True).run(z, {y: [2.0]}))
try:
    session(False).run(z, {y: [2.0]})
except tf.errors.InvalidArgumentError as e:
    assert "only float32" in str(e), str(e)
    print("refused")
""") == ["[4.]", "refused"]  # fmt: skip
