"""Files that one library writes and another reads: a program that runs in opdock and in TensorFlow.

    python tools/interop_cases.py opdock write FOLDER
    python tools/interop_cases.py tensorflow read FOLDER

`tools/interop.py` runs it. What is written follows from names alone, so the reader knows it; the
results of graphs are written beside them. It prints a line of JSON: what is wrong with each case,
if anything.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

TYPES: Final = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool",
    "complex64",
)  # fmt: skip
TAGS: Final = ["serve"]


def value(name: str, shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """The value of a name: the same wherever it is asked for."""
    draw = np.random.RandomState(crc32(name.encode()))
    found = draw.uniform(-50, 50, shape)
    return found > 0 if dtype == "bool" else np.abs(found).astype(dtype)


def same(found: Any, wanted: Any) -> None:
    """AssertionError unless two arrays are the same, bit by bit."""
    np.testing.assert_array_equal(found, wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


# ---------------------------------------------------------------- checkpoints
def variables(tf: Any) -> dict[str, Any]:
    """Variables of every type and shape, by name, with their values."""
    found = {f"of_{t}": value(t, (3, 2), t) for t in TYPES}
    found |= {"scalar": value("scalar", ()), "empty": value("empty", (0, 4))}
    for name, given in found.items():
        tf.get_variable(name, initializer=tf.zeros(given.shape, given.dtype), use_resource=True)
    tf.get_variable("scope/words", initializer=tf.constant(["", ""]))
    found["scope/words"] = np.array([b"a\0b", "für".encode()], object)
    for name, parts in (("rows", (3, 1)), ("columns", (1, 2))):
        found[name] = value(name, (6, 4))
        split = tf.fixed_size_partitioner(max(parts), axis=int(parts[1] > 1))
        tf.get_variable(name, (6, 4), initializer=tf.zeros_initializer(), partitioner=split)
    return found


def assign(tf: Any, session: Any, values: dict[str, Any]) -> None:
    """Gives all variables the values of their names."""
    session.run(tf.global_variables_initializer())
    for variable in tf.global_variables():
        whole = variable._get_save_slice_info()
        wanted = values[whole.full_name if whole else variable.op.name]
        if whole:
            ends = zip(whole.var_offset, whole.var_shape, strict=True)
            wanted = wanted[tuple(slice(start, start + size) for start, size in ends)]
        session.run(variable.assign(wanted))


def _write_checkpoint(tf: Any, folder: Path, **options: Any) -> None:
    values = variables(tf)
    with tf.Session() as session:
        assign(tf, session, values)
        tf.train.Saver(**options).save(session, str(folder / "model"), global_step=7)


def _read_checkpoint(tf: Any, folder: Path, **options: Any) -> None:
    values = variables(tf)
    prefix = tf.train.latest_checkpoint(str(folder))
    assert prefix == str(folder / "model-7"), prefix
    reader = tf.train.load_checkpoint(prefix)
    for name, wanted in values.items():
        same(reader.get_tensor(name), wanted)
    with tf.Session() as session:
        tf.train.Saver(**options).restore(session, prefix)
        for name, wanted in values.items():
            parts = [v for v in tf.global_variables() if v.op.name.split("/part_")[0] == name]
            axis = int(name == "columns")
            found = [session.run(v) for v in parts]
            same(np.concatenate(found, axis) if len(found) > 1 else found[0], wanted)


def _write_sharded(tf: Any, folder: Path) -> None:
    _write_checkpoint(tf, folder, sharded=True)


def _read_sharded(tf: Any, folder: Path) -> None:
    _read_checkpoint(tf, folder, sharded=True)


def _write_v1(tf: Any, folder: Path) -> None:
    v = tf.get_variable("v", initializer=tf.zeros([2, 3]))
    with tf.Session() as session:
        assign(tf, session, {"v": value("v1", (2, 3))})
        saver = tf.train.Saver([v], write_version=tf.train.SaverDef.V1)
        saver.save(session, str(folder / "old"))


def _read_v1(tf: Any, folder: Path) -> None:
    tf.get_variable("v", [2, 3])
    with tf.Session() as session:
        tf.train.Saver().restore(session, str(folder / "old"))
        same(session.run("v:0"), value("v1", (2, 3)))


def objects(tf: Any) -> tuple[Any, Any, Any]:
    """A checkpoint of objects, its layer's kernel, and a training operation with slots."""
    kernel = tf.get_variable("kernel", [3, 2], use_resource=True)
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(tf.square(kernel)), var_list=[kernel])
    return tf.train.Checkpoint(optimizer=optimizer, kernels=[kernel]), kernel, train


