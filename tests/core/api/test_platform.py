"""tf.app, tf.flags, tf.logging, tf.gfile, tf.compat, tf.nest and tf.contrib.util."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import opdock as tf


@pytest.fixture
def flags():
    """The process's flags, without those of other programs and tests."""
    before = {tf.flags.FLAGS[name].name: tf.flags.FLAGS[name] for name in tf.flags.FLAGS}
    for name in list(tf.flags.FLAGS):
        delattr(tf.flags.FLAGS, name)
    yield tf.flags.FLAGS
    for name in list(tf.flags.FLAGS):
        delattr(tf.flags.FLAGS, name)
    for name, flag in before.items():
        tf.flags.FLAGS[name] = flag
    tf.flags.FLAGS.unparse_flags()


def test_flags_of_every_type(flags):
    tf.flags.DEFINE_string("name", "x", "a name")
    tf.flags.DEFINE_integer("steps", 10, "100% of them")
    tf.flags.DEFINE_float("rate", 0.1, "")
    tf.flags.DEFINE_boolean("fast", False, "")
    tf.flags.DEFINE_bool("log", True, "")
    tf.flags.DEFINE_list("sizes", ["1"], "")
    tf.flags.DEFINE_enum("mode", "train", ["train", "eval"], "")
    tf.flags.DEFINE_multi_integer("at", None, "")
    rest = flags(
        ["prog", "--steps=0x20", "-rate", "2", "--fast", "file", "--nolog", "--sizes=2,3",
         "--at=1", "--at=2",
         "--", "--steps=1"]
    )  # fmt: skip
    assert rest == ["prog", "file", "--steps=1"]
    assert flags.flag_values_dict() == {
        "name": "x", "steps": 32, "rate": 2.0, "fast": True, "log": False, "sizes": ["2", "3"],
        "mode": "train", "at": [1, 2],
    }  # fmt: skip
    flags.name = "y"
    assert flags.name == "y" and "steps" in flags and flags["rate"].default == 0.1


def test_bad_flags(flags):
    tf.flags.DEFINE_integer("n", 1, "")
    tf.flags.DEFINE_enum("mode", "a", ["a", "b"], "")
    with pytest.raises(tf.flags.DuplicateFlagError):
        tf.flags.DEFINE_integer("n", 2, "")
    with pytest.raises(tf.flags.IllegalFlagValueError, match="--n=x"):
        flags(["p", "--n=x"])
    with pytest.raises(tf.flags.IllegalFlagValueError, match="<a|b>"):
        flags(["p", "--mode", "c"])
    with pytest.raises(tf.flags.UnrecognizedFlagError, match="'other'"):
        flags(["p", "--other=1"])
    assert flags(["p", "--other=1"], known_only=True) == ["p", "--other=1"]
    with pytest.raises(AttributeError, match="zip"):
        _ = flags.zip
    tf.flags.DEFINE_string("must", None, "")
    tf.flags.mark_flag_as_required("must")
    with pytest.raises(tf.flags.IllegalFlagValueError, match="--must"):
        flags(["p"])


def test_flags_are_those_of_abseil_and_parse_when_read(flags, monkeypatch):
    from absl import flags as abseil

    tf.flags.DEFINE_integer(flag_name="old", default_value=2, docstring="old names")
    abseil.DEFINE_string("theirs", "x", "")
    monkeypatch.setattr(sys, "argv", ["p", "--old=3", "--theirs=y"])
    with pytest.raises(tf.flags.UnparsedFlagAccessError):
        _ = abseil.FLAGS.old
    assert (tf.flags.FLAGS.old, tf.flags.FLAGS.theirs, abseil.FLAGS.old) == (3, "y", 3)


