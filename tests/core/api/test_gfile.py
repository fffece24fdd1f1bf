"""`tf.gfile` on the machine's files and on a file system of fsspec's."""

from __future__ import annotations

import pytest

import opdock as tf


@pytest.fixture(params=["local", "memory"])
def root(request, tmp_path):
    if request.param == "local":
        return str(tmp_path)
    pytest.importorskip("fsspec", reason="fsspec is optional: without it paths have no schemes")
    return f"memory://{tmp_path.name}"


def test_files_are_written_read_and_found(root):
    tf.gfile.MakeDirs(f"{root}/d/e")
    with tf.gfile.GFile(f"{root}/d/f.txt", "w") as file:
        file.write("one\ntwo\n")
    assert tf.gfile.GFile(f"{root}/d/f.txt").readlines() == ["one\n", "two\n"]
    assert tf.gfile.GFile(f"{root}/d/f.txt", "rb").read(3) == b"one"
    assert tf.gfile.Stat(f"{root}/d/f.txt").length == 8
    assert tf.gfile.ListDirectory(f"{root}/d") == ["e", "f.txt"]
    assert len(tf.gfile.Glob(f"{root}/d/*.txt")) == 1
    tf.gfile.Copy(f"{root}/d/f.txt", f"{root}/d/g.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.Copy(f"{root}/d/f.txt", f"{root}/d/g.txt")
    tf.gfile.Remove(f"{root}/d/f.txt")
    assert not tf.gfile.Exists(f"{root}/d/f.txt")
    with tf.Session() as sess:
        assert sess.run(tf.read_file(f"{root}/d/g.txt")) == b"one\ntwo\n"
    tf.gfile.DeleteRecursively(f"{root}/d")
    assert not tf.io.gfile.isdir(f"{root}/d")


def test_reading_and_writing_have_places_of_their_own(tmp_path):
    with tf.gfile.GFile(str(tmp_path / "f"), "w+") as file:
        file.write("abc")
        assert file.read(2) == "ab"
        file.write("def")
        assert file.read() == "cdef"


def test_an_unknown_scheme_is_told():
    with pytest.raises(tf.errors.UnimplementedError, match="File system scheme 'nosuch'"):
        tf.gfile.Exists("nosuch://x")


def test_modes_are_checked(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not 'r' or 'w' or 'a'"):
        tf.gfile.GFile("x", "q")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for writing"):
        tf.gfile.GFile(str(tmp_path / "f")).write("a")
