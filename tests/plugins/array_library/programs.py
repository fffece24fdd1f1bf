"""Programs on several devices of an array library: as on one, and every copy in the trace.

Each backend's folder has a class of tests that derives from `Programs`.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import opdock as tf
from tests.plugins.array_library.same_bits import differing

SEEDS = Path(__file__).resolve().parents[2] / "programs" / "seeds"
PREFIX = "/job:localhost/replica:0/task:0"


def session(graph=None):
    return tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=False))


def seed_program(name, kind):
    """A tutorial's program with these devices in place of GPUs, none of them optional."""
    text = (SEEDS / f"{name}.py").read_text(encoding="utf-8")
    for old, new in (
        ("/gpu:", f"/device:{kind}:"), ('"GPU"', f'"{kind}"'),
        ("allow_soft_placement=True", "allow_soft_placement=False"),
    ):  # fmt: skip
        text = text.replace(old, new)
    names = {}
    with tf.Graph().as_default():
        exec(compile(text, name, "exec"), names)
    return names


def data(n=16):
    rng = np.random.RandomState(3)
    x = rng.normal(size=(n, 8, 8, 2)).astype(np.float32)
    return x, np.eye(3, dtype=np.float32)[rng.randint(0, 3, n)]


def weights():
    rng = np.random.RandomState(4)
    for name, shape in (("conv", (3, 3, 2, 4)), ("dense", (64, 3)), ("bias", (3,))):
        yield name, (0.3 * rng.normal(size=shape)).astype(np.float32)


def loss_of(x, y, variables, devices):
    with tf.device(devices[0]):
        h = tf.nn.relu(tf.nn.conv2d(x, variables["conv"], 1, "SAME"))
        h = tf.reshape(tf.nn.max_pool(h, 2, 2, "SAME"), [-1, 64])
    with tf.device(devices[1]):
        logits = tf.matmul(h, variables["dense"]) + variables["bias"]
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits)
        return tf.reduce_mean(loss)


def train(homes, towers):
    """Values of five Adam steps: variables on `homes`, a share of the batch on each tower."""
    with tf.Graph().as_default() as graph:
        x, y = tf.placeholder(tf.float32, [16, 8, 8, 2]), tf.placeholder(tf.float32, [16, 3])
        variables = {}
        for name, value in weights():
            with tf.device(homes[name == "conv"]):
                variables[name] = tf.Variable(value, name=name)
        parts = zip(tf.split(x, len(towers)), tf.split(y, len(towers)), towers, strict=True)
        losses = [loss_of(a, b, variables, devices) for a, b, devices in parts]
        loss = tf.add_n(losses) / len(losses)
        step = tf.train.AdamOptimizer(0.02).minimize(loss, colocate_gradients_with_ops=True)
        with session(graph) as sess:
            sess.run(tf.global_variables_initializer())
            feed = dict(zip((x, y), data(), strict=True))
            values = [sess.run([loss, step], feed)[0] for _ in range(5)]
            return np.array(values), sess.run(variables)


class Programs:
    """Tests of a device type with at least two devices, whose plugin's kernels are its own."""

    kind: ClassVar[str]
    kernels: ClassVar[str]

    @property
    def devices(self):
        return f"/device:{self.kind}:0", f"/device:{self.kind}:1"

    def test_threads_change_no_bit(self):
        assert not differing(self.kind, 0)

    def test_the_tutorials_data_parallelism(self):
        ran = seed_program("003_data_parallelism", self.kind)
        np.testing.assert_array_equal(ran["c_value"], ran["a_value"] + ran["b_value"])
        assert [t.device for t in ran["split_c"]] == list(self.devices)

    def test_the_tutorials_model_parallelism(self):
        np.testing.assert_array_equal(
            seed_program("003_model_parallelism", self.kind)["result"], [[31, 31], [1, 1]]
        )

    @pytest.mark.parametrize("way", ["model-parallel", "data-parallel", "with-the-cpu"])
    def test_training_is_the_same_on_several_devices(self, way):
        one, two = self.devices
        homes, towers = {
            "model-parallel": ((one, two), [(one, two)]),
            "data-parallel": ((one, one), [(one, one), (two, two)]),
            "with-the-cpu": (("/cpu:0",) * 2, [("/cpu:0",) * 2, (two, two)]),
        }[way]
        losses, found = train(homes, towers)
        expected, wanted = train((one, one), [(one, one)])
        assert expected[-1] < 0.8 * expected[0]
        np.testing.assert_allclose(losses, expected, rtol=1e-4)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-4)

    def test_every_copy_is_in_the_trace(self, monkeypatch):
        one, two = self.devices
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "segments")  # a segment is one event
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [32, 32])
            with tf.device("/cpu:0"):
                a = tf.add(x, 1.0, name="a")
            with tf.device(one):
                b = tf.matmul(a, a, name="b")
            with tf.device(two):
                c = tf.nn.relu(b, name="c")
            with tf.device("/cpu:0"):
                d = tf.add(c, 1.0, name="d")
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            metadata, value = tf.RunMetadata(), np.eye(32, dtype=np.float32)
            with session(graph) as sess:
                got = sess.run(d, {x: value}, options=options, run_metadata=metadata)
        np.testing.assert_allclose(got, np.maximum((value + 1) @ (value + 1), 0) + 1)
        nodes = {
            node.node_name: (stats.device.removeprefix(PREFIX), node.timeline_label)
            for stats in metadata.step_stats.dev_stats
            for node in stats.node_stats
        }
        assert {n: nodes[n][0] for n in "abcd"} == {
            "a": "/device:CPU:0", "b": one, "c": two, "d": "/device:CPU:0"
        }  # fmt: skip
        copies = [label for name, (_, label) in nodes.items() if "copy_to" in name]
        assert len(copies) == 3
        kind = self.kind
        for way in (f"host to {kind}0 by ", f"{kind}0 to {kind}1 by ", f"{kind}1 to host by "):
            assert any(f"4096 bytes, {way}" in label for label in copies), copies

    def test_explain_names_the_plugin_s_kernels(self):
        with tf.Graph().as_default() as graph, tf.device(self.devices[0]):
            x = tf.ones([1, 4, 4, 1])
            y = tf.nn.conv2d(x, tf.ones([2, 2, 1, 1]), 1, "SAME")
            config = tf.ConfigProto()
            config.graph_options.optimizer_options.opt_level = -1
            with tf.Session(graph=graph, config=config) as sess:
                rows = {r.node: r for r in sess.explain(y).rows}
        assert self.kernels in rows[y.op.name].kernel
