"""Checkpoints that TensorFlow wrote: values, types, slices, and the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io.checkpoint_reader import open_checkpoint
from opdock.io.checkpoint_v1 import write_v1
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
            encode_key(key, part): (key, part)
            for key in reader.names()
            for part in reader.slices(key)
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
        variables = {}
        for i, (key, info) in enumerate(record["variables"].items()):
            if info["dtype"] == "string":
                variables[key] = tf.Variable([""] * info["shape"][0], name=f"x{i}")
            else:
                dtype = getattr(tf, info["dtype"])
                variables[key] = tf.Variable(tf.zeros(info["shape"], dtype), name=f"x{i}")
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


@pytest.mark.parametrize("name", ["v1_format", "partitioned"])
def test_the_savers_own_nodes(name: str) -> None:
    """The graph that a Saver builds is TensorFlow's node by node, attributes and devices too."""
    theirs = tf.MetaGraphDef.FromString((folder() / f"ckpt/{name}/model.ckpt.meta").read_bytes())
    with tf.Graph().as_default():
        if name == "v1_format":
            tf.Variable(tf.zeros([2, 3]), name="a")
            tf.Variable(tf.zeros([3], tf.int32), name="n")
            meta = tf.train.Saver(write_version=tf.train.SaverDef.V1).export_meta_graph()
        else:
            tf.Variable(tf.zeros([2]), name="plain")
            for i, rows in enumerate((3, 3, 2)):
                part = tf.get_variable(f"emb/part_{i}", [rows, 3])
                part._set_save_slice_info(
                    tf.Variable.SaveSliceInfo("emb", [8, 3], [3 * i, 0], [rows, 3])
                )
            meta = tf.train.Saver().export_meta_graph()
    assert nodes(meta, "save/") == nodes(theirs, "save/")
    assert meta.saver_def == theirs.saver_def


def test_the_first_format_written_again(tmp_path: Path) -> None:
    path = folder() / about("v1_format")["prefix"]
    with open_checkpoint(path) as reader:
        pieces = [
            (
                k,
                reader.shape(k),
                TensorSlice.full(len(reader.shape(k))),
                reader.get(k),
                reader.dtype(k),
            )
            for k in reader.names()
        ]
    write_v1(str(tmp_path / "m"), pieces)
    assert (tmp_path / "m").read_bytes() == path.read_bytes()


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
    "path",
    ["meta/m.meta"]
    + [f"ckpt/{n}/model.ckpt.meta" for n in ("sharded", "partitioned", "v1_format")],
)
def test_a_meta_graph_goes_out_as_it_came_in(path: str) -> None:
    theirs = tf.MetaGraphDef.FromString((folder() / path).read_bytes())
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(theirs)
        ours = saver.export_meta_graph()
    for mine, other in zip(nodes(ours, ""), nodes(theirs, ""), strict=True):
        # The writer's op list says which of its defaults an older reader may drop.
        other.ClearField("experimental_type")
        for later in ("grad_a", "grad_b", "allow_missing_files"):
            other.attr.pop(later, None)
            mine.attr.pop(later, None)
        if "_class" in other.attr and not other.device:
            mine.device = ""  # a colocated node takes its partner's device when it is imported
        assert mine == other
    assert ours.collection_def == theirs.collection_def
    assert ours.saver_def == theirs.saver_def
