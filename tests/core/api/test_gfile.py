"""`tf.gfile` on the machine's files and on a file system of fsspec's."""

from __future__ import annotations

import os
import zipfile

import pytest

import opdock as tf


@pytest.fixture(params=["local", "memory"])
def root(request, tmp_path):
    if request.param == "local":
        return str(tmp_path)
    pytest.importorskip("fsspec", reason="fsspec is optional: without it paths have no schemes")
    return f"memory://{tmp_path.name}"


def test_the_folder_of_a_name_without_one_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tf.gfile.MakeDirs(os.path.dirname("model.h5"))
    tf.io.gfile.makedirs("")
    assert not list(tmp_path.iterdir())


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


def test_what_an_archive_holds_is_read_where_it_is(tmp_path):
    pytest.importorskip("fsspec", reason="fsspec is optional: without it paths have no schemes")
    archive = tmp_path / "a.zip"
    records = tmp_path / "r"
    with tf.python_io.TFRecordWriter(str(records), "GZIP") as writer:
        writer.write(b"one")
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("d/f.txt", "one\ntwo\n")
        made.write(records, "d/r")
    within = f"::{archive}"
    assert tf.gfile.Exists(f"zip://d/f.txt{within}")
    assert not tf.gfile.Exists(f"zip://d/none{within}")
    assert tf.gfile.ListDirectory(f"zip://d{within}") == ["f.txt", "r"]
    assert tf.gfile.GFile(f"zip://d/f.txt{within}").readlines() == ["one\n", "two\n"]
    (found,) = tf.gfile.Glob(f"zip://d/*.txt{within}")
    assert tf.gfile.Stat(found).length == 8
    assert list(tf.python_io.tf_record_iterator(f"zip://d/r{within}", "GZIP")) == [b"one"]
    queue = tf.FIFOQueue(2, tf.string, shapes=[[]])
    _, line = tf.TextLineReader(skip_header_lines=1).read(queue)
    with tf.Session() as sess:
        sess.run(queue.enqueue(found))
        assert sess.run(line) == b"two"
    with pytest.raises(tf.errors.NotFoundError, match="none"):
        tf.gfile.GFile(f"zip://d/none{within}").read()
    with pytest.raises(tf.errors.NotFoundError, match="none.zip"):
        tf.gfile.Exists(f"zip://d/f.txt::{tmp_path}/none.zip")


def test_records_are_written_where_a_scheme_leads():
    pytest.importorskip("fsspec", reason="fsspec is optional: without it paths have no schemes")
    for kind in ("", "ZLIB"):
        with tf.python_io.TFRecordWriter("memory://records/r", kind) as writer:
            writer.write(b"one")
        assert list(tf.python_io.tf_record_iterator("memory://records/r", kind)) == [b"one"]


def test_an_unknown_scheme_is_told():
    with pytest.raises(tf.errors.UnimplementedError, match="File system scheme 'nosuch'"):
        tf.gfile.Exists("nosuch://x")


def test_modes_are_checked(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not 'r' or 'w' or 'a'"):
        tf.gfile.GFile("x", "q")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for writing"):
        tf.gfile.GFile(str(tmp_path / "f")).write("a")


def test_bytes_are_written_as_they_are_in_text_mode_too(tmp_path):
    with tf.gfile.GFile(tmp_path / "a", "w") as file:
        file.write(b"\xbd\x00")
        file.write("é")
        assert file.tell() == 4
    assert (tmp_path / "a").read_bytes() == b"\xbd\x00\xc3\xa9"


def test_a_copy_says_which_path_is_missing(tmp_path):
    there, missing = tmp_path / "f.txt", tmp_path / "no/g.txt"
    there.write_text("f")
    with pytest.raises(tf.errors.NotFoundError, match=rf"^{missing}; No such file"):
        tf.gfile.Copy(str(there), str(missing))
    with pytest.raises(tf.errors.NotFoundError, match=rf"^{missing}; No such file"):
        tf.gfile.Copy(str(missing), str(there), overwrite=True)