def _write_objects(tf: Any, folder: Path) -> None:
    root, kernel, train = objects(tf)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), root.save_counter.initializer])
        session.run(train)
        root.save(str(folder / "objects"), session=session)
        session.run(train)
        np.save(folder / "after", session.run(kernel))


def _read_objects(tf: Any, folder: Path) -> None:
    root, kernel, train = objects(tf)
    with tf.Session() as session:
        status = root.restore(tf.train.latest_checkpoint(str(folder)))
        status.assert_consumed().run_restore_ops(session)
        session.run(train)
        np.testing.assert_allclose(session.run(kernel), np.load(folder / "after.npy"), rtol=1e-6)


# ---------------------------------------------------------------- graphs
def graph(tf: Any) -> None:
    """A graph from x to y: layers, a loop, a branch, strings."""
    x = tf.placeholder(tf.float32, [None, 6, 6, 2], name="x")
    kernel = tf.constant(value("kernel", (3, 3, 2, 4)) / 50)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), tf.ones([4])))
    y = tf.reduce_mean(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), [1, 2])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 0.5 + 1), [tf.constant(0), y])
    y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.nn.softmax(y), lambda: -y)
    tf.identity(y, name="y")
    tf.string_join([tf.as_string(tf.argmax(y, 1)), tf.constant("!")], name="words")


def results(session: Any) -> list[Any]:
    """What the graph gives."""
    return session.run(["y:0", "words:0"], {"x:0": value("images", (3, 6, 6, 2)) / 50})


def _write_graph(tf: Any, folder: Path) -> None:
    graph(tf)
    for name, text in (("graph.pb", False), ("graph.pbtxt", True)):
        tf.train.write_graph(tf.get_default_graph(), str(folder), name, as_text=text)
    with tf.Session() as session:
        y, words = results(session)
    np.savez(folder / "results", y=y, words=words.astype("S"))


def _read_graph(tf: Any, folder: Path) -> None:
    text_format = importlib.import_module("google.protobuf.text_format")
    wanted = np.load(folder / "results.npz")
    for name in ("graph.pb", "graph.pbtxt"):
        proto, data = tf.GraphDef(), (folder / name).read_bytes()
        if name.endswith("txt"):
            text_format.Parse(data.decode(), proto)
        else:
            proto.ParseFromString(data)
        with tf.Graph().as_default(), tf.Session() as session:
            tf.import_graph_def(proto, name="")
            y, words = results(session)
        np.testing.assert_allclose(y, wanted["y"], rtol=1e-5, atol=1e-6)
        assert words.tolist() == wanted["words"].tolist()


def _write_meta_graph(tf: Any, folder: Path) -> None:
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = tf.get_variable("w", initializer=value("w", (3, 1)) / 50)
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=step)
    tf.add_to_collection("train", train)
    feeds = {x: value("rows", (4, 3)) / 50}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, feeds)
        tf.train.Saver().save(session, str(folder / "meta"))
        session.run(train, feeds)
        np.save(folder / "after", session.run(w))


def _read_meta_graph(tf: Any, folder: Path) -> None:
    saver = tf.train.import_meta_graph(str(folder / "meta.meta"))
    with tf.Session() as session:
        saver.restore(session, str(folder / "meta"))
        (train,) = tf.get_collection("train")
        session.run(train, {"x:0": value("rows", (4, 3)) / 50})
        assert session.run(tf.train.get_global_step()) == 2
        (w,) = tf.trainable_variables()
        np.testing.assert_allclose(session.run(w), np.load(folder / "after.npy"), rtol=1e-6)


# ---------------------------------------------------------------- SavedModels
def _write_saved_model(tf: Any, folder: Path) -> None:
    words = folder / "words.txt"
    words.write_text("zero\none\ntwo\n", encoding="utf-8")
    asset = tf.constant(str(words), name="asset")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ), -1,
    )  # fmt: skip
    x = tf.placeholder(tf.string, [None], name="x")
    w = tf.get_variable("w", initializer=value("w", (4,)))
    y = tf.gather(w, table.lookup(x))
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        builder = tf.saved_model.Builder(str(folder / "model"))
        builder.add_meta_graph_and_variables(
            session, TAGS, {"serving_default": signature}, main_op=tf.tables_initializer(),
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        )  # fmt: skip
        builder.save()
    words.unlink()


def _read_saved_model(tf: Any, folder: Path) -> None:
    with tf.Session() as session:
        meta = tf.saved_model.load(session, TAGS, str(folder / "model"))
        signature = meta.signature_def["serving_default"]
        x, y = signature.inputs["x"].name, signature.outputs["y"].name
        same(session.run(y, {x: ["two", "zero"]}), value("w", (4,))[[2, 0]])


