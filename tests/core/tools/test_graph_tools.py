"""opdock's commands for graphs, with TensorFlow's flags."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import opdock as tf
from opdock.cli.main import main
from opdock.io import protos
from opdock.tools import benchmark_model, label_image
from tests.core.transforms.graphs import network, ops, ran


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "in.pb"
    path.write_bytes(network(1, ["fused norm", "relu"]).SerializeToString())
    return path


def test_transforming_files(graph: Path) -> None:
    out = graph.with_name("out.pb")
    done = call(
        "transform-graph", f"--in_graph={graph}", f"--out_graph={out}", "--inputs=x:0",
        "--outputs=y", "--transforms=fold_constants fold_old_batch_norms",
    )  # fmt: skip
    assert (done.exit_code, "-1 FusedBatchNormV3" in done.output) == (0, True), done.output
    before, after = (tf.GraphDef.FromString(p.read_bytes()) for p in (graph, out))
    np.testing.assert_allclose(ran(after), ran(before), rtol=0, atol=1e-5)
    text = graph.with_name("out.pbtxt")
    again = ("transform-graph", "--in_graph", out, "--transforms", "remove_device", "--out_graph")
    assert call(*again, text, "--output_as_text").exit_code == 0
    assert text.read_text(encoding="utf-8").startswith("node {")
    back = ("transform-graph", "--in_graph", text, "--transforms", "remove_device")
    assert call(*back, "--out_graph", graph, "--output_as_text=false").exit_code == 0
    assert tf.GraphDef.FromString(graph.read_bytes()) == after


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transforms": "fold"}, "Transform 'fold' not recognized"),
        ({"transforms": "round_weights(num_steps=x)"}, "interpret the num_steps argument"),
        ({"transforms": " "}, "--transforms: You must specify at least one transform"),
        ({"outputs": "z"}, "--outputs: the graph has no node 'z'"),
        ({"inputs": "x:y"}, "--inputs: Cannot convert 'x:y'"),
        ({"transforms": 'strip_unused_nodes(shape="1,-7")'}, "parse as shape: '1,-7'"),
        ({"in_graph": "missing.pb"}, "missing.pb"),
        ({"in_graph": "broken.pb"}, "holds no GraphDef"),
        ({"out_graph": "missing/out.pb"}, "missing"),
        ({"output_as_text": "maybe"}, "--output_as_text: 'maybe' is neither true nor false"),
    ],
)
def test_what_is_wrong_ends_it_before_anything_is_written(
    graph: Path, change: dict[str, str], message: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(graph.parent)
    Path("broken.pb").write_bytes(b"\xff\xff\xff\xff")
    flags = {
        "in_graph": "in.pb", "out_graph": "out.pb", "inputs": "x", "outputs": "y",
        "transforms": "remove_device", **change,
    }  # fmt: skip
    done = call("transform-graph", *(f"--{key}={value}" for key, value in flags.items()))
    assert done.exit_code == 2
    assert message in done.output
    assert sorted(p.name for p in graph.parent.iterdir()) == ["broken.pb", "in.pb"]


def test_summary(graph: Path) -> None:
    done = call("summarize-graph", "--in_graph", graph, "--print_structure")
    assert done.exit_code == 0
    for line in (
        "Found 1 possible inputs: (name=x, type=float(1), shape=[?,8,8,3])",
        "No variables spotted.",
        "Found 2 possible outputs: (name=y, op=Softmax) (name=unused, op=Mul)",
        "const parameters, 0 (0) variable parameters, and 0 control_edges",
        "--input_layer=x --input_layer_type=float --input_layer_shape=-1,8,8,3 --output_layer=y",
        "Relu (Relu): [FusedBatchNormV3]",
        "unused/y (Const): [], value=Tensor<type: float shape: [] values: 2.>",
    ):
        assert line in done.output
    broken = tf.GraphDef.FromString(graph.read_bytes())
    broken.node[1].input.append("nothing")
    graph.write_bytes(broken.SerializeToString())
    done = call("summarize-graph", "--in_graph", graph)
    assert (done.exit_code, "Invalid input nothing for node" in done.output) == (2, True)


def test_benchmark(graph: Path) -> None:
    flags = (
        "benchmark-model", "--graph", graph, "--input_layer=x", "--input_layer_type=float",
        "--output_layer=y", "--max_num_runs=3", "--show_flops",
    )  # fmt: skip
    done = call(*flags, "--input_layer_shape=2,8,8,3")
    assert done.exit_code == 0, done.output
    flops = 2 * (2 * 8 * 8 * 4 * 27 + 2 * 4 * 3)
    for text in (
        "Latency: 3 runs, us: min ", ", p99 ", "Planned memory: ", "Top by Computation Time",
        "Summary by node type", "3 steps, ", f"FLOPs estimate: {flops:,};",
    ):  # fmt: skip
        assert text in done.output
    told = json.loads(call(*flags, "--input_layer_shape=2,8,8,3", "--json").output)
    assert (told["runs"], told["flops"]) == (3, flops)
    assert told["latency_us"]["min"] <= told["latency_us"]["p50"] <= told["latency_us"]["max"]
    starts = [op["start_us"] for op in told["ops"]]
    assert {"Conv2D", "Softmax"} & {op["op"] for op in told["ops"]} and starts == sorted(starts)
    for change, message in (
        ("--input_layer_shape=2,8:1", "have 1, 2 and 1"),
        ("--input_layer_shape=2,x", "'2,x' is no shape such as"),
        ("--input_layer_shape=-1,8,8,3", "has unknown sizes (-1)"),
        ("--output_layer=z", "--output_layer: "),
    ):
        wrong = call(*flags, "--input_layer_shape=2,8,8,3", change)
        assert (wrong.exit_code, message in wrong.output) == (2, True), wrong.output


def test_benchmark_of_sizes_and_files(graph: Path) -> None:
    prefix = graph.with_name("out_")
    flags = (
        "benchmark-model", "--graph", graph, "--input_layer=x", "--input_layer_type=float",
        "--input_layer_shape=2,8,8,3", "--output_layer=y", "--max_num_runs=3", "--warmup_runs=2",
        f"--output_prefix={prefix}",
    )  # fmt: skip
    done = call(*flags, "--benchmark_name=small/net", "--show_sizes")
    assert done.exit_code == 0, done.output
    assert "Benchmark: small/net\n" in done.output
    assert "y\t1\tfloat32\t2\t2\t3\n" in done.output
    written = {path.name: path.read_bytes() for path in graph.parent.glob("out_*")}
    found = {name: protos.BenchmarkEntries.FromString(data) for name, data in written.items()}
    assert [len(entries.entry) for entries in found.values()] == [1] * len(found)
    entries = {name: entries.entry[0] for name, entries in found.items()}
    runs = {name.removeprefix("out_small__net"): entry.iters for name, entry in entries.items()}
    assert {runs.pop(name) for name in ("_meta-init", "_meta-init-plus-first-inference")} == {1}
    assert runs.pop("_meta-first-inference") == 2
    assert {"", "_Softmax"} <= set(runs) and set(runs.values()) == {3}
    whole = entries["out_small__net"]
    assert whole.name == "small/net"
    np.testing.assert_allclose(whole.throughput * whole.wall_time, 2 * 8 * 8 * 3 * 4 / 2**20)
    assert all(entry.wall_time > 0 for name, entry in entries.items() if "meta" in name)
    for change, message in (
        ("--benchmark_name=small/net", "--output_prefix: File already exists: "),
        ("--benchmark_name=", "--output_prefix needs --benchmark_name"),
        (f"--output_prefix={graph.parent}/gone/", "gone"),
    ):
        wrong = call(*flags, "--benchmark_name=other", change)
        assert (wrong.exit_code, message in wrong.output) == (2, True), wrong.output
    assert {path.name for path in graph.parent.glob("out_*")} == set(written)


def test_latencies_and_values() -> None:
    found = benchmark_model.Latencies([0.001 * (i + 1) for i in range(100)])
    assert [found.percentile(p) for p in (0, 50, 99, 100)] == [0.001, 0.05, 0.099, 0.1]
    calls: list[int] = []
    assert len(benchmark_model.latencies(lambda: calls.append(1), 4, -1).seconds) == 4
    assert len(benchmark_model.latencies(lambda: calls.append(1), 9, 0).seconds) == 1
    fed = benchmark_model.value_of((2, 3), tf.float32, [1, 2])
    assert fed.tolist() == [[1, 2, 1], [2, 1, 2]]
    assert benchmark_model.value_of((2,), tf.string).tolist() == [b"", b""]
    assert benchmark_model.value_of((2,), tf.quint8).dtype == tf.quint8.as_numpy_dtype


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A graph that says how red, green and blue an image is, its labels, and images."""
    with tf.Graph().as_default() as made, tf.Session() as session:
        image = tf.placeholder(tf.float32, [1, 4, 6, 3], name="input")
        tf.nn.softmax(tf.reduce_mean(image, [1, 2]), name="scores")
        (tmp_path / "g.pb").write_bytes(made.as_graph_def().SerializeToString())
        pixels = np.zeros((5, 7, 3), np.uint8)
        pixels[..., 1] = 255
        for kind in ("png", "jpeg"):
            data = session.run(getattr(tf.image, f"encode_{kind}")(pixels))
            (tmp_path / f"green.{kind}").write_bytes(data)
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_labels_of_an_image(classifier: Path, kind: str) -> None:
    flags = [
        f"--image={classifier}/green.{kind}", f"--graph={classifier}/g.pb",
        f"--labels={classifier}/labels.txt", "--input_width=6", "--input_height=4",
        "--input_mean=128", "--input_std=128", "--input_layer=input:0", "--output_layer=scores",
    ]  # fmt: skip
    done = call("label-image", *flags)
    assert done.exit_code == 0, done.output
    first, *others = done.output.splitlines()
    assert first.startswith("green (1): 0.7")
    assert len(others) == 2
    for change, message in (
        ("--input_layer=image", "--input_layer: the graph has no tensor 'image'"),
        ("--image=none.png", "none.png"),
        (f"--image={classifier}/labels.txt", ""),
        ("--input_width=wide", "--input_width: invalid int value"),
        ("--input_width=5", "(1, 4, 5, 3)"),
    ):
        wrong = call("label-image", *flags, change)
        assert (wrong.exit_code, message in wrong.output) == (2, True), wrong.output
    with pytest.raises(tf.errors.InvalidArgumentError, match="has 1 lines, but there are 2 scores"):
        label_image.top_labels(np.zeros(2), ["a"])