def test_a_program_may_have_a_flag_of_abseils_own_name(tmp_path):
    script = tmp_path / "prog.py"
    script.write_text(
        "import opdock as tf\n"
        "tf.flags.DEFINE_string('log_dir', 'here', 'where')\n"
        "tf.flags.DEFINE_boolean('logtostderr', True, 'whether')\n"
        "def main(_):\n    print(tf.flags.FLAGS.log_dir, tf.flags.FLAGS.logtostderr)\n"
        "tf.app.run()\n"
    )
    command = [sys.executable, script, "--log_dir=there"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "there True\n", done.stderr


def test_app_run(tmp_path):
    script = tmp_path / "prog.py"
    script.write_text(
        "import opdock as tf\n"
        "tf.app.flags.DEFINE_integer('n', 3, 'number')\n"
        "FLAGS = tf.app.flags.FLAGS\n"
        "def main(argv):\n    print(FLAGS.n, argv[1:])\n    return 5\n"
        "if __name__ == '__main__':\n    tf.app.run()\n"
    )
    done = subprocess.run(
        [sys.executable, script, "--n=7", "x", "--odd=1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5 and done.stdout == "7 ['x', '--odd=1']\n", done.stderr
    done = subprocess.run(
        [sys.executable, script, "--n=q"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "Flags parsing error" in done.stderr
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "--n" in done.stdout  # Abseil's status


def test_logging(caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    assert tf.logging.get_verbosity() == tf.logging.INFO == logging.INFO
    with caplog.at_level(logging.INFO, "tensorflow"):
        tf.logging.info("step %d", 3)
        tf.logging.debug("unseen")
        tf.logging.warn("careful")
        tf.logging.TaskLevelStatusMessage("of the task")
        for i in range(4):
            tf.logging.log_every_n(tf.logging.ERROR, "every %d", 2, i)
            tf.logging.log_first_n(tf.logging.INFO, "first %d", 1, i)
    assert [r.getMessage() for r in caplog.records] == [
        "step 3",
        "careful",
        "of the task",
        "every 0",
        "first 0",
        "every 2",
    ]
    tf.logging.set_verbosity(tf.logging.WARN)


def test_gfile(tmp_path):
    root = str(tmp_path / "a")
    path = root + "/b/c.txt"
    tf.gfile.MakeDirs(root + "/b")
    with tf.gfile.Open(path, "w") as f:
        f.write("one\ntwo\n")
    assert tf.gfile.Exists(path) and tf.gfile.IsDirectory(root) and not tf.gfile.IsDirectory(path)
    with tf.gfile.GFile(path) as f:
        assert f.readline() == "one\n" and list(f) == ["two\n"] and f.size() == 8
        f.seek(4)
        assert f.read(3) == "two" and f.tell() == 7
    assert tf.gfile.FastGFile(path, "rb").read() == b"one\ntwo\n"
    tf.gfile.Copy(path, root + "/d.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.Copy(path, root + "/d.txt")
    tf.gfile.Copy(path, root + "/d.txt", overwrite=True)
    assert tf.gfile.ListDirectory(root) == ["b", "d.txt"]
    assert tf.gfile.Glob(root + "/*.txt") == [root + "/d.txt"]
    assert list(tf.gfile.Walk(root)) == [(root, ["b"], ["d.txt"]), (root + "/b", [], ["c.txt"])]
    assert tf.gfile.Stat(path).length == 8
    tf.gfile.Rename(root + "/d.txt", root + "/e.txt")
    tf.gfile.Remove(root + "/e.txt")
    tf.gfile.DeleteRecursively(root)
    for use in (
        lambda: tf.gfile.GFile(path).read(), lambda: tf.gfile.Remove(path),
        lambda: tf.gfile.Stat(path),
        lambda: tf.gfile.ListDirectory(root), lambda: tf.gfile.DeleteRecursively(root),
    ):  # fmt: skip
        with pytest.raises(tf.errors.NotFoundError):
            use()
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.gfile.GFile(path, "x")
    with pytest.raises(tf.errors.PermissionDeniedError):
        tf.gfile.GFile(str(tmp_path / "w"), "w").read()


def test_compat_nest_and_contrib():
    from opdock.compat import v1

    assert v1.constant is tf.constant and tf.compat.v1.Session is tf.Session
    v1.disable_v2_behavior()
    assert tf.executing_eagerly() is False
    assert tf.compat.as_bytes("é") == "é".encode() and tf.compat.as_text(b"x") == "x"
    assert tf.compat.as_str_any(3) == "3" and tf.compat.as_str(b"y") == "y"
    with pytest.raises(TypeError):
        tf.compat.as_bytes(3)
    assert tf.nest.map_structure(lambda v: v + 1, {"a": (1, [2])}) == {"a": (2, [3])}
    assert tf.contrib.util.constant_value(tf.constant(3)) == 3
    assert tf.contrib.util.make_ndarray(tf.contrib.util.make_tensor_proto([1, 2])).tolist() == [
        1,
        2,
    ]
    assert np.isscalar(3)
    with pytest.raises(tf.errors.UnimplementedError, match="opdock_kernels"):
        tf.load_op_library("x.so")
    with pytest.raises(tf.errors.UnimplementedError, match="opened by fsspec"):
        tf.load_file_system_library("x.so")
    assert tf.contrib.eager.enable_eager_execution is tf.enable_eager_execution
