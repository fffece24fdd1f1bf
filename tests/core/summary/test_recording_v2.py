"""`tf.compat.v2.summary` in graphs: what operations write, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.graph import EagerGraph
from opdock.summary import recording
from opdock.summary import recording_v2 as summary


@pytest.fixture(autouse=True)
def _graph(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(recording._current, "writer", None)
    monkeypatch.setattr(recording._current, "step", None)
    with tf.Graph().as_default():
        yield


def written(folder: Path) -> dict[str, tuple[int, Any, Any]]:
    """By tag: the step, the tensor and its metadata."""
    found = {}
    for path in folder.iterdir():
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                data = tf.make_ndarray(value.tensor) if kind == "tensor" else value.simple_value
                found[value.tag] = event.step, data, value.metadata
    return found


def run_all(writer: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        with writer.as_default():
            tf.summary.initialize(session=session)
        session.run(tf.global_variables_initializer())
        told = session.run(tf.summary.all_v2_summary_ops(), feeds)
        session.run(writer.close())
    return told


def test_the_names_are_those_of_version_2() -> None:
    tf.install_as_tensorflow()
    import tensorflow.compat.v2 as tf2

    assert tf2.summary.scalar is summary.scalar
    assert tf2.summary.experimental.set_step is summary.set_step


def test_kinds_of_summaries(tmp_path: Path) -> None:
    writer = summary.create_file_writer(str(tmp_path))
    pixels = np.zeros([5, 2, 4, 3], np.float32)
    with writer.as_default(), tf.name_scope("a"):
        summary.scalar("a number", tf.constant(2), step=1, description="how many")
        summary.text("words", [b"x", b"y"], step=2)
        summary.image("picture", pixels, step=3, max_outputs=2)
        summary.histogram("spread", [[0.0, 1.0], [1.0, 3.0]], step=4, buckets=3)
        summary.histogram("equal", [2.0, 2.0], step=5)
        summary.histogram("nothing", np.zeros([0], np.float32), step=6)
        summary.audio("sound", np.zeros([4, 3, 2], np.float32), 8000, step=8, max_outputs=2)
        summary.write("own", tf.constant([1, 2]), step=7)
    assert all(run_all(writer))
    found = written(tmp_path)
    step, value, told = found["a/a number"]
    assert (step, value, told.plugin_data.plugin_name) == (1, 2.0, "scalars")
    assert told.summary_description == "how many" and value.dtype == np.float32
    assert found["a/words"][1].tolist() == [b"x", b"y"]
    width, height, *files = found["a/picture"][1].tolist()
    assert (width, height, len(files)) == (b"4", b"2", 2)
    assert files[0].startswith(b"\x89PNG")
    np.testing.assert_allclose(found["a/spread"][1], [[0, 1, 1], [1, 2, 2], [2, 3, 1]])
    assert found["a/equal"][1].tolist() == [[1.5, 2.5, 2.0]]
    assert found["a/nothing"][1].shape == (0, 3)
    step, clips, told = found["a/sound"]
    assert (step, clips.shape, told.plugin_data.plugin_name) == (8, (2, 2), "audio")
    assert all(file.startswith(b"RIFF") and label == b"" for file, label in clips)
    assert found["own"][0] == 7 and found["own"][1].tolist() == [1, 2]


def test_sound_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown encoding"):
        summary.audio("a", np.zeros([1, 3, 2], np.float32), 8000, step=1, encoding="mp3")
    with pytest.raises(ValueError, match="rank"):
        summary.audio("a", np.zeros([3, 2], np.float32), 8000, step=1)


def test_whether_and_at_which_step_they_are_written(tmp_path: Path) -> None:
    writer = summary.create_file_writer(str(tmp_path))
    wanted = tf.placeholder(tf.bool, [])
    step = tf.get_variable("step", initializer=np.int64(9), use_resource=True)
    with pytest.raises(ValueError, match="No step set"), writer.as_default():
        summary.scalar("none", 1.0)
    summary.set_step(step)
    assert summary.get_step() is step
    with writer.as_default():
        summary.scalar("always", 1.0)
        with summary.record_if(lambda: False):
            summary.scalar("never", 1.0)
        with summary.record_if(lambda: wanted):
            summary.scalar("wanted", 1.0)
        with pytest.raises(ValueError, match="Expected scalar shape"):
            summary.scalar("vector", [1.0, 2.0])
        with summary.create_noop_writer().as_default():
            summary.scalar("still", 1.0)
    summary.scalar("nowhere", 1.0)
    assert run_all(writer, {wanted: True}) == [True, False, True, True]
    found = written(tmp_path)
    assert sorted(found) == ["always", "still", "wanted"] and found["always"][0] == 9


def test_writers_have_files_of_their_own(tmp_path: Path) -> None:
    first, second = (summary.create_file_writer(str(tmp_path / n)) for n in "ab")
    for writer, value in ((first, 1.0), (second, 2.0)):
        with writer.as_default():
            summary.scalar("x", value, step=0)
            raw = tf.Summary(value=[tf.Summary.Value(tag="raw", simple_value=value)])
            summary.write_raw_pb(raw.SerializeToString(), step=1)
    tf.add_to_collection("_SUMMARY_V2", second.flush())
    run_all(first)
    for name, value in (("a", 1.0), ("b", 2.0)):
        found = written(tmp_path / name)
        assert found["x"][:2] == (0, value) and found["raw"][:2] == (1, value)
    with pytest.raises(ValueError, match="logdir cannot be None"):
        summary.create_file_writer(None)


def test_the_module_that_libraries_import_has_both_kinds() -> None:
    from opdock.python.ops import summary_ops_v2 as internal

    assert internal.write is summary.write
    assert internal.scalar is recording.scalar
    assert internal.create_file_writer_v2 is summary.create_file_writer
    with internal.summary_scope("f?o?o") as (tag, scope):
        assert (tag, scope) == ("f?o?o", "foo/")


def test_graphs_are_written_as_they_are_given(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"FileWriter\.add_graph"):
        summary.graph(tf.GraphDef())
    with EagerGraph().as_default():
        double = tf.function(lambda x: x * 2.0)
        double(tf.constant(1.0))
        assert not summary.graph(tf.GraphDef()).numpy()  # nobody writes
        writer = summary.create_file_writer(str(tmp_path))
        with writer.as_default():
            assert summary.graph(double._concrete_variable_creation_fn.graph).numpy()
            with pytest.raises(ValueError, match="graph_data must be"):
                summary.graph("graph")
        writer.close()
    (path,) = tmp_path.iterdir()
    (event,) = (e for e in tf.train.summary_iterator(str(path)) if e.HasField("graph_def"))
    nodes = {n.op for n in tf.GraphDef.FromString(event.graph_def).node}
    assert "Mul" in nodes
