"""`opdock records`: what it says of files, and what it makes of images."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import opdock as tf
from opdock.cli.main import main


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["records", *map(str, words)], catch_exceptions=False)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Examples in a compressed file, and other records in a plain one."""
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.5, 2.0, 3.0])
    example.features.feature["word"].bytes_list.value.append(b"hello")
    paths = tmp_path / "examples", tmp_path / "others"
    with tf.python_io.TFRecordWriter(paths[0], "ZLIB") as writer:
        for _ in range(3):
            writer.write(example.SerializeToString())
    with tf.python_io.TFRecordWriter(paths[1]) as writer:
        writer.write(b"\xff" * 100)
    return paths


def test_files_are_counted_listed_and_shown(files: tuple[Path, Path]) -> None:
    assert run("count", *files).output == f"3\t{files[0]}\n1\t{files[1]}\n4\ttotal\n"
    table = run("list", *files).output
    for text in ("ZLIB", "none", "Example", "100 bytes"):
        assert text in table
    shown = run("show", files[0], "-n", 2, "--skip", 1, "--values", 2).output
    assert shown.splitlines()[1:3] == ["  word: bytes [b'hello']", "  x: float [1.5, 2, 1 more]"]
    assert "record 2" in shown and "record 0" not in shown
    assert run("show", files[1]).output.startswith("record 0: 100 bytes\n  b'\\xff")


def test_damage_is_told_with_file_and_place(files: tuple[Path, Path], tmp_path: Path) -> None:
    good = run("verify", *files)
    assert (good.exit_code, good.output.count("no damage")) == (0, 2)
    data = bytearray(files[1].read_bytes())
    data[20] ^= 1
    files[1].write_bytes(data)
    found = run("verify", files[1], tmp_path / "none", files[0])
    assert found.exit_code == 1
    assert f"DataLossError: corrupted record at 0 in {files[1]}" in found.output
    assert "NotFoundError" in found.output
    assert f"{files[0]}: 3 records" in found.output, "it goes on with the other files"
    files[1].write_bytes(data[:50])
    assert f"truncated record at 0 in {files[1]}" in run("index", files[1]).output


@pytest.mark.parametrize("command", ["list", "count", "verify", "index"])
def test_json_tells_of_every_file(tmp_path: Path, command: str) -> None:
    damaged, empty = tmp_path / "damaged", tmp_path / "empty"
    with tf.python_io.TFRecordWriter(damaged) as writer:
        for _ in range(3):
            writer.write(b"a record")
    data = damaged.read_bytes()[:-3]
    damaged.write_bytes(data)
    empty.write_bytes(b"")
    found = run(command, damaged, empty, tmp_path / "none", "--json")
    assert found.exit_code == 1
    rows = json.loads(found.stdout)
    assert [row["file"] for row in rows] == [str(damaged), str(empty), str(tmp_path / "none")]
    assert rows[1]["error"] is None and rows[1]["records"] == 0
    assert rows[0]["error"].startswith("DataLossError: ") and str(damaged) in rows[0]["error"]
    assert rows[2]["error"].startswith("NotFoundError: ") and rows[2]["records"] is None
    if command == "verify":
        assert rows[0]["records"] == 2 and rows[0]["bytes"] == (len(data) + 3) * 2 // 3
    if command == "list":
        assert rows[0]["first"] == "8 bytes"


def test_a_compressed_file_that_was_cut_off(files: tuple[Path, Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(files[0].read_bytes())[:-9])
    (row,) = json.loads(run("verify", cut, "--json").stdout)
    assert row["error"].startswith("DataLossError: ")
    (row,) = json.loads(run("list", cut, "--json").stdout)
    assert row["compression"] == "GZIP" and row["records"] is None


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
@pytest.mark.parametrize("cut", [1, 3, 4])
def test_a_compressed_file_without_its_checksum(tmp_path: Path, kind: str, cut: int) -> None:
    path = tmp_path / "data"
    with tf.python_io.TFRecordWriter(path, kind) as writer:
        writer.write(b"a record" * 100)
    assert run("verify", path).output == f"{path}: 1 records, 816 bytes, no damage\n"
    path.write_bytes(path.read_bytes()[:-cut])
    found = run("verify", path)
    assert found.exit_code == 1
    assert f"{kind} stream without its end, truncated at 816 in {path}" in found.output
    assert run("count", path).output == f"1\t{path}\n", "as TensorFlow reads it"


def test_an_index_is_written_beside_the_file(files: tuple[Path, Path]) -> None:
    assert run("index", files[1]).exit_code == 0
    assert Path(f"{files[1]}.idx").read_text() == "0 116\n"


@pytest.mark.parametrize("compression", ["none", "GZIP"])
def test_images_become_examples(tmp_path: Path, compression: str) -> None:
    folder = tmp_path / "in"
    for i, name in enumerate(("a/0.png", "a/1.jpg", "b/2.png", "b/deep/3.gif", "b/4.bmp")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4 + i, 3)).save(path)
    (folder / "a/notes.txt").write_text("no image")
    out = tmp_path / "out"
    done = run("convert", folder, out, "--shards", 2, "--compression", compression)
    assert done.exit_code == 0
    assert done.output.endswith("5 images of 2 classes\n")
    assert (tmp_path / "out-labels.txt").read_text() == "a\nb\n"
    kind = "" if compression == "none" else compression
    found = {}
    for shard in range(2):
        for record in tf.python_io.tf_record_iterator(f"{out}-{shard:05d}-of-00002", kind):
            feature = tf.train.Example.FromString(record).features.feature
            name = feature["image/filename"].bytes_list.value[0].decode()
            assert feature["image/encoded"].bytes_list.value[0] == (folder / name).read_bytes()
            found[name] = [
                feature[f"image/{key}"].int64_list.value[0]
                for key in ("class/label", "height", "width", "channels")
            ]
    assert found == {
        "a/0.png": [0, 3, 4, 3], "a/1.jpg": [0, 3, 5, 3], "b/2.png": [1, 3, 6, 3],
        "b/deep/3.gif": [1, 3, 7, 3], "b/4.bmp": [1, 3, 8, 3],
    }  # fmt: skip


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    assert "holds no JPEG, PNG, GIF or BMP images" in run("convert", tmp_path, "x").output
    (tmp_path / "bad.png").write_bytes(b"no image")
    found = run("convert", tmp_path, tmp_path / "out")
    assert found.exit_code == 2
    assert f"records convert: {tmp_path / 'bad.png'}: Expected image" in found.output
    assert not list(tmp_path.glob("out*")), "nothing is left of a file that was not finished"
