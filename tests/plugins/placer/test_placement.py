"""Programs placed by a cost model: where ops go, and that results stay what they were."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import GraphPass, GraphView, hookimpl, register, unregister
from opdock_placer import CostModel, Work, measure, placed_by
from opdock_placer.measuring import learn
from opdock_placer.placement import work

SOFT = tf.ConfigProto(allow_soft_placement=True)


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def model(fast: dict[str, float], copy: float) -> CostModel:
    """Seconds of each op on echo:0; on the CPU each takes one."""
    made = CostModel()
    for op, seconds in fast.items():
        made.add("CPU:0", op, Work(1e4), 1.0)
        made.add("ECHO:0", op, Work(1e4), seconds)
    for way in ("upload", "download"):
        made.add_copy("ECHO:0", way, Work(1e4), copy)
    made.free = {"Const", "VariableV2", "VarHandleOp", "NoOp"}
    return made


def devices(explanation: tf.Session) -> dict[str, str]:
    rows = [r for r in explanation.rows if r.device]
    return {r.node: r.device.rpartition("device:")[2] for r in rows}


def network() -> tuple[tf.Tensor, tf.Tensor, np.ndarray]:
    x = tf.placeholder(tf.float32, [32, 32], name="x")
    chain = x
    for i in range(4):
        chain = tf.sinh(chain, name=f"sinh{i}")
    return x, tf.cumsum(chain, name="sum"), np.full([32, 32], 0.1, np.float32)


def test_a_chain_goes_where_it_gains_and_stays_where_it_does_not() -> None:
    x, y, value = network()
    with tf.Session() as session:
        want = session.run(y, {x: value})
    for copy, place in ((0.5, "ECHO:0"), (3.0, "CPU:0")):
        with placed_by(model({"Sinh": 0.1, "Cumsum": 9.0}, copy)) as placement:
            with tf.Session(config=SOFT) as session:
                found = devices(session.explain(y, {x: value}))
                assert {found[f"sinh{i}"] for i in range(4)} == {place}
                assert found["sum"] == "CPU:0"
                np.testing.assert_allclose(session.run(y, {x: value}), want, rtol=1e-6)
        assert placement.expected[0] > 0
    with tf.Session() as session:  # the plugin is gone
        assert "ECHO:0" not in devices(session.explain(y, {x: value})).values()


def test_mixed_devices_beat_each_alone() -> None:
    """Each device is fast at one of two kinds of ops: the step takes what is reckoned by hand."""
    x, y, value = network()
    mixed = CostModel(free={"Const"})
    for op, on_cpu, on_echo in (("Sinh", 1.0, 0.1), ("Cumsum", 0.5, 9.0)):
        mixed.add("CPU:0", op, Work(1e4), on_cpu)
        mixed.add("ECHO:0", op, Work(1e4), on_echo)
    copied = Work(32 * 32 * 4)
    for way in ("upload", "download"):
        mixed.add_copy("ECHO:0", way, copied, 0.25)
    each = work([(4096.0, 4)], [(4096.0, 4)])
    sinh = {d: mixed.seconds(d, "Sinh", each) for d in mixed.devices}
    cumsum = work([(4096.0, 4), (4.0, 4)], [(4096.0, 4)])
    total = {d: 4 * sinh[d] + mixed.seconds(d, "Cumsum", cumsum) for d in mixed.devices}
    together = 4 * sinh["ECHO:0"] + mixed.seconds("CPU:0", "Cumsum", cumsum) + 2 * 0.25
    with placed_by(mixed) as placement, tf.Session(config=SOFT) as session:
        found = devices(session.explain(y, {x: value}))
        got = session.run(y, {x: value})
    assert {found[f"sinh{i}"] for i in range(4)} == {"ECHO:0"} and found["sum"] == "CPU:0"
    assert placement.expected[0] == pytest.approx(together)
    assert together < 0.7 * min(total["CPU:0"], total["ECHO:0"] + 2 * 0.25)
    with tf.Session() as session:
        np.testing.assert_allclose(got, session.run(y, {x: value}), rtol=1e-6)


def test_what_a_scope_pins_down_stays() -> None:
    x = tf.placeholder(tf.float32, [32, 32])
    with tf.device("/cpu:0"):
        y = tf.sinh(x, name="mine")
    with placed_by(model({"Sinh": 0.001}, 0.001)), tf.Session(config=SOFT) as session:
        assert devices(session.explain(y))["mine"] == "CPU:0"
        assert "placer" not in next(r.why for r in session.explain(y).rows if r.node == "mine")


def test_variables_live_where_the_planned_step_wants_them() -> None:
    x = tf.placeholder(tf.float32, [32, 32])
    weights = tf.get_variable("weights", [32, 32], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.sinh(weights * x))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    fast = dict.fromkeys(("Sinh", "Cosh", "Mul", "ApplyGradientDescent", "Sum"), 0.01)
    value = np.full([32, 32], 0.1, np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: value})
        want = session.run(weights)
    with placed_by(model(fast, 0.01)), tf.Session(config=SOFT) as session:
        found = devices(session.explain(train, {x: value}))
        assert found["weights"] == "ECHO:0"
        session.run(tf.global_variables_initializer())
        session.run(train, {x: value})
        assert devices(session.explain(train, {x: value}))["weights"] == "ECHO:0"
        np.testing.assert_allclose(session.run(weights), want, rtol=1e-5)


def test_reasons_name_the_plugin() -> None:
    x, y, value = network()
    with placed_by(model({"Sinh": 0.1, "Cumsum": 9.0}, 0.5)), tf.Session(config=SOFT) as session:
        why = next(r.why for r in session.explain(y, {x: value}).rows if r.node == "sinh0")
    assert "asked for /device:ECHO:0" in why and "placer_plan" in why


@dataclass
class Row:
    """What a trace tells of a node, as far as the model reads it."""

    node: str
    op: str
    how: str
    us: float | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("float32 [32,32]",)
    members: tuple[str, ...] = ()
    device: str = "/device:ECHO:0"
    kernel: str = ""


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_fused_shares_its_time_as_its_parts_take_it_alone(apart: bool) -> None:
    parts = [Row("a", "Abs", "fused"), Row("l", "Lgamma", "fused"), Row("n", "Neg", "fused")]
    together = [Row("l", "opdock>Cluster", "native", 10.0, members=("a", "l", "n")), *parts]
    alone = [Row("a", "Abs", "native", 1.0), Row("l", "Lgamma", "native", 15.0)]
    learned = CostModel()
    learn(learned, [together], [alone] if apart else ())
    seconds = {op: rows[0][1] for op, rows in learned.ops["ECHO:0"].items()}
    # What the step apart does not have counts as the mean of the others.
    shares = {"Abs": 1.0, "Lgamma": 15.0, "Neg": 8.0} if apart else dict.fromkeys(seconds, 1.0)
    whole = sum(shares.values())
    assert seconds == pytest.approx({op: 1e-5 * share / whole for op, share in shares.items()})


def test_measured_costs_place_a_training_step(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [64, 64])
    loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 8, activation=tf.nn.tanh)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    setup, feeds = tf.global_variables_initializer(), {x: np.ones([64, 64], np.float32)}
    learned = measure([train, loss], feeds, setup=setup, devices=["CPU:0", "ECHO:0"], steps=2)
    assert learned.devices == ("CPU:0", "ECHO:0")
    for device in learned.devices:
        assert {"MatMul", "ApplyGradientDescent"} <= set(learned.ops[device])
    assert {"upload", "download"} <= set(learned.copies["ECHO:0"])
    learned.save(tmp_path / "m.json")
    with placed_by(CostModel.load(tmp_path / "m.json")), tf.Session(config=SOFT) as session:
        session.explain([train, loss], feeds)
        session.run(setup)
        assert np.isfinite(session.run([train, loss], feeds)[1])
    with pytest.raises(ValueError, match="there is no device 'TPU:7'; there are: "):
        measure(loss, feeds, setup=setup, devices=["TPU:7"])


def test_a_file_named_in_the_environment_places_unchanged_programs(tmp_path: Path) -> None:
    model({"Sinh": 0.001}, 0.001).save(tmp_path / "m.json")
    program = (
        "import opdock as tf; y = tf.sinh(tf.ones([32, 32]) * tf.placeholder(tf.float32, []))\n"
        "print([r.device for r in tf.Session().explain(y).rows if r.op == 'Sinh'])"
    )
    env = {**os.environ, "OPDOCK_COST_MODEL": str(tmp_path / "m.json")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert "ECHO:0" in done.stdout
    (tmp_path / "m.json").write_text("{}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "placer_plan" in done.stderr and "is no cost model: version: want 1" in done.stderr


class Asks:
    """A plugin whose pass asks for devices."""

    def __init__(self, stage: str, *devices: str) -> None:
        self.stage, self.devices = stage, devices

    @hookimpl
    def opdock_graph_passes(self) -> Iterator[GraphPass]:
        yield GraphPass(name="asks", stage=self.stage, run=self.run)

    def run(self, graph: GraphView) -> None:
        node = graph.find("mine")
        for device in self.devices if node is not None else ():
            graph.request(node, device)


@pytest.mark.parametrize(
    ("plugin", "scope", "said"),
    [
        (Asks("after_place", "/device:ECHO:0"), None, "request it in the stage before_place"),
        (Asks("before_place", "/device:ECHO:0", "/cpu:0"), None, "asked to be on /device:ECHO:0"),
        (Asks("before_place", "/device:ECHO:0"), "/cpu:0", "asked to be on /device:CPU:0 already"),
        (Asks("before_place", "/device:NONE:0"), None, "/device:NONE:0"),
        (Asks("before_place", "nowhere/at/all"), None, "nowhere"),
    ],
)
def test_requests_that_cannot_be(plugin: Asks, scope: str | None, said: str) -> None:
    with tf.device(scope):
        y = tf.sinh(tf.placeholder(tf.float32, [2]), name="mine")
    register(plugin, "asks")
    try:
        with tf.Session() as session, pytest.raises((ValueError, tf.errors.OpError), match=said):
            session.run(y, {"Placeholder:0": [1.0, 2.0]})
    finally:
        unregister("asks")