def test_self_test_of_labels(classifier: Path) -> None:
    with tf.Graph().as_default() as made:
        image = tf.placeholder(tf.float32, [None, 4, 6, 3], name="input")
        green = tf.reduce_mean(image[..., 1])
        for best in (653, 652):
            tf.one_hot([best], 1000, on_value=green, name=f"scores{best}")
        (classifier / "g.pb").write_bytes(made.as_graph_def().SerializeToString())
    (classifier / "labels.txt").write_text("uniform\n" * 1000, encoding="utf-8")
    flags = [
        "label-image", f"--root_dir={classifier}", "--image=green.png", "--graph=g.pb",
        "--labels=labels.txt", "--input_width=6", "--input_height=4", "--self_test",
    ]  # fmt: skip
    done = call(*flags, "--output_layer=scores653")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "uniform (653): 1")
    failed = call(*flags, "--output_layer=scores652")
    assert (failed.exit_code, failed.stdout.splitlines()[0]) == (1, "uniform (652): 1")
    assert "--self_test: the best output is 652, not 653" in failed.stderr
    told = call(*flags, "--output_layer=scores652", "--json")
    assert (told.exit_code, json.loads(told.stdout)[0]["index"]) == (1, 652)
    assert call(*flags, "--output_layer=scores652", "--self_test=false").exit_code == 0


