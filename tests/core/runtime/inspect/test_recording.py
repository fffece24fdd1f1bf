"""`opdock record` and `opdock replay`: steps in a file, run again elsewhere."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock import plugin as api
from opdock.runtime import watcher
from opdock.runtime.inspect.recording import RecordedStep, Recorder, load_recording
from opdock.runtime.inspect.replay import replay
from tests.core.runtime.inspect import test_bisect
from tests.core.runtime.inspect.test_bisect import TWISTED


def recorded(path: Path, run, count: int = 2) -> Recorder:
    recorder = Recorder(count, path)
    with watcher.watching(recorder), tf.Graph().as_default(), tf.Session() as session:
        run(session)
    return recorder


def training(session: tf.Session) -> list[float]:
    data = tf.data.Dataset.range(8).map(lambda i: tf.cast(i, tf.float32)).batch(2)
    x = data.make_one_shot_iterator().get_next()
    w = tf.get_variable("w", initializer=1.5)
    noisy = tf.tanh(x * w) + tf.random_uniform([2])
    told = tf.py_func(lambda v: v + 1, [noisy], tf.float32)
    loss = tf.reduce_sum(tf.square(told), name="loss")
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(noisy))
    with tf.control_dependencies([tf.print("told")]):
        loss = tf.identity(loss, name="last")
    session.run(tf.global_variables_initializer())
    return [session.run([loss, step])[0] for _ in range(3)]


def test_steps_run_again_with_the_same_results(tmp_path: Path, capfd) -> None:
    path = tmp_path / "steps.npz"
    losses = []
    recorder = recorded(path, lambda s: losses.extend(training(s)))
    assert len(recorder.steps) == 2, "to initialize is no step"
    said = capfd.readouterr().err
    assert said.count("told") == 3
    found = load_recording(path)
    assert [s.results[0] for s in found.steps] == [np.float32(v) for v in losses[:2]]
    assert found.steps[0].state["localhost", "w"] == np.float32(1.5)
    given = {name.partition(":")[0] for name in found.steps[0].given}
    assert {"IteratorGetNext", "PyFunc", "random_uniform/RandomUniform"} <= given
    for number in range(2):
        again = replay(found, number, "cpu:0")
        assert again.ok and again.drifts == [] and again.compared > 10
    assert "told" not in capfd.readouterr().err, "what reaches out of the step does not run"


@pytest.fixture
def twisted() -> Iterator[None]:
    api.register(test_bisect, "twisted-for-tests")
    yield
    api.unregister("twisted-for-tests")


def test_variables_that_are_fetched_and_values_that_do_not_fit(tmp_path: Path) -> None:
    """As hostile files had them."""

    def run(session: tf.Session) -> None:
        names = tf.get_variable("s", initializer=tf.constant([b"a", b"bc"]), use_resource=False)
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=np.ones(2, np.float32))
        session.run(tf.global_variables_initializer())
        session.run([names, x * w], {x: [1.0, 2.0]})

    path = tmp_path / "s.npz"
    recorded(path, run, 1)
    found = load_recording(path)
    assert replay(found, 0, "cpu:0").ok, "a reference gives what it refers to"
    step = found.steps[0]
    for part, key, value, words in (
        (step.state, ("localhost", "w"), np.ones(3, np.float32), "variable 'w' is float32"),
        (step.feeds, "x:0", np.array([b"a", b"b"]), "'x:0' is float32 of shape"),
    ):
        before, part[key] = part[key], value
        with pytest.raises(ValueError, match=words):
            replay(found, 0, "cpu:0")
        part[key] = before
    found.steps[0] = dataclasses.replace(step, outside=[*step.outside, "s"])
    with pytest.raises(ValueError, match="nothing gives 's:0'"):
        replay(found, 0, "cpu:0")
    found.steps[0] = step
    step.results.pop()
    found.save(path)
    with pytest.raises(ValueError, match="1 results of 2 fetches"):
        load_recording(path)


def test_drift_is_told_by_op(tmp_path: Path, twisted: None) -> None:
    path = tmp_path / "steps.npz"
    recorded(path, training, 1)
    again = replay(load_recording(path), 0, TWISTED)
    assert not again.ok
    first = again.drifts[0]
    assert (first.type, bool(first.error)) == ("Tanh", True)
    assert "test_recording.py" in first.line
    assert replay(load_recording(path), 0, TWISTED, rtol=1e9, atol=1e9).ok


def test_decisions_and_steps_with_feeds(tmp_path: Path) -> None:
    def run(session: tf.Session) -> None:
        x = tf.placeholder(tf.float32, [None], name="x")
        call = session.make_callable(tf.nn.relu(x, name="y"), [x])
        call(np.ones(3, np.float32))
        call(np.ones(5, np.float32))

    path = tmp_path / "s.npz"
    recorded(path, run)
    found = load_recording(path)
    assert [s.feeds["x:0"].shape for s in found.steps] == [(3,), (5,)]
    (relu,) = [d for d in found.steps[0].decisions if d.op == "y"]
    assert relu.device.endswith("CPU:0") and "test_recording.py" in relu.line


def test_variables_that_stay_are_kept_once(tmp_path: Path) -> None:
    def run(session: tf.Session) -> None:
        w = tf.get_variable("w", initializer=np.zeros(100_000, np.float32))
        total = tf.reduce_sum(w)
        session.run(w.initializer)
        for _ in range(5):
            session.run(total)

    path = tmp_path / "s.npz"
    recorded(path, run, 5)
    assert len(load_recording(path).steps) == 5
    assert path.stat().st_size < 900_000


def test_what_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "steps.npz"
    recorded(path, lambda s: s.run(tf.placeholder(tf.float32, [], "x") + 1, {"x:0": 1.0}), 1)
    good = path.read_bytes()
    for number, raw in enumerate(hostile(good)):
        path.write_bytes(raw)
        with pytest.raises(ValueError, match="is no recording"):
            load_recording(path)
            pytest.fail(f"case {number}")
    with pytest.raises(FileNotFoundError):
        load_recording(tmp_path / "none")


def hostile(good: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}

    def packed(kind: int = zipfile.ZIP_STORED, **changed: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", kind) as archive:
            for name, raw in {**parts, **changed}.items():
                archive.writestr(name, raw)
        return out.getvalue()

    def array(value: np.ndarray, pickled: bool = False) -> bytes:
        out = io.BytesIO()
        np.save(out, value, allow_pickle=pickled)
        return out.getvalue()

    def told(**changed: object) -> bytes:
        data = {"format": "opdock recording 1", "steps": [], **changed}
        return array(np.frombuffer(json.dumps(data).encode(), np.uint8))

    fields = [f.name for f in dataclasses.fields(RecordedStep)]
    huge = array(np.zeros(3)).replace(b"(3,)", b"(3000000000000,)"[:4])
    long = array(np.zeros(3, np.uint8)).replace(b"'shape': (3,), }           ",
                                                b"'shape': (30000000000,), } ")  # fmt: skip
    return [
        b"", b"no archive", good[:200], packed(zipfile.ZIP_DEFLATED),
        packed(**{"recording.npy": b"\x93NUMPY\x01\x00"}), packed(**{"recording.npy": huge[:40]}),
        packed(**{"recording.npy": long}),
        packed(**{"recording.npy": array(np.array([{}], object), pickled=True)}),
        packed(**{"recording.npy": told(format="opdock case 1")}),
        packed(**{"recording.npy": told(steps=[{}])}), packed(**{"recording.npy": told(steps=7)}),
        packed(**{"graph_0.npy": array(np.full(9, 255, np.uint8))}),
        packed(**{"recording.npy": told(steps=[{name: [] for name in fields}])}),
    ]  # fmt: skip