# ---------------------------------------------------------------- records and events
def example(tf: Any, number: int) -> Any:
    """The Example of a number."""

    def feature(**kinds: Any) -> Any:
        return tf.train.Feature(**kinds)

    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "number": feature(int64_list=tf.train.Int64List(value=[number, -number])),
                "reals": feature(float_list=tf.train.FloatList(value=value("reals", (number,)))),
                "bytes": feature(bytes_list=tf.train.BytesList(value=[b"\0" * number, b"x"])),
            }
        )
    )


KINDS: Final = ("", "GZIP", "ZLIB")


def _write_records(tf: Any, folder: Path) -> None:
    for kind in KINDS:
        options = tf.python_io.TFRecordOptions(kind) if kind else None
        with tf.python_io.TFRecordWriter(str(folder / f"records{kind}"), options) as writer:
            for number in range(50):
                writer.write(example(tf, number).SerializeToString())


def _read_records(tf: Any, folder: Path) -> None:
    for kind in KINDS:
        path = str(folder / f"records{kind}")
        features = {
            "number": tf.FixedLenFeature([2], tf.int64), "reals": tf.VarLenFeature(tf.float32),
            "bytes": tf.FixedLenFeature([2], tf.string),
        }  # fmt: skip
        with tf.Graph().as_default(), tf.Session() as session:
            data = tf.data.TFRecordDataset(path, compression_type=kind)
            data = data.map(lambda one: tf.parse_single_example(one, features))  # noqa: B023
            following = tf.data.make_one_shot_iterator(data).get_next()
            for number in range(50):
                found = session.run(following)
                assert found["number"].tolist() == [number, -number]
                same(found["reals"].values, value("reals", (number,)))
                assert found["bytes"].tolist() == [b"\0" * number, b"x"]
            try:
                session.run(following)
            except tf.errors.OutOfRangeError:
                continue
            raise AssertionError(f"{path} has more than 50 records")


def _write_events(tf: Any, folder: Path) -> None:
    tf.summary.scalar("loss", tf.constant(2.5))
    tf.summary.histogram("weights", tf.constant(value("weights", (100,))))
    tf.summary.image("image", tf.constant(value("image", (1, 4, 4, 3)) / 50))
    tf.summary.text("words", tf.constant("hello"))
    merged = tf.summary.merge_all()
    with tf.Session() as session, tf.summary.FileWriter(str(folder), session.graph) as writer:
        for step in (1, 2):
            writer.add_summary(session.run(merged), step)


def _read_events(tf: Any, folder: Path) -> None:
    (path,) = folder.glob("events.out.tfevents.*")
    found: dict[str, list[Any]] = {}
    graphs = 0
    for event in tf.train.summary_iterator(str(path)):
        graphs += event.HasField("graph_def")
        for one in event.summary.value:
            found.setdefault(one.tag, []).append((event.step, one))
    assert graphs == 1
    assert [(step, one.simple_value) for step, one in found["loss"]] == [(1, 2.5), (2, 2.5)]
    (_, weights), _ = found["weights"]
    assert weights.histo.num == 100
    assert np.isclose(weights.histo.sum, value("weights", (100,)).sum())
    (_, image), _ = found["image/image/0"] if "image/image/0" in found else found["image/image"]
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = session.run(tf.image.decode_png(image.image.encoded_image_string))
    assert pixels.shape == (4, 4, 3)
    (_, words), _ = found["words"]
    assert words.tensor.string_val[0] == b"hello"


CASES: Final = {
    "checkpoint": (_write_checkpoint, _read_checkpoint),
    "checkpoint, sharded": (_write_sharded, _read_sharded),
    "checkpoint, version 1": (_write_v1, _read_v1),
    "checkpoint of objects": (_write_objects, _read_objects),
    "GraphDef, binary and text": (_write_graph, _read_graph),
    "meta graph to train on": (_write_meta_graph, _read_meta_graph),
    "SavedModel with assets": (_write_saved_model, _read_saved_model),
    "TFRecords of Examples": (_write_records, _read_records),
    "event file": (_write_events, _read_events),
}


def main(library: str, what: str, folder: str) -> None:
    """Writes or reads all cases, and prints what went wrong."""
    module = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}[library]
    tf = importlib.import_module(module)
    if library == "tensorflow":
        tf.disable_v2_behavior()
    found = {}
    for i, (name, functions) in enumerate(CASES.items()):
        place = Path(folder) / str(i)
        place.mkdir(exist_ok=True)
        try:
            with tf.Graph().as_default():
                functions[what == "read"](tf, place)
            found[name] = ""
        except Exception:  # whatever it is, the other cases run
            found[name] = traceback.format_exc()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
