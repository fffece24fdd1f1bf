"""FileWriter: what it writes, in which order, and that TensorBoard reads it."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.summary.plugin_asset import PluginAsset, get_plugin_asset
from opdock.summary.writer import FileWriter


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def events(folder: Path) -> list[tf.Event]:
    return [e for f in sorted(os.listdir(folder)) for e in tf.train.summary_iterator(folder / f)]


def kinds(folder: Path) -> list[str]:
    return [e.WhichOneof("what") for e in events(folder)]


def test_the_file_and_its_order(tmp_path: Path) -> None:
    tf.constant(1.0, name="c")
    with tf.summary.FileWriter(
        str(tmp_path / "a/b"), tf.get_default_graph(), filename_suffix=".x"
    ) as w:
        w.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)]), 3)
        w.add_session_log(tf.SessionLog(status=tf.SessionLog.START), np.int64(4))
    (name,) = os.listdir(tmp_path / "a/b")
    assert name.startswith("events.out.tfevents.")
    assert name.endswith(".x")
    assert kinds(tmp_path / "a/b") == [
        "file_version",
        "graph_def",
        "meta_graph_def",
        "summary",
        "session_log",
    ]
    got = events(tmp_path / "a/b")
    assert got[0].file_version == "brain.Event:2"
    assert [e.step for e in got] == [0, 0, 0, 3, 4]
    graph = tf.GraphDef.FromString(got[1].graph_def)
    assert [n.name for n in graph.node] == ["c"]
    assert "_output_shapes" in graph.node[0].attr
    meta = tf.MetaGraphDef.FromString(got[2].meta_graph_def)
    assert meta.graph_def == graph
    assert meta.meta_info_def.stripped_op_list.op[0].name == "Const"


def test_metadata_is_written_once(tmp_path: Path) -> None:
    op = tf.summary.text("note", tf.constant("hi"))
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        value = sess.run(op)
        for step in range(3):
            writer.add_summary(value, step)
    plugins = [e.summary.value[0].metadata.plugin_data.plugin_name for e in events(tmp_path)[1:]]
    assert plugins == ["text", "", ""]


def test_close_and_reopen(tmp_path: Path) -> None:
    summary = tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=1.0)])
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_summary(summary, 1)
    writer.close()
    writer.close()
    for late in (lambda: writer.add_summary(summary, 2), writer.flush):
        with pytest.warns(UserWarning, match="closed FileWriter"):
            late()
    writer.reopen()
    writer.add_summary(summary, 3)
    writer.flush()
    assert [e.step for e in events(tmp_path) if e.HasField("summary")] == [1, 3]
    assert len(os.listdir(tmp_path)) == 2
    writer.close()


def test_two_writers_of_one_second_do_not_meet(tmp_path: Path) -> None:
    summary = tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=1.0)])
    writers = [tf.summary.FileWriter(str(tmp_path)) for _ in range(3)]
    for i, writer in enumerate(writers):
        writer.add_summary(summary, i)
    for writer in writers:
        writer.close()
    assert sorted(e.step for e in events(tmp_path) if e.HasField("summary")) == [0, 1, 2]


def test_run_metadata_tags_are_unique(tmp_path: Path) -> None:
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_run_metadata(tf.RunMetadata(), "step1", 1)
        with pytest.raises(ValueError, match="already used"):
            writer.add_run_metadata(tf.RunMetadata(), "step1", 2)


def test_bad_graphs(tmp_path: Path) -> None:
    graph = tf.get_default_graph()
    with pytest.raises(ValueError, match="not both"):
        tf.summary.FileWriter(str(tmp_path), graph=graph, graph_def=graph.as_graph_def())
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        with pytest.raises(TypeError, match="must be an instance of `Graph`"):
            writer.add_graph("graph")
        with pytest.raises(TypeError, match="MetaGraphDef"):
            writer.add_meta_graph(graph.as_graph_def())


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opdock.io.records import RecordWriter

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordWriter, "write", full)
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    writer = tf.summary.FileWriter(str(tmp_path))
    with pytest.raises(tf.errors.ResourceExhaustedError, match="tfevents.*No space"):
        for _ in range(3):
            writer.add_summary(tf.Summary())
            writer.flush()
    writer.close()


def test_cache(tmp_path: Path) -> None:
    writer = tf.summary.FileWriterCache.get(str(tmp_path))
    assert tf.summary.FileWriterCache.get(str(tmp_path)) is writer
    assert isinstance(writer, FileWriter)
    tf.summary.FileWriterCache.clear()
    assert writer.event_writer.closed
    assert tf.summary.FileWriterCache.get(str(tmp_path)) is not writer
    tf.summary.FileWriterCache.clear()


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    x = tf.placeholder(tf.float32, [4], name="x")
    tf.summary.scalar("loss", tf.reduce_sum(x))
    tf.summary.histogram("h", x)
    tf.summary.image("im", tf.reshape(x, [1, 2, 2, 1]), max_outputs=1)
    tf.summary.text("note", tf.constant("hello"))
    merged = tf.summary.merge_all()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path), sess.graph) as writer:
        for step in range(3):
            metadata = tf.RunMetadata()
            feed = {x: np.arange(4) + step}
            value = sess.run(merged, feed, options=options, run_metadata=metadata)
            writer.add_summary(value, step)
            writer.add_run_metadata(metadata, f"step{step}", step)
    board = EventAccumulator(str(tmp_path), size_guidance={"histograms": 0})
    board.Reload()
    tags = board.Tags()
    assert tags["scalars"] == ["loss"]
    assert tags["histograms"] == ["h"]
    assert tags["images"] == ["im/image"]
    assert tags["tensors"] == ["note"]
    assert tags["run_metadata"] == ["step0", "step1", "step2"]
    assert tags["graph"]
    assert tags["meta_graph"]
    assert [(e.step, e.value) for e in board.Scalars("loss")] == [(0, 6), (1, 10), (2, 14)]
    histogram = board.Histograms("h")[2].histogram_value
    assert (histogram.min, histogram.max, histogram.num) == (2, 5, 4)
    assert board.Images("im/image")[0].width == 2
    assert {"x", "loss"} <= {n.name for n in board.Graph().node}
    ran = [
        n.node_name for d in board.RunMetadata("step1").step_stats.dev_stats for n in d.node_stats
    ]
    assert "loss" in ran


class Notes(PluginAsset):
    """The assets of a plugin."""

    plugin_name = "notes"

    def __init__(self) -> None:
        self.text = ""

    def assets(self) -> dict[str, str | bytes]:
        return {"all.txt": self.text, "raw.bin": b"\x00"}


def test_assets_of_plugins(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        get_plugin_asset(Notes).text = "first"
        assert get_plugin_asset(Notes, graph).text == "first"
        get_plugin_asset(Notes).text = "last"
        tf.summary.FileWriter(str(tmp_path), graph).close()
        folder = tmp_path / "plugins" / "notes"
        assert (folder / "all.txt").read_text() == "last"
        assert (folder / "raw.bin").read_bytes() == b"\x00"
        clash = type("Other", (Notes,), {})
        with pytest.raises(ValueError, match="collision between classes Other and Notes"):
            get_plugin_asset(clash)
        nameless = type("Nameless", (Notes,), {"plugin_name": None})
        with pytest.raises(ValueError, match="Class Nameless has no plugin_name"):
            get_plugin_asset(nameless)


PR_CURVES = """
import opdock
opdock.install_as_tensorflow()
import tensorflow as tf
from tensorboard.plugins.pr_curve import summary

