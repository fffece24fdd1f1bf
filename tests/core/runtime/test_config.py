"""What a ConfigProto says and what becomes of it."""

from __future__ import annotations

import logging

import pytest

import opdock as tf
from opdock.compiler.pipeline import OPTIONAL
from opdock.runtime import config
from opdock.runtime.program import checks
from opdock.testing.levels.device import open_device


def test_defaults():
    found = config.read(None)
    assert not found.soft
    assert not found.log_placement
    assert found.intra_op_threads == found.inter_op_threads == found.deadline_ms == 0
    assert found == config.read(tf.ConfigProto()) or found.device_options == {}


def test_everything_that_is_honoured():
    proto = tf.ConfigProto(
        allow_soft_placement=True, log_device_placement=True, device_count={"GPU": 0},
        intra_op_parallelism_threads=3, inter_op_parallelism_threads=2, operation_timeout_in_ms=9,
        gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.5, allow_growth=True,
                                  visible_device_list="1"),
    )  # fmt: skip
    found = config.read(proto)
    assert found.soft
    assert found.log_placement
    assert found.device_count == {"GPU": 0}
    assert (found.intra_op_threads, found.inter_op_threads, found.deadline_ms) == (3, 2, 9)
    assert found.device_options["memory_fraction"] == 0.5
    assert found.device_options["allow_growth"] is True
    assert found.device_options["visible_device_list"] == "1"


def test_passes_are_switched_off_by_name_or_level(monkeypatch):
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fold,cse")
    assert config.read(None).disabled_passes == {"fold", "cse"}
    level = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
    proto = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=level))
    assert config.read(proto).disabled_passes == set(OPTIONAL)


def test_a_pass_that_is_none_is_told_once(monkeypatch, caplog):
    def step():
        with tf.Graph().as_default(), tf.Session() as session:
            session.run(tf.constant(1) + 2)

    with caplog.at_level(logging.WARNING, "opdock.passes"):
        fusion = next(iter(open_device("cpu:0").fusions)).name
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", f"fold,{fusion},sgements")
        step()
        step()
    (line,) = [r.getMessage() for r in caplog.records]
    assert line == (
        "to be left out, but neither a pass nor a fusion of the open devices: sgements; did you "
        "mean 'segments'?"
    )


@pytest.mark.parametrize(
    ("value", "on"),
    [(None, False), ("", False), ("0", False), ("off", False), ("False", False), ("no", False),
     ("1", True), ("true", True), ("on", True)],
)  # fmt: skip
def test_switches_are_read_alike(monkeypatch, value, on):
    for name in ("OPDOCK_CHECK", "OPDOCK_RELAXED_MATH"):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    found = config.read(None)
    assert (found.check, found.relaxed) == (on, on)


def test_the_env_has_no_say_in_a_running_session(monkeypatch):
    with tf.Session() as session:
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fold")
        y = tf.constant(1) + tf.constant(2)
        assert session.run(y) == 3
        assert len([r for r in session.explain(y).rows if r.how == "removed"]) == 1


def checking(on):
    proto = tf.ConfigProto()
    custom = proto.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    custom.parameter_map["check"].b = on
    return proto


def test_checks_are_switched_by_the_environment_and_by_the_session(monkeypatch):
    monkeypatch.delenv("OPDOCK_CHECK", raising=False)
    assert not config.read(None).check
    assert config.read(checking(True)).check
    monkeypatch.setenv("OPDOCK_CHECK", "1")
    assert config.read(None).check
    assert config.read(tf.ConfigProto()).check
    assert not config.read(checking(False)).check
    monkeypatch.setenv("OPDOCK_CHECK", "0")
    assert not config.read(None).check


@pytest.mark.parametrize("on", [False, True])
def test_a_program_without_checks_calls_the_bare_kernels(on):
    with tf.Graph().as_default(), tf.Session(config=checking(on)) as session:
        x = tf.placeholder(tf.float32, [2])
        assert session.run(tf.cumsum(x) * 2.0, {x: [1.0, 2.0]}).tolist() == [2.0, 6.0]
        (entry,) = session._cache.entries()
    bound = entry.program.bound
    pairs = zip(bound.calls, bound.schedule.steps, strict=True)
    kernels = [call for call, step in pairs if step.kind == "kernel"]
    assert kernels
    assert {getattr(c, "__module__", "") == checks.__name__ for c in kernels} == {on}


def test_device_filters():
    with tf.Session(config=tf.ConfigProto(device_filters=["/device:CPU:0"])) as session:
        assert {d.device_type for d in session.list_devices()} == {"CPU"}
    with tf.Session() as plain:
        everything = plain.list_devices()
    others = tf.ConfigProto(device_filters=["/job:ps", "/job:master/task:1"])
    with tf.Session(config=others) as session:  # as in TensorFlow, which asks of tasks alone
        assert [d.name for d in session.list_devices()] == [d.name for d in everything]
