"""GraphDef files that TensorFlow wrote give TensorFlow's outputs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.oracle import reference

pytestmark = reference.needs_reference
GRAPHS = ("logreg", "mlp", "convnet_bn", "explicit_devices")


def load(name: str) -> tuple[dict[str, Any], tf.GraphDef, dict[str, np.ndarray]]:
    folder = reference.FOLDER / "interop"
    about = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["graphs"][name]
    graph_def = tf.GraphDef.FromString((folder / about["file"]).read_bytes())
    return about, graph_def, dict(np.load(folder / about["data"], allow_pickle=False))


@pytest.mark.parametrize("name", GRAPHS)
def test_outputs_match(name: str) -> None:
    about, graph_def, data = load(name)
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        feed = {key: data[f"in{i}"] for i, key in enumerate(about["inputs"])}
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            outputs = sess.run(about["outputs"], feed)
    for i, output in enumerate(outputs):
        np.testing.assert_allclose(output, data[f"out{i}"], rtol=about["rtol"], atol=about["atol"])
        assert output.dtype == data[f"out{i}"].dtype


def test_a_quantized_graph() -> None:
    about, graph_def, data = load("quantized_matmul")
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session() as sess:
            (output,) = sess.run(about["outputs"], {about["inputs"][0]: data["in0"]})
    # The recorded answer is that of oneDNN's quantization, which rounds otherwise by an integer;
    # a product adds up six such differences.
    step = (data["in0"].max() - data["in0"].min()) / 255
    assert output.dtype == data["out0"].dtype
    np.testing.assert_allclose(output, data["out0"], rtol=0, atol=6 * step)


@pytest.mark.parametrize("name", (*GRAPHS, "quantized_matmul"))
def test_a_graph_goes_out_as_it_came_in(name: str) -> None:
    about, graph_def, _ = load(name)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        out = graph.as_graph_def()
    assert [n.name for n in out.node] == [n.name for n in graph_def.node]
    assert len(out.node) == about["nodes"]
    for ours, theirs in zip(out.node, graph_def.node, strict=True):
        assert (ours.op, list(ours.input)) == (theirs.op, list(theirs.input))
        # Of a node that is colocated, the importer takes the device of its companion.
        assert ours.device == theirs.device or "_class" in theirs.attr
        for key, value in theirs.attr.items():
            if not key.startswith("_"):
                assert ours.attr[key] == value, f"{ours.name}: {key}"


def test_explicit_devices_need_soft_placement() -> None:
    about, graph_def, data = load("explicit_devices")
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session() as sess:
            if sum(d.device_type == "GPU" for d in sess.list_devices()) > 2:
                pytest.skip("this machine has a third GPU, so nothing is amiss")
            with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
                sess.run(about["outputs"], {about["inputs"][0]: data["in0"]})