labels, predictions = tf.constant([True, False, True]), tf.constant([0.9, 0.6, 0.4])
curve = summary.op("curve", labels, predictions, num_thresholds=3)
later, update = summary.streaming_op("later", labels, predictions, num_thresholds=3)
with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    for found in session.run([curve, later]):
        (value,) = tf.Summary.FromString(found).value
        name = value.metadata.plugin_data.plugin_name
        print(value.tag, name, tf.make_ndarray(value.tensor)[:3].astype(int).tolist())
"""


def test_precision_recall_curves_of_tensorboards_plugin() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PR_CURVES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    counts = "[[2, 1, 0], [1, 1, 0], [0, 0, 1]]"
    assert done.stdout.splitlines() == [
        f"{tag}/pr_curves pr_curves {counts}" for tag in ("curve", "later")
    ]


def test_a_program_that_ends_without_closing_has_written_all(tmp_path):
    program = f"""
import opdock as tf
writer = tf.summary.FileWriter({str(tmp_path)!r})
for step in range(60):
    summary = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=step)])
    writer.add_summary(summary, step)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    (path,) = tmp_path.iterdir()
    found = [e.step for e in tf.train.summary_iterator(str(path)) if e.HasField("summary")]
    assert found == list(range(60))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_of_fork_goes_on_in_a_file_of_its_own(tmp_path):
    """Its parent's thread is not there, and would be waited for without end."""
    writer = tf.summary.FileWriter(tmp_path, max_queue=2, flush_secs=10**6)
    flushed = tf.summary.FileWriter(tmp_path, filename_suffix=".other")
    add = [tf.Summary(value=[tf.Summary.Value(tag=f"{i}", simple_value=i)]) for i in range(40)]
    flushed.add_summary(add[0], 0)
    flushed.flush()
    for i in range(10):
        writer.add_summary(add[i], i)
    child = os.fork()
    if not child:
        status = 1
        try:
            for i in range(10, 20):
                writer.add_summary(add[i], i)
            writer.flush()
            writer.close()
            flushed.close()
            status = 0
        finally:
            _close_files()  # as a child does that ends like any program
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for i in range(20, 30):
        writer.add_summary(add[i], i)
    writer.close()
    flushed.close()
    found = sorted(
        [e.step for e in tf.train.summary_iterator(path) if e.HasField("summary")]
        for path in map(str, tmp_path.iterdir())
    )
    assert found == [[0], [*range(10), *range(20, 30)], [*range(10, 20)]]


def _close_files() -> None:
    for file in gc.get_objects():
        if isinstance(file, io.BufferedWriter) and "tfevents" in str(file.name):
            file.close()


def test_a_directory_that_has_become_a_file_is_told(tmp_path):
    folder = tmp_path / "logs"
    writer = tf.summary.FileWriter(folder)
    folder.rmdir()
    folder.write_text("no directory")
    with pytest.raises(tf.errors.AlreadyExistsError, match="logs"):
        writer.add_summary(tf.Summary(), 1)
    folder.unlink()
    writer.add_summary(tf.Summary(), 2)
    writer.close()
    assert [e.step for e in events(folder)] == [0, 2]
