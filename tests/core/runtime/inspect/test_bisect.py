"""`Session.bisect` and the cases it saves: a backend with one wrong kernel is found out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import opdock as tf
import opdock.plugin as api
from opdock.cli.bisect import command as bisect_command
from opdock.cli.replay_case import command
from opdock.runtime.inspect.cases import Case, load_case

TWISTED = "twisted:0"
table = api.KernelTable()


class Twisted(api.BaseDevice):
    """Host arrays in disguise."""

    class Buffer(np.ndarray):
        pass

    def upload(self, array: Any) -> Any:
        return np.array(array).view(self.Buffer)

    def download(self, buffer: Any) -> Any:
        return np.array(buffer, subok=False)


def probe() -> api.Probe:
    return api.Probe(devices=(api.DeviceAttributes(index=0),))


@table.binder("Mul", "AddV2", "MatMul", T=api.FLOATS)
def right(sig: Any) -> Any:
    return {"Mul": np.multiply, "AddV2": np.add, "MatMul": product(sig.attrs)}[sig.op]


def product(attrs: Any) -> Any:
    def turned(x: Any, flag: str) -> Any:
        return x.T if attrs.get(flag) else x

    return lambda a, b: turned(a, "transpose_a") @ turned(b, "transpose_b")


@table.binder("Tanh", T=api.FLOATS)
def wrong(sig: Any) -> Any:
    """As a polynomial that is good near zero only."""
    return lambda x: x - x * x * x / x.dtype.type(3)


@table.binder("Square", T=api.FLOATS)
def a_little_off(sig: Any) -> Any:
    return lambda x: np.square(x) * x.dtype.type(1 + 9e-6)


@table.kernel("AssignSub")
def wrong_update(ctx: Any, cell: Any, value: Any) -> Any:
    cell.write(cell.read() - value - 1)
    return cell


@api.hookimpl
def opdock_backends() -> Iterator[api.BackendSpec]:
    yield api.BackendSpec(
        name="twisted", device_type="TWISTED", own_type="TWISTED", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Twisted",
        kernels=(f"{__name__}:table",), automatic=False,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def twisted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    api.register(sys.modules[__name__], "twisted-for-tests")
    with tf.Graph().as_default():
        yield
    api.unregister("twisted-for-tests")


def layer() -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(np.full((3, 2), 0.5, np.float32), name="w")
    hidden = tf.tanh(tf.matmul(x, w) * 1.5, name="hidden")
    return x, tf.reduce_sum(hidden + 1.0, name="total")


def test_the_wrong_kernel_is_found(tmp_path: Path) -> None:
    x, total = layer()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found = sess.bisect(total, "cpu:0", TWISTED, {x: np.ones((4, 3), np.float32)})
    first = found.first
    assert found
    assert (first.op, first.type, first.alone) == ("hidden", "Tanh", True)
    assert Path(first.line.rpartition(":")[0]).name == "test_bisect.py"
    assert [v.shape for v in first.inputs] == [(4, 2)]
    np.testing.assert_allclose(first.expected[0], np.tanh(first.inputs[0]), rtol=1e-6)
    assert first.largest[0] == pytest.approx(np.abs(first.got[0] - first.expected[0]).max())
    text = str(found)
    for word in ("hidden (Tanh, defined at", "wrong by itself", "float32[4, 2]", "replay-case"):
        assert word in text
    assert first.path == Path("opdock-case-hidden.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["opdock-case-hidden.npz"]


def test_the_saved_case_replays() -> None:
    x, total = layer()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = sess.bisect(
            total, "cpu:0", TWISTED, {x: np.ones((4, 3), np.float32)}, save="there/case.npz"
        ).first.path
    case = load_case(path)
    assert [n.op for n in case.graph_def.node] == ["Placeholder", "Tanh"]
    assert case.difference(case.run("cpu:0")) == ""
    good = CliRunner().invoke(command, [str(path), "--device", "cpu:0"])
    assert (good.exit_code, good.output.splitlines()[-1]) == (0, "cpu:0: as expected")
    bad = CliRunner().invoke(command, [str(path), "--device", TWISTED])
    assert bad.exit_code == 1
    assert "op: hidden" in bad.output
    assert "expected" in bad.output.splitlines()[-1]


def test_the_command_finds_it_in_a_file(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.reduce_sum(tf.tanh(x, name="hidden"), name="total")
    graph = tmp_path / "graph.pb"
    graph.write_bytes(tf.get_default_graph().as_graph_def().SerializeToString())
    np.savez(tmp_path / "values.npz", x=np.full((3, 2), 2.0, np.float32))
    words = [str(graph), "--device", TWISTED, "--values", "values.npz", "--json"]
    result = CliRunner().invoke(bisect_command, [*words, "--save", "case.npz"])
    assert result.exit_code == 1, result.output
    told = json.loads(result.output)
    assert (told["first"]["op"], told["first"]["case"]) == ("hidden", "case.npz")
    assert told["first"]["absolute"] > 0.01
    case = load_case(tmp_path / "case.npz")
    np.testing.assert_array_equal(next(iter(case.feeds.values())), np.full((3, 2), 2.0))
    near = CliRunner().invoke(bisect_command, [*words, "--atol", "99"])
    assert (near.exit_code, json.loads(near.output)["first"]) == (0, None)
    wrong = CliRunner().invoke(bisect_command, [*words[:3], "--feed", "y=2,2"])
    assert wrong.exit_code == 2 and "no placeholder y is needed" in wrong.output


def test_the_command_draws_alike_for_a_seed() -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.tanh(x, name="hidden")
    graph = Path("graph.pb")
    graph.write_bytes(tf.get_default_graph().as_graph_def().SerializeToString())
    words = [str(graph), "--device", TWISTED, "--feed", "x=5,2", "--atol", "0", "--rtol", "0"]
    drawn = []
    for seed in ("1", "1", "2"):
        CliRunner().invoke(bisect_command, [*words, "--seed", seed, "--save", "case.npz"])
        drawn.append(next(iter(load_case(Path("case.npz")).feeds.values())))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert drawn[0].shape == (5, 2) and np.any(drawn[0] != drawn[2])


def test_no_divergence() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = x * 2.0 + 1.0
    with tf.Session() as sess:
        found = sess.bisect(y, "cpu:0", TWISTED, {x: [1.0, 2.0]})
    assert not found
    assert found.checked == 2
    assert "no divergence" in str(found)


def test_drift_is_found_when_every_op_is_right_by_itself() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = x
    for i in range(6):
        y = tf.square(y, name=f"square_{i}")
    with tf.Session() as sess:
        found = sess.bisect(y, "cpu:0", TWISTED, {x: [1.5, 1.1]})
    assert found.first.type == "Square"
    assert not found.first.alone
    assert found.first.op > "square_0"
    assert found.checked == 6
    assert "drifted" in str(found)


@pytest.mark.parametrize("resource", [False, True])
def test_variables_start_as_they_are_and_stay(resource: bool) -> None:
    v = tf.Variable([1.0, 2.0], name="v", use_resource=resource)
    down = v.assign_sub([0.5, 0.5])
    late = v.read_value()
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(down)
        found = sess.bisect([down, late], "cpu:0", TWISTED)
        assert sess.run(v).tolist() == [0.5, 1.5]
    if resource:  # its update has no kernel there and runs elsewhere
        assert not found
        return
    assert found.first.type == "AssignSub"
    np.testing.assert_array_equal(found.first.expected[-1], [0.0, 1.0])
    np.testing.assert_array_equal(found.first.got[-1], [-1.0, 0.0])
    case = load_case(found.first.path)
    assert case.difference(case.run("cpu:0")) == ""
    assert case.difference(case.run(TWISTED)) != ""


def test_random_ops_loops_and_training() -> None:
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.get_variable("w", [2, 2])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.matmul(a, w)), [0, x])[1]
    drawn = tf.random_uniform([2]) + tf.random_normal([2], seed=5)
    step = tf.train.AdamOptimizer().minimize(tf.reduce_sum(y * drawn))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(w)
        found = sess.bisect(step, "cpu:0", TWISTED, {x: np.ones((3, 2))})
        np.testing.assert_array_equal(sess.run(w), before)
    assert not found, str(found)
    assert found.checked > 10


def test_unseeded_draws_are_told_apart() -> None:
    y = tf.random_uniform([3]) * 2.0
    with tf.Session() as sess:
        found = sess.bisect(y, "cpu:0", TWISTED)
    assert not found, str(found)
    assert list(found.skipped.values()) == ["it draws random numbers without a seed"]


def test_its_own_slack() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.square(x)
    with tf.Session() as sess:
        assert not sess.bisect(y, "cpu:0", TWISTED, {x: [1.0, 2.0]})
        assert sess.bisect(y, "cpu:0", TWISTED, {x: [1.0, 2.0]}, rtol=1e-6, atol=0.0)


def test_devices_that_do_not_exist() -> None:
    y = tf.constant(1.0) + 1.0
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="no device /device:NONE:0"):
            sess.bisect(y, "cpu:0", "none:0")
        with pytest.raises(ValueError, match="no device name"):
            sess.bisect(y, "cpu", TWISTED)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.array(1.5, ml_dtypes.bfloat16),
        np.zeros((0, 2), ml_dtypes.bfloat16),
        np.array([b"a", b"\0bc"], object),
        np.array([1 + 2j], np.complex64),
        np.array([True, False]),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_cases_keep_arrays(array: np.ndarray) -> None:
    from opdock.runtime.inspect.cases import Case

    with tf.Graph().as_default() as graph:
        tf.identity(tf.placeholder(array.dtype, array.shape, name="x"), name="y")
    path = Case(graph.as_graph_def(), {"x:0": array}, ["y:0"], [array]).save("case.npz")
    case = load_case(path)
    assert case.feeds["x:0"].dtype == array.dtype
    assert case.difference(case.run("cpu:0")) == ""
    assert not case.expected[0].size or case.difference([np.zeros_like(array)])


def test_what_is_no_case(tmp_path: Path) -> None:
    text, other, pickled = tmp_path / "text.npz", tmp_path / "other.npz", tmp_path / "p.npz"
    text.write_text("no case")
    np.savez(other, a=np.ones(2))
    np.savez(pickled, case=np.array([{}], object))
    lacking = tmp_path / "lacking.npz"
    Case(tf.Graph().as_graph_def(), {}, ["x:0"], []).save(lacking)
    for path in (text, other, pickled, lacking):
        with pytest.raises(ValueError, match="no replayable case"):
            load_case(path)
        done = CliRunner().invoke(command, [str(path)])
        assert done.exit_code == 2
        assert "no replayable case" in done.output
