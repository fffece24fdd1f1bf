"""Checkpoints that TensorFlow wrote: values, types, slices, and the same bytes when written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io.checkpoint_reader import open_checkpoint
from opdock.io.checkpoint_v2 import BundleReader, BundleWriter
from opdock.io.tensor_slice import TensorSlice, encode_key
from tests.oracle import reference

pytestmark = reference.needs_reference
NAMES = ("dtypes", "moving_averages", "partitioned", "sharded", "v1_format")


def folder() -> Path:
    assert reference.FOLDER is not None
    return reference.FOLDER / "interop"


def about(name: str) -> dict[str, Any]:
    manifest = json.loads((folder() / "manifest.json").read_text(encoding="utf-8"))
    return manifest["checkpoints"][name]


def expected(name: str, key: str) -> Any:
    info = about(name)["variables"][key]
    if info["dtype"] == "string":
        return [v.encode("latin1") for v in info["value"]]
    value = np.load(folder() / about(name)["expected"])[key.replace("/", "|")]
    return value.view(tf.bfloat16.as_numpy_dtype) if info["dtype"] == "bfloat16" else value


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str) -> None:
    record = about(name)
    with open_checkpoint(folder() / record["prefix"]) as reader:
        assert sorted(reader.names()) == sorted(record["variables"])
        for key, info in record["variables"].items():
            value = reader.get(key)
            assert (reader.dtype(key).name, list(value.shape)) == (info["dtype"], info["shape"])
            wanted = expected(name, key)
            if info["dtype"] == "string":
                assert value.tolist() == wanted
            else:
                assert value.dtype == wanted.dtype
                assert value.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_public_reader(name: str) -> None:
    record = about(name)
    prefix = str(folder() / record["prefix"])
    shapes = {key: info["shape"] for key, info in record["variables"].items()}
    assert tf.train.NewCheckpointReader(prefix).get_variable_to_shape_map() == shapes
    assert dict(tf.train.list_variables(str(folder() / record["prefix"]))) == shapes
    assert tf.train.latest_checkpoint(str(Path(prefix).parent)) == prefix


@pytest.mark.parametrize("name", ["dtypes", "moving_averages", "partitioned"])
def test_written_again_byte_for_byte(name: str, tmp_path: Path) -> None:
    prefix = folder() / about(name)["prefix"]
    with BundleReader(str(prefix)) as reader, BundleWriter(str(tmp_path / "m")) as writer:
        pieces = {
            encode_key(key, part): (key, part) for key in reader.names() for part in reader.slices(key)
        }
        stored = [(e.offset, key) for key, e in reader._entries.items() if not e.slices]
        for _, key in sorted(stored):
            if key in pieces:
                whole, part = pieces[key]
                writer.add_slice(whole, reader.shape(whole), part, reader.get_slice(whole, part))
            else:
                writer.add(key, reader.get(key))
    for suffix in (".index", ".data-00000-of-00001"):
        assert (tmp_path / f"m{suffix}").read_bytes() == Path(f"{prefix}{suffix}").read_bytes()


def test_a_slice_across_partitions() -> None:
    with BundleReader(str(folder() / about("partitioned")["prefix"])) as reader:
        whole = reader.get("emb")
        part = reader.get_slice("emb", TensorSlice.parse("2,5:1,2"))
    np.testing.assert_array_equal(part, whole[2:7, 1:])


@pytest.mark.parametrize("name", NAMES)
def test_restored_into_variables(name: str) -> None:
    record = about(name)
    with tf.Graph().as_default(), tf.Session() as sess:
        variables = {
            key: tf.get_variable(f"x{i}", info["shape"], getattr(tf, info["dtype"]), trainable=False,
                                 initializer=tf.zeros_initializer(getattr(tf, info["dtype"])))
            if info["dtype"] != "string" else tf.Variable([""] * info["shape"][0], name=f"x{i}")
            for i, (key, info) in enumerate(record["variables"].items())
        }  # fmt: skip
        tf.train.Saver(variables).restore(sess, str(folder() / record["prefix"]))
        for key, value in sess.run(variables).items():
            assert np.asarray(value).tolist() == np.asarray(expected(name, key)).tolist()


def nodes(meta: Any, prefix: str) -> list[Any]:
    out = []
    for node in meta.graph_def.node:
        if node.name.startswith(prefix):
            for key in ("_output_shapes", "_has_manual_control_dependencies"):
                node.attr.pop(key, None)
            out.append(node)
    return out


def test_the_savers_own_nodes() -> None:
    """The graph that a Saver builds is TensorFlow's node by node, attributes and devices too."""
    theirs = tf.MetaGraphDef.FromString((folder() / "ckpt/v1_format/model.ckpt.meta").read_bytes())
    with tf.Graph().as_default():
        tf.Variable(tf.zeros([2, 3]), name="a")
        tf.Variable(tf.zeros([3], tf.int32), name="n")
        meta = tf.train.Saver().export_meta_graph()
    wanted = {n.name: n for n in nodes(theirs, "save/")}
    made = {n.name: n for n in nodes(meta, "save/")}
    # That file was written with the first format, so only the nodes that save differ.
    for name in set(wanted) & set(made) - {"save/control_dependency"}:
        assert made[name] == wanted[name]
    assert len(set(wanted) & set(made)) == 10


def test_train_on_from_a_meta_graph() -> None:
    manifest = json.loads((folder() / "manifest.json").read_text(encoding="utf-8"))["meta_graph"]
    data = np.load(folder() / manifest["expected"])
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        saver = tf.train.import_meta_graph(str(folder() / manifest["file"]))
        sizes = {k: len(graph.get_collection(k)) for k in graph.get_all_collection_keys()}
        assert sizes == manifest["collections"]
        saver.restore(sess, str(folder() / manifest["checkpoint"]))
        feed = {"x:0": data["x"]}
        np.testing.assert_allclose(sess.run("loss:0", feed), data["loss_before"], rtol=1e-5)
        sess.run("train", feed)
        after = sess.run(["loss:0", "w:0"], feed)
    np.testing.assert_allclose(after[0], data["loss_after"], rtol=1e-5)
    np.testing.assert_allclose(after[1], data["w_after"], rtol=1e-5)


@pytest.mark.parametrize(
    "path", ["meta/m.meta", "ckpt/sharded/model.ckpt.meta", "ckpt/partitioned/model.ckpt.meta"]
)
def test_a_meta_graph_goes_out_as_it_came_in(path: str) -> None:
    theirs = tf.MetaGraphDef.FromString((folder() / path).read_bytes())
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(theirs)
        ours = saver.export_meta_graph()
    for mine, other in zip(nodes(ours, ""), nodes(theirs, ""), strict=True):
        mine.attr.pop("_has_manual_control_dependencies", None)
        assert mine == other
    assert ours.collection_def == theirs.collection_def
    assert ours.saver_def == theirs.saver_def
