"""Programs whose nodes the fixture `places` places; run in a process of its own, prints JSON."""

from __future__ import annotations

import json
import sys

import fixture_places as places
import numpy as np

import opdock as tf


def session(soft: bool = False) -> tf.Session:
    return tf.Session(config=tf.ConfigProto(allow_soft_placement=soft, device_count={"PLACE": 2}))


def run(s, fetch, feed):
    value = np.asarray(s.run(fetch, feed)).tolist()
    rows = s.explain(fetch, feed).rows
    return value, {r.node: (r.device.rpartition("device:")[2], r.how, r.why) for r in rows}


def rungs():
    """What the hook is told of each rung, and where the nodes then run."""
    x = tf.placeholder(tf.float32, [2], name="x")
    native = tf.nn.relu(x, name="native")
    portable = tf.tanh(native, name="portable")
    decomposed = tf.identity(places.twice_op(portable, name="decomposed"))
    pinned = decomposed
    with tf.device("/cpu:0"):
        pinned = tf.add(decomposed, 1.0, name="pinned")
    places.wishes.update(native="PLACE:1", portable="PLACE:0", decomposed="PLACE:1")
    with session() as s:
        value, rows = run(s, pinned, {x: [-1.0, 1.0]})
    return value, rows, {n: seen[-1] for n, seen in places.seen.items()}


def group():
    """A variable, whose place is chosen when it is initialized and holds for its update."""
    v = tf.Variable([1.0, 2.0], name="v")
    places.wishes.update(v="PLACE:1")
    step = tf.assign_add(v, [1.0, 1.0], name="step")
    with session() as s:
        s.run(v.initializer)
        told = places.seen.pop("v")
        value, rows = run(s, step, {})
    return value, rows["v"], told, [n for n in places.seen if n in ("v", "step")]


def halves():
    """Two nodes that share a device, of which it runs one."""
    x = tf.placeholder(tf.float32, [2], name="x")
    first = tf.tanh(x, name="first")
    with tf.colocate_with(first.op):
        second = tf.add(first, 1.0, name="second")
    places.wishes.update(first="MOODY:0")
    with session() as s:
        value, rows = run(s, second, {x: [0.0, 0.0]})
    told = places.seen["first"][-1]["candidates"]
    return value, told, rows["first"][:2], rows["second"][:2], "second" in places.seen


def bans():
    """A kernel that gave up, and a device that was lost, are not offered again."""
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.nn.relu(x, name="relu")
    places.wishes.update(relu="PLACE:0")
    with session(soft=True) as s:
        s.run(y, {x: [-1.0, 1.0]})
        before = places.seen["relu"][-1]["candidates"]
        s.run(y, {x: [-11.0, 1.0]})
        s.run(y, {x: [-1.0, 1.0]})
        banned = places.seen["relu"][-1]["candidates"]
    z = tf.add(x, x, name="sum")
    places.wishes.update(sum="PLACE:1")
    with session(soft=True) as s:
        first, rows = run(s, z, {x: [1.0, 2.0]})
        places.lost.add(1)
        second, after = run(s, z, {x: [1.0, 2.0]})
        offered = sorted(places.seen["sum"][-1]["candidates"])
    return {
        "before": before,
        "banned": banned,
        "values": [first, second],
        "where": [rows["sum"][0], after["sum"][0]],
        "offered": offered,
    }


def refusals():
    """Portable kernels that the device does without, and what happens to the ops."""
    x, y = tf.placeholder(tf.float32, [1]), tf.placeholder(tf.float64, [1])
    z = tf.placeholder(tf.float32, [])
    feed = {x: [1.0], y: [1.0], z: 0.0}
    with tf.device("/device:PLACE:0"):
        fetch = [
            tf.nn.softsign(x, name="sign"), tf.nn.elu(x, name="fine"), tf.nn.elu(y, name="finer"),
            tf.sinh(z, name="lonely"),
        ]  # fmt: skip
    with session(soft=True) as s:
        values = [np.asarray(v).tolist() for v in s.run(fetch, feed)]
        rows = {r.node: r for r in s.explain(fetch, feed).rows}
    return values, {
        n: (rows[n].device.rpartition("device:")[2], rows[n].how, rows[n].rejections)
        for n in ("sign", "fine", "finer", "lonely")
    }


def nonsense():
    """An answer that is no candidate is ignored, and who gave it is told."""
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.tanh(x, name="bent")
    places.wishes.update(bent="/device:MOON:0")
    with session() as s:
        return run(s, y, {x: [0.0, 0.0]})[0]


PROGRAMS = {f.__name__: f for f in (rungs, group, halves, bans, refusals, nonsense)}
print(json.dumps(PROGRAMS[sys.argv[1]]()))
