"""Saver: node names, what is kept, what is refused, and which errors a mismatch gives."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io.restoration import Restoration
from opdock.train import checkpoint_management as management
from opdock.train.saveable import SaveableObject, SaveSpec
from opdock_echo.device import EchoDevice


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return str(tmp_path / "m")


def started() -> tf.Session:
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    return sess


def save_nodes() -> list[tuple[str, str, list[str]]]:
    nodes = tf.get_default_graph().as_graph_def().node
    return [(n.name, n.op, list(n.input)) for n in nodes if n.name.startswith("save/")]


def test_round_trip_of_every_flavour(prefix: str) -> None:
    ref = tf.Variable([1.0, 2.0], name="ref")
    resource = tf.get_variable("res", initializer=np.int64([[7]]), use_resource=True)
    text = tf.Variable(["a", "b"], name="text")
    half = tf.Variable(tf.constant([1.5], tf.bfloat16), name="half")
    saver = tf.train.Saver()
    with started() as sess:
        assert saver.save(sess, prefix) == prefix
        sess.run([ref.assign([0.0, 0.0]), resource.assign([[0]]), text.assign(["", ""])])
        saver.restore(sess, prefix)
        assert sess.run(ref).tolist() == [1, 2]
        assert sess.run(resource).tolist() == [[7]]
        assert sess.run(text).tolist() == [b"a", b"b"]
        assert sess.run(half).astype(np.float32).tolist() == [1.5]
    with tf.Session() as fresh:
        saver.restore(fresh, prefix)
        assert fresh.run(ref).tolist() == [1, 2]


def test_node_names() -> None:
    tf.Variable(1.0, name="b")
    tf.Variable(2.0, name="a")
    saver = tf.train.Saver()
    assert save_nodes() == [
        ("save/filename/input", "Const", []),
        ("save/filename", "PlaceholderWithDefault", ["save/filename/input"]),
        ("save/Const", "PlaceholderWithDefault", ["save/filename"]),
        ("save/SaveV2/tensor_names", "Const", []),
        ("save/SaveV2/shape_and_slices", "Const", []),
        ("save/SaveV2", "SaveV2",
         ["save/Const", "save/SaveV2/tensor_names", "save/SaveV2/shape_and_slices", "a", "b"]),
        ("save/control_dependency", "Identity", ["save/Const", "^save/SaveV2"]),
        ("save/RestoreV2/tensor_names", "Const", []),
        ("save/RestoreV2/shape_and_slices", "Const", []),
        ("save/RestoreV2", "RestoreV2",
         ["save/Const", "save/RestoreV2/tensor_names", "save/RestoreV2/shape_and_slices"]),
        ("save/Assign", "Assign", ["a", "save/RestoreV2"]),
        ("save/Assign_1", "Assign", ["b", "save/RestoreV2:1"]),
        ("save/restore_all", "NoOp", ["^save/Assign", "^save/Assign_1"]),
    ]  # fmt: skip
    definition = saver.as_saver_def()
    assert definition.filename_tensor_name == "save/Const:0"
    assert definition.save_tensor_name == "save/control_dependency:0"
    assert definition.restore_op_name == "save/restore_all"
    assert (definition.max_to_keep, definition.version) == (5, tf.train.SaverDef.V2)
    assert tf.train.Saver().as_saver_def().restore_op_name == "save_1/restore_all"


def test_sharded(prefix: str) -> None:
    with tf.device("/cpu:0"):
        a = tf.Variable(1.0, name="a")
    b = tf.Variable([2.0], name="b")
    saver = tf.train.Saver(sharded=True)
    names = [n for n, _, _ in save_nodes()]
    assert "save/StringJoin/inputs_1" in names
    assert {"save/num_shards", "save/ShardedFilename_1", "save/MergeV2Checkpoints"} <= set(names)
    assert saver.as_saver_def().save_tensor_name == "save/Identity:0"
    with started() as sess:
        saver.save(sess, prefix, write_meta_graph=False)
        found = sorted(os.listdir(os.path.dirname(prefix)))
        assert found == ["checkpoint", "m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
        sess.run([a.assign(0.0), b.assign([0.0])])
        saver.restore(sess, prefix)
        assert sess.run([a, b[0]]) == [1.0, 2.0]


@pytest.mark.parametrize("sharded", [False, True])
def test_the_first_format(prefix: str, sharded: bool, caplog: pytest.LogCaptureFixture) -> None:
    with tf.device("/cpu:0"):
        v = tf.Variable([1.0, 2.0], name="v")
    w = tf.Variable(["a"], name="w")
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded, max_to_keep=1)
    with started() as sess:
        saver.save(sess, prefix, global_step=1, write_meta_graph=False)
        path = saver.save(sess, prefix, global_step=2, write_meta_graph=False)
        assert "deprecated" in caplog.text
        files = sorted(set(os.listdir(os.path.dirname(prefix))) - {"checkpoint"})
        if sharded:
            assert path == f"{prefix}-2-?????-of-00002"
            assert files == ["m-2-00000-of-00002", "m-2-00001-of-00002"]
        else:
            assert files == ["m-2"]
        assert tf.train.latest_checkpoint(os.path.dirname(prefix)) == path
        sess.run([v.assign([0.0, 0.0]), w.assign([""])])
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [1, 2]
        assert sess.run(w).tolist() == [b"a"]
    assert dict(tf.train.list_variables(path)) == {"v": [2], "w": [1]}


def test_partitions(prefix: str) -> None:
    parts = [
        tf.Variable(tf.fill([rows, 2], float(i)), name=f"p{i}") for i, rows in enumerate((2, 1))
    ]
    for part, first, rows in zip(parts, (0, 2), (2, 1), strict=True):
        part._set_save_slice_info(tf.Variable.SaveSliceInfo("whole", [3, 2], [first, 0], [rows, 2]))
    whole = tf.Variable(tf.zeros([3, 2]), name="w")
    saver = tf.train.Saver(parts)
    with started() as sess:
        saver.save(sess, prefix)
        assert tf.train.load_variable(prefix, "whole").tolist() == [[0, 0], [0, 0], [1, 1]]
        tf.train.Saver({"whole": whole}).restore(sess, prefix)
        assert sess.run(whole)[2].tolist() == [1, 1]
        sess.run(parts[1].assign([[5.0, 5.0]]))
        saver.restore(sess, prefix)
        assert sess.run(parts[1]).tolist() == [[1, 1]]
        tf.train.Saver({"whole": parts}).restore(sess, prefix)
    with pytest.raises(ValueError, match="Slices must all be slices"):
        tf.train.Saver({"whole": [parts[0], whole]})


# ---------------------------------------------------------------- keeping
def test_old_checkpoints_go(prefix: str) -> None:
    tf.Variable(1.0, name="v")
    step = tf.Variable(7, name="step", trainable=False)
    saver = tf.train.Saver(max_to_keep=2)
    folder = os.path.dirname(prefix)
    with started() as sess:
        for i in range(4):
            saver.save(sess, prefix, global_step=i)
        assert saver.save(sess, prefix, global_step=step) == f"{prefix}-7"
    assert [os.path.basename(p) for p in saver.last_checkpoints] == ["m-3", "m-7"]
    assert sorted(f for f in os.listdir(folder) if f.endswith(".index")) == [
        "m-3.index",
        "m-7.index",
    ]
    assert sorted(f for f in os.listdir(folder) if f.endswith(".meta")) == ["m-3.meta", "m-7.meta"]
    assert tf.train.latest_checkpoint(folder) == f"{prefix}-7"
    state = tf.train.get_checkpoint_state(folder)
    assert list(state.all_model_checkpoint_paths) == [f"{prefix}-3", f"{prefix}-7"]


def test_one_every_hour_stays(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1.0)
    now = saver._next_checkpoint_time - 3600
    clock = iter([now + 1800 * i for i in range(1, 20)])
    monkeypatch.setattr("opdock.train.saver.time.time", lambda: next(clock))
    with started() as sess:
        for i in range(6):
            saver.save(sess, prefix, global_step=i, write_meta_graph=False)
    kept = sorted(f for f in os.listdir(os.path.dirname(prefix)) if f.endswith(".index"))
    assert kept == ["m-2.index", "m-4.index", "m-5.index"]


def test_a_negative_number_of_checkpoints_is_refused() -> None:
    """TensorFlow takes it, and removes each checkpoint as soon as it has written it."""
    tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"max_to_keep must not be negative, got -1"):
        tf.train.Saver(max_to_keep=-1)


def test_all_stay(prefix: str) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=None)
    with started() as sess:
        for i in range(8):
            saver.save(sess, prefix, global_step=i, write_meta_graph=False)
    assert len([f for f in os.listdir(os.path.dirname(prefix)) if f.endswith(".index")]) == 8
    assert saver.last_checkpoints == []


def test_recovering_the_list(prefix: str) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=2)
    with started() as sess:
        paths = [saver.save(sess, prefix, global_step=i) for i in range(2)]
        again = tf.train.Saver(max_to_keep=2)
        again.recover_last_checkpoints([*paths, prefix + "-99"])
        assert again.last_checkpoints == paths
        again.save(sess, prefix, global_step=2)
    assert not tf.train.checkpoint_exists(paths[0])


def test_step_padding_and_relative_paths(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(pad_step_number=True, save_relative_paths=True)
    with started() as sess:
        os.mkdir(tmp_path / "a")
        path = saver.save(sess, str(tmp_path / "a/m"), global_step=12)
    assert path.endswith("m-00000012")
    assert 'model_checkpoint_path: "m-00000012"' in (tmp_path / "a/checkpoint").read_text()
    os.rename(tmp_path / "a", tmp_path / "b")
    assert tf.train.latest_checkpoint(str(tmp_path / "b")) == str(tmp_path / "b/m-00000012")


# ---------------------------------------------------------------- errors
def test_refusals(prefix: str) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    empty = tf.train.Saver(allow_empty=True)
    v = tf.Variable(1.0, name="v")
    twin = tf.Variable(1.0, name="w")
    for bad, error, message in [
        ([v, v], ValueError, "two variables have the same name: v"),
        ({"a": v, "b": v}, ValueError, "restored with two names"),
        ({"a": tf.constant(1.0)}, TypeError, "Not a variable"),
        ([tf.constant(1.0)], TypeError, "is not a Variable"),
        ({1: v}, TypeError, "Name is not a string"),
        (v, TypeError, "dict or a list"),
    ]:
        with pytest.raises(error, match=message):
            tf.train.Saver(bad)
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([v], defer_build=True)
    with started() as sess:
        assert empty.save(sess, prefix) is None
        empty.restore(sess, prefix)
        late = tf.train.Saver(defer_build=True)
        with pytest.raises(RuntimeError, match="build"):
            late.save(sess, prefix)
        late.build()
        saver = tf.train.Saver([v, twin])
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            saver.save(sess, prefix + "/no/such/m")
        with pytest.raises(ValueError, match="collides with"):
            saver.save(sess, os.path.dirname(prefix) + "/checkpoint")
        with pytest.raises(ValueError, match="path components"):
            saver.save(sess, prefix, latest_filename="a/b")
        with pytest.raises(TypeError, match="must be a Session"):
            saver.save("session", prefix)


def test_restore_errors(prefix: str) -> None:
    v = tf.Variable([1.0], name="v")
    w = tf.Variable([1.0, 2.0], name="w")
    n = tf.Variable([1], name="n")
    saver = tf.train.Saver([v])
    with started() as sess:
        with pytest.raises(ValueError, match="when it is None"):
            saver.restore(sess, None)
        with pytest.raises(ValueError, match="not a valid checkpoint: /nope"):
            saver.restore(sess, "/nope")
        saver.save(sess, prefix)
        for var_list, error, message in [
            ([v, w], tf.errors.NotFoundError, r"graph key that is missing[\s\S]*Key w not found"),
            ({"v": w}, tf.errors.InvalidArgumentError, "mismatch between the current graph"),
            ({"v": n}, tf.errors.InvalidArgumentError, r"mismatch[\s\S]*int32 .* float32"),
        ]:
            with pytest.raises(error, match=message):
                tf.train.Saver(var_list).restore(sess, prefix)
        data = Path(f"{prefix}.data-00000-of-00001")
        data.write_bytes(b"\xff" * data.stat().st_size)
        with pytest.raises(tf.errors.DataLossError, match="Checksum"):
            saver.restore(sess, prefix)


def test_uninitialized(prefix: str) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with tf.Session() as sess, pytest.raises(tf.errors.FailedPreconditionError, match="v"):
        saver.save(sess, prefix)
    assert os.listdir(os.path.dirname(prefix)) == []


def test_reshape(prefix: str) -> None:
    v = tf.Variable([[1.0, 2.0]], name="v")
    w = tf.Variable([0.0, 0.0], name="w")
    with started() as sess:
        tf.train.Saver([v]).save(sess, prefix)
        tf.train.Saver({"v": w}, reshape=True).restore(sess, prefix)
        assert sess.run(w).tolist() == [1, 2]


def test_own_saveables(prefix: str) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    taken = []

    class Doubled(SaveableObject):
        def __init__(self) -> None:
            super().__init__(v, [SaveSpec(v * 2.0, "", "twice")], "twice")

        def restore(self, restored_tensors, restored_shapes):
            taken.append(restored_shapes)
            return v.assign(restored_tensors[0] / 2.0)

    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled())
    saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
    with started() as sess:
        saver.save(sess, prefix)
        assert tf.train.load_variable(prefix, "twice").tolist() == [2, 4]
        sess.run(v.assign([0.0, 0.0]))
        saver.restore(sess, prefix)
        assert sess.run(v).tolist() == [1, 2]
    assert taken == [None]


# ---------------------------------------------------------------- state files
def test_state_files(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert tf.train.latest_checkpoint(folder) is None
    assert tf.train.get_checkpoint_state(folder) is None
    tf.train.update_checkpoint_state(folder, folder + "/b", [folder + "/a"])
    state = tf.train.get_checkpoint_state(folder)
    assert list(state.all_model_checkpoint_paths) == [folder + "/a", folder + "/b"]
    assert tf.train.latest_checkpoint(folder) is None  # no such files
    (tmp_path / "checkpoint").write_text("nonsense {")
    assert tf.train.get_checkpoint_state(folder) is None
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(ValueError, match="Invalid checkpoint state"):
        tf.train.get_checkpoint_state(folder)
    with pytest.raises(RuntimeError, match="conflicts"):
        tf.train.update_checkpoint_state(folder, folder + "/checkpoint")
    with pytest.raises(ValueError, match="must match checkpoint paths"):
        tf.train.update_checkpoint_state(
            folder, "a", ["a"], all_model_checkpoint_timestamps=[1.0, 2.0]
        )


def test_relative_state_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("logs")
    tf.train.update_checkpoint_state("logs", "logs/m-1")
    assert 'model_checkpoint_path: "m-1"' in Path("logs/checkpoint").read_text()
    assert tf.train.get_checkpoint_state("logs").model_checkpoint_path == "logs/m-1"


def test_meta_graph_names() -> None:
    assert management.meta_graph_filename("m-3") == "m-3.meta"
    assert management.meta_graph_filename("m-3-?????-of-00002") == "m-3.meta"


def test_looking_in(prefix: str) -> None:
    tf.Variable([[1.0, 2.0]], name="b/v")
    tf.Variable(3, name="a")
    with started() as sess:
        tf.train.Saver().save(sess, prefix)
    folder = os.path.dirname(prefix)
    assert tf.train.list_variables(folder) == [("a", []), ("b/v", [1, 2])]
    assert tf.train.load_variable(prefix, "b/v:0").tolist() == [[1, 2]]
    reader = tf.train.NewCheckpointReader(prefix)
    assert reader.has_tensor("a")
    assert not reader.has_tensor("c")
    assert reader.get_tensor("a") == 3
    assert reader.get_variable_to_dtype_map() == {"a": tf.int32, "b/v": tf.float32}
    assert b"b/v (DT_FLOAT) [1,2]" in reader.debug_string()
    with pytest.raises(tf.errors.NotFoundError, match="Key c not found"):
        reader.get_tensor("c")
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(str(Path(prefix).parent.parent / Path(prefix).parent.name / ".."))


def test_init_from_checkpoint(prefix: str) -> None:
    with tf.variable_scope("old"):
        tf.get_variable("v", initializer=[1.0, 2.0])
        tf.get_variable("w", initializer=[[3.0]])
    with started() as sess:
        tf.train.Saver().save(sess, prefix)
    with tf.Graph().as_default():
        with tf.variable_scope("new"):
            v = tf.get_variable("v", [2])
            w = tf.get_variable("w", [1, 1])
        x = tf.get_variable("x", [2])
        tf.train.init_from_checkpoint(prefix, {"old/": "new/", "old/v": x})
        with started() as sess:
            assert [a.tolist() for a in sess.run([v, w, x])] == [[1, 2], [[3]], [1, 2]]
        with pytest.raises(ValueError, match="not found"):
            tf.train.init_from_checkpoint(prefix, {"nope": x})
        with pytest.raises(ValueError, match="doesn't match"):
            tf.train.init_from_checkpoint(prefix, {"old/w": x})
        with pytest.raises(ValueError, match="scope only name"):
            tf.train.init_from_checkpoint(prefix, {"old/v": "none"})


def test_one_missing_folder_is_made(tmp_path: Path) -> None:
    v = tf.Variable([1.0], name="v")
    saver = tf.train.Saver()
    with started() as sess:
        saver.save(sess, str(tmp_path / "new" / "m"), global_step=3)
        sess.run(v.assign([0.0]))
        saver.restore(sess, tf.train.latest_checkpoint(str(tmp_path / "new")))
        assert sess.run(v).tolist() == [1.0]
        (tmp_path / "file").write_text("no folder")
        for place in ("a/b/m", "file/m"):
            with pytest.raises(ValueError, match=f"Parent directory of .*{place} doesn't exist"):
                saver.save(sess, str(tmp_path / place))
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("sharded", [False, True])
def test_host_memory_for_variables_of_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharded: bool
) -> None:
    class Held(np.ndarray):
        """An array whose end is told; a view keeps it."""

    held: set[int] = set()
    most = 0

    def noted(array: Any) -> Any:
        nonlocal most
        found = np.array(array).view(Held)
        if found.ndim:
            held.add(id(found))
            most = max(most, len(held))
            weakref.finalize(found, held.discard, id(found))
        return found

    for kind, name in ((EchoDevice, "download"), (Restoration, "read")):
        inner = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda self, x, inner=inner: noted(inner(self, x)))
    with tf.device("/device:ECHO:0"):
        # Of a size that is let go of at once.
        variables = [tf.get_variable(f"v{i}", [1 << 15], use_resource=i % 2 == 0) for i in range(6)]
    saver = tf.train.Saver(sharded=sharded)
    with started() as sess:
        path = saver.save(sess, str(tmp_path / "model"))
        assert most == 1
        values = [np.array(value) for value in sess.run(variables)]
        sess.run([v.assign(tf.zeros_like(v)) for v in variables])
        assert not held
        most = 0
        saver.restore(sess, path)
        assert most == 1
        for found, value in zip(sess.run(variables), values, strict=True):
            np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("sharded", [False, True])
def test_of_a_save_that_a_device_fails_nothing_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sharded: bool
) -> None:
    with tf.device("/device:ECHO:0"):
        for i in range(3):
            tf.get_variable(f"v{i}", [i + 1])
    inner, broken = EchoDevice.download, False

    def download(self: EchoDevice, buffer: Any) -> Any:
        if broken and buffer.shape == (3,):
            raise RuntimeError("the third is not to be had")
        return inner(self, buffer)

    monkeypatch.setattr(EchoDevice, "download", download)
    saver = tf.train.Saver(sharded=sharded)
    with started() as sess:
        path = saver.save(sess, str(tmp_path / "model"))
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        broken = True
        with pytest.raises(tf.errors.InternalError, match="is not to be had"):
            saver.save(sess, path)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