def test_the_other_tools(graph: Path) -> None:
    small = graph.with_name("small.pb")
    done = call(
        "optimize-for-inference", "--input", graph, "--output", small, "--input_names=x",
        "--output_names=y", "--frozen_graph=True",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "FusedBatchNormV3" not in ops(tf.GraphDef.FromString(small.read_bytes()))
    flags = ("strip-unused", "--input_graph", graph, "--output_graph", small, "--input_binary=true")
    done = call(*flags, "--input_node_names=Relu", "--output_node_names=y")
    assert done.exit_code == 0, done.output
    assert "Conv2D" not in ops(tf.GraphDef.FromString(small.read_bytes()))
    wrong = call(*flags, "--input_node_names=Relu", "--output_node_names=z")
    assert (wrong.exit_code, "the graph has no node 'z'" in wrong.output) == (2, True)


def run_module(name: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from opdock.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "run", "-m", f"tensorflow.python.tools.{name}", *arguments],
        cwd=cwd, check=False, capture_output=True, text=True,
    )  # fmt: skip


def test_tensorflows_modules_are_programs(saved_graph: Path) -> None:
    done = run_module(
        "freeze_graph", "--input_graph=g.pbtxt", "--input_checkpoint=c", "--input_binary=false",
        "--output_node_names=y", "--output_graph=frozen.pb", cwd=saved_graph,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    frozen = tf.GraphDef.FromString((saved_graph / "frozen.pb").read_bytes())
    np.testing.assert_allclose(ran(frozen, feeds={}), 3.0)


def test_the_program_for_tensorboard(saved_graph: Path) -> None:
    run = ("import_pb_to_tensorboard", "--log_dir=events")
    done = run_module(*run, "--model_dir=g.pbtxt", cwd=saved_graph)
    assert done.returncode == 0, done.stderr
    (file,) = (saved_graph / "events").iterdir()
    written = [e for e in tf.train.summary_iterator(str(file)) if e.graph_def]
    names = {node.name for e in written for node in tf.GraphDef.FromString(e.graph_def).node}
    assert "import/y" in names
    gone = run_module(*run, "--model_dir=gone.pb", cwd=saved_graph)
    assert gone.returncode == 1
    assert gone.stderr.rstrip().endswith("NotFoundError: gone.pb; No such file or directory")


@pytest.fixture
def saved_graph(tmp_path: Path) -> Path:
    """A graph and a checkpoint of y = 3."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.identity(tf.Variable(3.0), name="y")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "c"))
        tf.train.write_graph(session.graph, str(tmp_path), "g.pbtxt")
    return tmp_path


@pytest.mark.parametrize("name", ["m.txt", "m.PB", "export/m.h5"])
@pytest.mark.parametrize("option", ["input", "output"])
def test_a_name_of_no_kind_is_refused(
    graph: Path, name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graph.parent)
    flags = {"input": "in.pb", "output": "out.pb", option: name}
    done = call("convert", "--inputs=x", "--outputs=y", *(f"--{k}={v}" for k, v in flags.items()))
    assert done.exit_code == 2
    for text in (f"--{option}: {name} is neither", ".pb, .pbtxt", ".onnx", "SavedModel"):
        assert text in done.output
    assert [path.name for path in graph.parent.iterdir()] == ["in.pb"]


def test_names_of_folders(graph: Path) -> None:
    (graph.parent / "made.d").mkdir()
    for name in ("export", "export/1", "v1.2", "model.h5/", "made.d"):
        target = f"{graph.parent}/{name}"
        done = call(
            "convert", f"--input={graph}", f"--output={target}", "--inputs=x", "--outputs=y"
        )
        assert done.exit_code == 0, done.output
        assert (Path(target) / "saved_model.pb").exists()
        back = call("convert", f"--input={target}", f"--output={graph.parent}/back.pbtxt")
        assert back.exit_code == 0, back.output
