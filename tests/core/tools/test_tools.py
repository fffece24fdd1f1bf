"""The command-line tools, by their functions and by opdock's commands."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import opdock as tf
from opdock.api import graph_util
from opdock.cli.main import main
from opdock.io import protos
from opdock.io.checkpoint_v2 import BundleReader, BundleWriter
from opdock.tools import (
    freeze_graph,
    import_pb_to_tensorboard,
    inspect_checkpoint,
    saved_model_inputs,
    strip_unused_lib,
)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint, a GraphDef and a SavedModel of y = 3 x."""
    x = tf.placeholder(tf.float32, [None], name="x")
    w = tf.Variable([3.0], name="w")
    y = tf.multiply(x, w, name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "c"))
        tf.train.write_graph(session.graph, str(tmp_path), "g.pbtxt")
        tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    return tmp_path


def call(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("source", ["graph", "meta graph", "saved model"])
def test_a_frozen_graph_computes_the_same(saved: Path, source: str) -> None:
    where = {
        "graph": ["--input_graph", saved / "g.pbtxt", "--input_checkpoint", saved / "c"],
        "meta graph": [
            "--input_meta_graph", saved / "c.meta", "--input_checkpoint", saved / "c",
            "--input_binary",
        ],
        "saved model": ["--input_saved_model_dir", saved / "m"],
    }[source]  # fmt: skip
    arguments = [*where, "--output_node_names", "y", "--output_graph", saved / "frozen.pb"]
    assert freeze_graph.main([str(a) for a in arguments]) == 0
    frozen = protos.GraphDef.FromString((saved / "frozen.pb").read_bytes())
    assert {n.op for n in frozen.node} <= {"Placeholder", "Const", "Identity", "Mul"}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("y:0", {"x:0": [2.0]}).tolist() == [6.0]


def test_what_cannot_be_frozen(saved: Path) -> None:
    graph, checkpoint = str(saved / "g.pbtxt"), str(saved / "c")

    def freeze(graph: str, checkpoint: str, outputs: str) -> None:
        freeze_graph.freeze_graph(
            graph, "", False, checkpoint, outputs, "", "", "", True, ""
        )  # fmt: skip

    with pytest.raises(ValueError, match="doesn't exist"):
        freeze(graph, str(saved / "none"), "y")
    with pytest.raises(ValueError, match="output_node_names"):
        freeze(graph, checkpoint, "")
    with pytest.raises(OSError, match="does not exist"):
        freeze(str(saved / "none"), checkpoint, "y")
    with tf.Graph().as_default() as bare:
        tf.constant(1.0, name="y")
        tf.train.write_graph(bare, str(saved), "bare.pbtxt")
    with pytest.raises(ValueError, match="No variables were found"):
        freeze(str(saved / "bare.pbtxt"), checkpoint, "y")


def test_stripping(saved: Path) -> None:
    arguments = ["--input_graph", "g.pbtxt", "--output_graph", "out.pb"]
    arguments = [str(saved / a) if "." in a else a for a in arguments]
    arguments += ["--input_node_names", "w/read", "--output_node_names", "y"]
    assert strip_unused_lib.main(arguments) == 0
    out = protos.GraphDef.FromString((saved / "out.pb").read_bytes())
    assert {(n.name, n.op) for n in out.node} == {
        ("x", "Placeholder"), ("w/read", "Placeholder"), ("y", "Mul"),
    }  # fmt: skip
    with pytest.raises(ValueError, match="refer to a Tensor"):
        strip_unused_lib.strip_unused(out, ["x:0"], ["y"], 1)
    with pytest.raises(KeyError, match="not found"):
        strip_unused_lib.strip_unused(out, ["z"], ["y"], 1)


def test_inspecting(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = call("inspect-checkpoint", saved / "c")
    assert (code, "w (DT_FLOAT) [1]" in out, "number of params: 1" in out) == (0, True, True)
    assert "[3.]" in call("inspect-checkpoint", saved / "c", "--values", "--exclude", "w")[1]
    code, out = call("inspect-checkpoint", saved / "c.data-00000-of-00001")
    assert code == 2
    assert f"--file_name = {saved / 'c'}\n" in out
    options = np.get_printoptions()
    try:
        assert inspect_checkpoint.main(
            ["--file_name", str(saved / "c"), "--tensor_name", "w", "--printoptions", "precision=3"]
        ) == 0  # fmt: skip
        assert np.get_printoptions()["precision"] == 3
    finally:
        np.set_printoptions(**options)
    assert "tensor_name:  w" in capsys.readouterr().out


def test_showing_and_running_a_saved_model(saved: Path) -> None:
    model = ["--dir", saved / "m"]
    assert "tag-sets:\nserve" in call("saved-model", "show", *model)[1]
    shown = call("saved-model", "show", *model, "--all")[1]
    assert "    inputs['x'] tensor_info:\n        dtype: DT_FLOAT\n        shape: (-1)" in shown
    told = json.loads(call("saved-model", "show", *model, "--json")[1])
    assert told["serve"]["serving_default"]["inputs"]["x"]["name"] == "x:0"
    lost = call("saved-model", "show", *model, "--tag_set", "serve", "--signature_def", "served")
    assert lost[0] == 2 and "no signature 'served'; it has serving_default" in lost[1]
    other = [*model, "--tag_set", "train", "--signature_def", "serving_default"]
    for words in (["show", *other], ["run", *other, "--input_exprs", "x=[1]"]):
        lost = call("saved-model", *words)
        assert lost[0] == 2 and "tag-set train could not be found" in lost[1], lost
        assert "which has serve" in lost[1]
    lost = call("saved-model", "run", *other)
    assert lost[0] == 2 and "At least one of --inputs" in lost[1]
    assert "tag-sets" not in call("saved-model", "show", "--dir", saved)[1]
    assert "does not contain blacklisted ops" in call("saved-model", "scan", *model)[1]
    np.savez(saved / "in.npz", a=np.float32([1, 2]))
    signature = [*model, "--tag_set", "serve", "--signature_def", "serving_default"]
    code, out = call(
        "saved-model", "run", *signature, "--inputs", f"x={saved / 'in.npz'}[a]",
        "--outdir", saved / "out",
    )  # fmt: skip
    assert (code, "Result for output key y:\n[3. 6.]" in out) == (0, True)
    assert np.load(saved / "out" / "y.npy").tolist() == [3.0, 6.0]
    run = ("saved-model", "run", *signature, "--input_exprs", "x=np.ones(1)")
    assert "[3.]" in call(*run)[1]
    lost = call(*run, "--outdir", saved / "out")
    assert lost[0] == 2 and "already exists" in lost[1]


@pytest.mark.parametrize("model", ["g.pbtxt", "g.pb", "m"])
def test_graphs_are_written_for_tensorboard(saved: Path, model: str) -> None:
    definition = tf.get_default_graph().as_graph_def()
    tf.train.write_graph(definition, str(saved), "g.pb", as_text=False)
    arguments = [f"--model_dir={saved / model}", f"--log_dir={saved / 'events'}"]
    assert import_pb_to_tensorboard.main(arguments) == 0
    (file,) = (saved / "events").iterdir()
    graphs = [
        protos.GraphDef.FromString(e.graph_def)
        for e in tf.train.summary_iterator(str(file)) if e.graph_def
    ]  # fmt: skip
    assert "import/y" in [node.name for node in graphs[0].node]


def test_what_is_no_graph_is_not_written_for_tensorboard(saved: Path) -> None:
    (saved / "bad.pb").write_bytes(b"\xff\xff")
    for model, error in (
        ("bad.pb", tf.errors.DataLossError), ("gone.pb", tf.errors.NotFoundError), ("", OSError),
    ):  # fmt: skip
        with pytest.raises(error):
            import_pb_to_tensorboard.import_to_tensorboard(saved / model, saved / "events")
    assert not (saved / "events").exists()


def test_inputs_on_the_command_line(tmp_path: Path) -> None:
    given = saved_model_inputs.preprocess_input_exprs_arg_string(
        "a=np.mgrid[0:2,0:2].T;b=[[1],[-2]];c=np.zeros((2,), dtype=np.int32) + 3**2"
    )
    assert given["a"].tolist() == np.mgrid[0:2, 0:2].T.tolist()
    assert given["b"] == [[1], [-2]]
    assert given["c"].tolist() == [9, 9]
    for text in ("a=open('x')", "a=np.__dict__", "a=[x for x in [1]]", "a=(", "a=lambda: 1"):
        with pytest.raises(ValueError, match=r"'.*' is n"):
            saved_model_inputs.preprocess_input_exprs_arg_string(text)
    with pytest.raises(RuntimeError, match="format is incorrect"):
        saved_model_inputs.preprocess_inputs_arg_string("a[b]")
    (example,) = saved_model_inputs.preprocess_input_examples_arg_string(
        "e=[{'f': [1.5], 'i': [2], 's': ['t']}]"
    )["e"]
    features = protos.Example.FromString(example).features.feature
    assert features["f"].float_list.value == [1.5]
    assert features["s"].bytes_list.value == [b"t"]
    with pytest.raises(ValueError, match="must be a list"):
        saved_model_inputs.preprocess_input_examples_arg_string("e={}")
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickle"):
        saved_model_inputs.load_inputs_from_input_arg_string(f"a={tmp_path / 'o.npy'}", "", "")


def test_a_pickle_is_no_input(saved: Path) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        (saved / "in.pkl").write_bytes(pickle.dumps(np.ones(1), protocol))
        code, out = call(
            "saved-model", "run", "--dir", saved / "m", "--tag_set", "serve", "--signature_def",
            "serving_default", "--inputs", f"x={saved / 'in.pkl'}",
        )  # fmt: skip
        assert (code, "in.pkl holds pickled Python objects" in out) == (2, True), out
        assert "numpy.save" in out


@pytest.mark.parametrize(("flag", "why"), [("tf_debug", "debugger"), ("init_tpu", "TPU")])
def test_what_running_a_saved_model_lacks(saved: Path, flag: str, why: str) -> None:
    code, out = call(
        "saved-model", "run", "--dir", saved / "m", "--tag_set", "serve", "--signature_def",
        "serving_default", "--input_exprs", "x=np.ones(1)", f"--{flag}",
    )  # fmt: skip
    assert (code, f"--{flag}: " in out, why in out) == (2, True, True), out


def test_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="the extra `safetensors` is not installed")
    prefix, path = tmp_path / "c", tmp_path / "c.safetensors"
    with BundleWriter(str(prefix)) as writer:
        writer.add("a/b", np.arange(6.0).reshape(2, 3))
        writer.add("half", np.ones(3, tf.bfloat16.as_numpy_dtype))
        writer.add("yes", np.array(True))
    assert call("convert-checkpoint", prefix, path) == (0, f"3 tensors: {path}\n")
    assert call("convert-checkpoint", path, tmp_path / "d")[0] == 0
    with BundleReader(str(prefix)) as one, BundleReader(str(tmp_path / "d")) as two:
        assert one.names() == two.names() == ["a/b", "half", "yes"]
        for name in one.names():
            assert one.dtype(name) is two.dtype(name)
            np.testing.assert_array_equal(one.get(name), two.get(name))
    assert call("convert-checkpoint", prefix, tmp_path / "x")[0] == 2
    path.write_bytes(path.read_bytes()[:50])
    code, out = call("convert-checkpoint", path, tmp_path / "e")
    assert code == 2, "a file that was cut is said to be so"
    assert str(path) in out
    with BundleWriter(str(prefix)) as writer:
        writer.add("text", np.array(["a"], object), tf.string)
    code, out = call("convert-checkpoint", prefix, path)
    assert (code, "Tensor text has type string" in out) == (2, True)
    assert not [f for f in os.listdir(tmp_path) if "tempstate" in f]


def test_rows_and_branches_of_resource_variables_are_frozen() -> None:
    table = tf.get_variable("table", [4, 2], use_resource=True)
    scale = tf.get_variable("scale", [], use_resource=True, initializer=tf.ones_initializer())
    ids = tf.placeholder(tf.int32, [None], name="ids")
    rows = tf.raw_ops.ResourceGather(resource=table.handle, indices=ids, dtype=tf.float32)
    cells = tf.raw_ops.ResourceGatherNd(resource=table.handle, indices=[[1, 1]], dtype=tf.float32)
    handle = tf.identity(scale.handle)
    read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    tf.add(tf.reduce_sum(rows) * read, cells[0], name="y")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = session.run("y:0", {"ids:0": [3, 0]})
        frozen = tf.graph_util.convert_variables_to_constants(session, graph_def, ["y"])
        kept = tf.graph_util.convert_variables_to_constants(
            session, graph_def, ["y"], variable_names_blacklist=["scale"]
        )
    assert not {"VarHandleOp", *tf_readers()} & {n.op for n in frozen.node}
    assert {"VarHandleOp", "ReadVariableOp"} <= {n.op for n in kept.node}
    assert not {"ResourceGather", "ResourceGatherNd"} & {n.op for n in kept.node}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        np.testing.assert_allclose(session.run("y:0", {"ids:0": [3, 0]}), expected)


def tf_readers() -> tuple[str, ...]:
    return ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")


def test_what_a_node_is_colocated_with_is_kept() -> None:
    with tf.Graph().as_default() as graph:
        first = tf.constant(1.0, name="first")
        with tf.colocate_with(first.op):
            tf.constant(2.0, name="second")
    kept = tf.graph_util.extract_sub_graph(graph.as_graph_def(), ["second"])
    assert [n.name for n in kept.node] == ["first", "second"]
    needs, nodes, numbers = graph_util.graph_summary(graph.as_graph_def())
    assert needs == {"first": [], "second": ["first"]}
    assert list(nodes) == list(numbers) == ["first", "second"]
    # TensorFlow's own programs walk further names, which are not of the graph.
    found = graph_util.reachable_nodes(["second", "elsewhere"], needs)
    assert found == {"first", "second", "elsewhere"}
