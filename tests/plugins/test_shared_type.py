"""Two plugins that serve one device type: one pool, each hardware once, own names for all."""

from __future__ import annotations

TASK = "/job:localhost/replica:0/task:0"


def test_the_pool_counts_hardware_once(site):
    devices = {d["name"]: d for d in site.doctor()["devices"]}
    pool = {n: d for n, d in devices.items() if "/device:GADGET:" in n}
    assert sorted(pool) == [f"{TASK}/device:GADGET:{i}" for i in range(3)]
    assert [pool[n]["physical_id"] for n in sorted(pool)] == ["slot:0", "slot:1", "slot:2"]
    assert [pool[n]["backend"] for n in sorted(pool)] == ["gadget_a", "gadget_a", "gadget_b"]


def test_own_names_reach_every_device(site):
    devices = {d["name"]: d for d in site.doctor()["devices"]}
    assert devices[f"{TASK}/device:GADGET:2"]["aliases"] == [f"{TASK}/device:GADGET_B:1"]
    assert devices[f"{TASK}/device:GADGET:1"]["aliases"] == [f"{TASK}/device:GADGET_A:1"]
    # The second view of slot:1 is in no pool, and yet has its name.
    assert devices[f"{TASK}/device:GADGET_B:0"]["physical_id"] == "slot:1"
    assert not devices[f"{TASK}/device:GADGET_B:0"]["automatic"]


def test_one_graph_uses_both(site):
    program = """
import opdock as tf
with tf.device("/device:GADGET_A:0"):
    a = tf.constant([1.0]) + 1.0
with tf.device("/device:GADGET:2"):
    b = a + 2.0
with tf.Session() as sess:
    print(sess.run(b))
"""
    assert site.run("-W", "error", "-c", program).stdout == "[4.]\n"
