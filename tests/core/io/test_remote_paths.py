"""Whatever takes a path takes one of a file system that fsspec knows, or with the scheme "file"."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io import filesystems, lmdb_files
from opdock.io.files import atomic_write
from opdock.io.safetensors_files import checkpoint_to_safetensors, safetensors_to_checkpoint
from tests.core.io.lmdb_sample import DATABASE, PAIRS


@pytest.fixture(params=["memory", "file"])
def base(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory; what is taken for a path of the machine's by mistake would come into another."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    there = f"memory://{tmp_path.name}" if request.param == "memory" else f"file://{tmp_path}/here"
    tf.gfile.MakeDirs(there)
    yield there
    assert os.listdir(elsewhere) == []
    tf.gfile.DeleteRecursively(there)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as made:
        tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
        made.run(tf.global_variables_initializer())
        yield made


def names(path: str) -> set[str]:
    return set(tf.gfile.ListDirectory(path))


def test_savers_keep_the_last_checkpoints(base, session):
    saver = tf.train.Saver(max_to_keep=2)
    for step in range(4):
        prefix = saver.save(session, f"{base}/model", global_step=step)
    assert prefix == tf.train.latest_checkpoint(base) == f"{base}/model-3"
    kinds = "data-00000-of-00001", "index", "meta"
    assert names(base) == {"checkpoint", *(f"model-{i}.{k}" for i in (2, 3) for k in kinds)}
    variable = tf.global_variables()[0]
    session.run(variable.assign([0.0, 0.0]))
    saver.restore(session, prefix)
    assert session.run(variable).tolist() == [1.0, 2.0]
    assert tf.train.list_variables(base) == [("v", [2])]
    assert tf.train.load_variable(prefix, "v").tolist() == [1.0, 2.0]
    assert len(tf.train.get_checkpoint_mtimes([prefix, f"{base}/none"])) == 1
    assert not tf.train.checkpoint_exists(f"{base}/model-0")
    with tf.Graph().as_default():
        tf.train.import_meta_graph(f"{prefix}.meta")
        assert [v.op.name for v in tf.global_variables()] == ["v"]


@pytest.mark.parametrize("options", [{"sharded": True}, {"write_version": tf.train.SaverDef.V1}])
def test_savers_of_other_kinds(base, session, options):
    saver = tf.train.Saver(**options)
    for value in (3.0, 4.0):  # the second takes the place of the first
        session.run(tf.global_variables()[0].assign([value, value]))
        prefix = saver.save(session, f"{base}/model")
    session.run(tf.global_variables()[0].assign([0.0, 0.0]))
    saver.restore(session, prefix)
    assert session.run(tf.global_variables()[0]).tolist() == [4.0, 4.0]
    assert not [n for n in names(base) if "temp" in n]


def test_checkpoints_of_objects(base, session):
    checkpoint = tf.train.Checkpoint(v=tf.global_variables()[0])
    manager = tf.train.CheckpointManager(checkpoint, f"{base}/deep/in", max_to_keep=2)
    with session.as_default():
        session.run(checkpoint.save_counter.initializer)
        for number in range(3):
            manager.save(number)
        assert manager.checkpoints == [f"{base}/deep/in/ckpt-{i}" for i in (1, 2)]
        checkpoint.restore(manager.latest_checkpoint).assert_consumed().run_restore_ops()


def test_events(base, session):
    with tf.summary.FileWriter(f"{base}/logs", session.graph) as writer:
        value = tf.Summary.Value(tag="loss", simple_value=1.0)
        writer.add_summary(tf.Summary(value=[value]), 7)
    (path,) = tf.gfile.Glob(f"{base}/logs/*")
    assert [e.step for e in tf.train.summary_iterator(path)][-1] == 7


def test_saved_models_with_assets(base, session, tmp_path):
    (tmp_path / "words.txt").write_text("hello\n")
    words = tf.constant(str(tmp_path / "words.txt"))
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, words)
    x = tf.placeholder(tf.float32, [2])
    builder = tf.saved_model.builder.SavedModelBuilder(f"{base}/model")
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": x * tf.global_variables()[0]})
    builder.add_meta_graph_and_variables(
        session, ["serve"], {"double": signature},
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
    )  # fmt: skip
    builder.save()
    assert names(f"{base}/model") == {"assets", "saved_model.pb", "variables"}
    with tf.Graph().as_default(), tf.Session() as other:
        loaded = tf.saved_model.loader.load(other, ["serve"], f"{base}/model")
        made = loaded.signature_def["double"]
        fed = {made.inputs["x"].name: [1.0, 3.0]}
        assert other.run(made.outputs["y"].name, fed).tolist() == [1.0, 6.0]
        (asset,) = tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
        assert tf.gfile.GFile(other.run(asset).decode()).read() == "hello\n"


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records(base, session, kind):
    path = f"{base}/some.tfrecord"
    options = tf.python_io.TFRecordOptions(kind)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        writer.write(b"first")
        writer.write(b"second")
    assert list(tf.python_io.tf_record_iterator(path, options)) == [b"first", b"second"]
    again = tf.data.experimental.TFRecordWriter(f"{base}/again", kind)
    session.run(again.write(tf.data.TFRecordDataset(path, kind)))
    element = tf.data.TFRecordDataset(f"{base}/again", kind).batch(2).make_one_shot_iterator()
    assert session.run(element.get_next()).tolist() == [b"first", b"second"]


def test_safetensors(base, session):
    pytest.importorskip("safetensors", reason="the extra `safetensors` is not installed")
    tf.train.Saver().save(session, f"{base}/model")
    assert checkpoint_to_safetensors(f"{base}/model", f"{base}/model.safetensors") == ["v"]
    assert safetensors_to_checkpoint(f"{base}/model.safetensors", f"{base}/again") == ["v"]
    assert tf.train.load_variable(f"{base}/again", "v").tolist() == [1.0, 2.0]
    with pytest.raises(tf.errors.NotFoundError, match="/none"):
        safetensors_to_checkpoint(f"{base}/none", f"{base}/other")
    with tf.gfile.GFile(f"{base}/cut", "wb") as file:
        file.write(b"no such file")
    with pytest.raises(tf.errors.DataLossError, match="/cut: "):
        safetensors_to_checkpoint(f"{base}/cut", f"{base}/other")


def test_lmdb(base, session):
    tf.gfile.MakeDirs(f"{base}/pairs")
    with tf.gfile.GFile(f"{base}/pairs/data.mdb", "wb") as file:
        file.write(DATABASE)
    assert dict(lmdb_files.pairs(f"{base}/pairs")) == PAIRS
    assert dict(lmdb_files.pairs(f"{base}/pairs/data.mdb")) == PAIRS


def test_caches_are_written_once(base, session):
    folder = f"{base}/cache"
    tf.gfile.MakeDirs(folder)
    dataset = tf.data.Dataset.range(3).cache(f"{folder}/kept").repeat(2).batch(6)
    assert session.run(dataset.make_one_shot_iterator().get_next()).tolist() == [0, 1, 2, 0, 1, 2]
    assert names(folder) == {"kept.index"}
    with tf.gfile.GFile(f"{folder}/other.lockfile", "w") as lock:
        lock.write("mine")
    other = tf.data.Dataset.range(3).cache(f"{folder}/other").make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.AlreadyExistsError, match="concurrent caching"):
        session.run(other)


def test_ops_and_readers(base, session):
    session.run(tf.write_file(f"{base}/new/lines.txt", "one\ntwo\n"))
    assert session.run(tf.read_file(f"{base}/new/lines.txt")) == b"one\ntwo\n"
    found = session.run(tf.matching_files(f"{base}/new/*"))
    assert [os.path.basename(f) for f in found] == [b"lines.txt"]
    assert session.run(tf.read_file(tf.constant(found[0]))) == b"one\ntwo\n"
    queue = tf.train.string_input_producer(found, num_epochs=1)
    _, line = tf.TextLineReader().read(queue)
    session.run(tf.local_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    assert [session.run(line), session.run(line)] == [b"one", b"two"]
    coordinator.request_stop()
    coordinator.join(threads, ignore_live_threads=False)


def test_training_begins_where_it_ended(base):
    def train(steps: int) -> int:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            more = tf.assign_add(step, 1)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=base, save_checkpoint_steps=2, save_summaries_steps=2
            ) as session:
                return max(int(session.run(more)) for _ in range(steps))

    assert train(4) == 4
    assert train(3) == 7


def test_what_fails_leaves_nothing(base):
    def half(file: Any) -> None:
        file.write(b"half")
        raise KeyError("on the way")

    with pytest.raises(KeyError), atomic_write(f"{base}/whole") as file:
        half(file)
    assert names(base) == set()
    with atomic_write(f"{base}/whole") as file:
        file.write(b"all")
    assert filesystems.of(base).read(f"{base}/whole") == b"all"


def test_a_damaged_checkpoint_is_told(base, session):
    prefix = tf.train.Saver().save(session, f"{base}/model", write_meta_graph=False)
    data = f"{prefix}.data-00000-of-00001"
    content = bytearray(filesystems.of(data).read(data))
    content[0] ^= 1
    with tf.gfile.GFile(data, "wb") as file:
        file.write(bytes(content))
    with pytest.raises(tf.errors.DataLossError, match="Checksum does not match"):
        tf.train.load_variable(prefix, "v")
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        tf.train.Saver().restore(session, f"{base}/none")


@pytest.mark.parametrize(
    ("path", "above"),
    [("memory://a/b", "memory://a"), ("memory://a", "memory://"), ("a/b", "a"), ("a", "")],
)
def test_the_directory_above(path, above):
    assert filesystems.parent(path) == above


def test_arrays_are_those_that_were_saved(base, session):
    del session
    values = {"f": np.arange(6.0).reshape(2, 3), "s": np.array([b"a", b"bc"], object)}
    with tf.Graph().as_default(), tf.Session() as fresh:
        variables = [tf.get_variable(n, initializer=tf.constant(v)) for n, v in values.items()]
        fresh.run(tf.global_variables_initializer())
        prefix = tf.train.Saver(variables).save(fresh, f"{base}/model")
    reader = tf.train.NewCheckpointReader(prefix)
    for name, value in values.items():
        assert reader.get_tensor(name).tolist() == value.tolist()
