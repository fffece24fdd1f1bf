"""Checkpoints, events and SavedModels on a file system that is not the machine's."""

from __future__ import annotations

import errno
from typing import Any

import fsspec
import numpy as np
import pytest

import opdock as tf
from opdock.io import filesystems
from opdock.io.checkpoint_v2 import BundleReader, BundleWriter


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in memory, and a working directory in which nothing may appear."""
    monkeypatch.chdir(tmp_path)
    name = f"memory://{tmp_path.name}"
    yield name
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]
    assert not list(tmp_path.iterdir())


def names(folder: str) -> list[str]:
    return sorted(tf.gfile.ListDirectory(folder))


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("below", ["", "/made/by/the/save"])
def test_savers_save_keep_and_restore(folder, sharded, below):
    folder += below
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    w = tf.get_variable("w", initializer=tf.constant(["a", "b"]))
    saver = tf.train.Saver(max_to_keep=2, sharded=sharded)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            sess.run(v.assign([step, step]))
            assert saver.save(sess, f"{folder}/m", step) == f"{folder}/m-{step}"
        kept = tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths
        assert list(kept) == [f"{folder}/m-2", f"{folder}/m-3"]
        assert names(folder) == ["checkpoint"] + [
            f"m-{i}.{end}" for i in (2, 3) for end in ("data-00000-of-00001", "index", "meta")
        ]
        sess.run([v.assign([0, 0]), w.assign(["", ""])])
        assert tf.train.latest_checkpoint(folder) == f"{folder}/m-3"
        saver.restore(sess, f"{folder}/m-2")
        assert sess.run(v).tolist() == [2, 2]
        assert sess.run(w).tolist() == [b"a", b"b"]
        again = tf.train.Saver()
        again.recover_last_checkpoints(kept)
        assert again.last_checkpoints == list(kept)
    assert tf.train.list_variables(folder) == [("v", [2]), ("w", [2])]
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(f"{folder}/m-3.meta").restore(sess, f"{folder}/m-3")
        assert sess.run("v:0").tolist() == [3, 3]


def test_the_top_of_a_file_system_is_a_folder(folder):
    v = tf.get_variable("v", initializer=1.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        tf.train.Saver().save(sess, "memory://m")
    assert tf.train.latest_checkpoint("memory://") == "memory://m"


def test_a_training_goes_on_from_there(folder):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    for last in (3, 5):
        hooks = [tf.train.StopAtStepHook(last_step=last)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=1, save_summaries_steps=1
        ) as session:
            while not session.should_stop():
                reached = session.run(train)
        assert reached == last
        assert tf.train.latest_checkpoint(folder) == f"{folder}/model.ckpt-{last}"
    events = tf.gfile.Glob(f"{folder}/events.out*")
    assert sum(1 for e in tf.train.summary_iterator(events[0]) if e.file_version) == 1


def test_objects_and_saved_models(folder):
    v = tf.get_variable("v", initializer=4.0)
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as sess:
        sess.run(v.initializer)
        prefix = tf.train.Checkpoint(v=v).save(f"{folder}/c", session=sess)
        tf.saved_model.simple_save(sess, f"{folder}/model", {"x": x}, {"y": x * v})
        sess.run(v.assign(0.0))
        tf.train.Checkpoint(v=v).restore(prefix).assert_consumed().run_restore_ops(sess)
        assert sess.run(v) == 4.0
    with tf.Graph().as_default(), tf.Session() as sess:
        told = tf.saved_model.load(sess, ["serve"], f"{folder}/model").signature_def
        signature = told["serving_default"]
        assert sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: 2.0}) == 8.0


def test_a_bundle_is_read_back_in_slices(folder):
    with BundleWriter(f"{folder}/b") as writer:
        writer.add("a", np.arange(6).reshape(2, 3))
    with BundleReader(f"{folder}/b") as reader:
        reader.verify(["a"])
        assert reader.get("a").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_prefix_that_fails_to_be_saved_again_has_the_old_or_the_new(folder, monkeypatch):
    """Whatever call of the file system fails, for good: a full bucket, rights that are gone."""
    prefix = f"{folder}/m"
    calls = {"left": 10**6}

    def failing(name: str) -> Any:
        method = getattr(filesystems.Remote, name)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            writes = name != "open" or args[1] != "rb"
            calls["left"] -= writes
            if writes and calls["left"] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return method(self, *args, **kwargs)

        return call

    def save(value: int) -> None:
        with BundleWriter(prefix) as writer:
            writer.add("a", np.full(3, value))

    def value() -> int:
        with BundleReader(prefix) as reader:
            return int(reader.get("a")[0])

    save(0)
    for name in ("open", "mkdir"):
        monkeypatch.setattr(filesystems.Remote, name, failing(name))
    failed, number = 0, 0
    while True:
        before, number = value(), number + 1
        calls["left"] = number - 1
        try:
            save(number)
        except tf.errors.ResourceExhaustedError:
            failed += 1
        else:
            break
        assert value() in (before, number)
    assert failed >= 3
    assert value() == number
    assert names(folder) == ["m.data-00000-of-00001", "m.index"]
