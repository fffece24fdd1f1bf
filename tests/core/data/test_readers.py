"""Datasets of files."""

from __future__ import annotations

import gzip
import sqlite3

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from opdock.data.experimental import CsvDataset, SqlDataset, make_csv_dataset


def written(path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def records(path, values, kind=None) -> str:
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:
        for value in values:
            writer.write(value)
    return str(path)


def test_lines(walk, tmp_path):
    a = written(tmp_path / "a", b"one\r\ntwo\n\nlast")
    b = written(tmp_path / "b.gz", gzip.compress(b"zipped\n"))
    empty = written(tmp_path / "empty", b"")
    assert walk(TextLineDataset([a, empty])) == [b"one", b"two", b"", b"last"]
    assert walk(TextLineDataset(b, "GZIP")) == [b"zipped"]
    with pytest.raises(tf.errors.NotFoundError, match="nowhere; No such file"):
        walk(TextLineDataset(str(tmp_path / "nowhere")))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported compression_type"):
        walk(TextLineDataset(a, "ZIP"))


def test_records_and_damage(walk, tmp_path):
    values = [b"first", b"", b"x" * 100]
    path = records(tmp_path / "r", values)
    assert walk(TFRecordDataset(path)) == values
    zipped = records(tmp_path / "z", values, tf.python_io.TFRecordCompressionType.ZLIB)
    assert walk(TFRecordDataset(zipped, "ZLIB")) == values
    data = (tmp_path / "r").read_bytes()
    cut = written(tmp_path / "cut", data[:-3])
    with pytest.raises(tf.errors.DataLossError, match="truncated record"):
        walk(TFRecordDataset(cut))
    flipped = written(tmp_path / "flipped", data[:14] + b"!" + data[15:])
    with pytest.raises(tf.errors.DataLossError, match=r"corrupted record at 0.*flipped"):
        walk(TFRecordDataset(flipped))
    # What cannot be read is left out, and the next file is read.
    both = TFRecordDataset([cut, path]).apply(tf.data.experimental.ignore_errors())
    assert walk(both) == [b"first", b"", *values]


@pytest.mark.parametrize("size", [2, 4])
def test_batches_of_damaged_records(size, walk, tmp_path):
    """Whole batches before the damage; the next file after it."""
    values = [b"%d" % i for i in range(6)]
    path = records(tmp_path / "r", values)
    data = (tmp_path / "r").read_bytes()
    cut = written(tmp_path / "cut", data[:-3])
    iterator = TFRecordDataset([cut, path]).batch(size).make_initializable_iterator()
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        session.run(iterator.initializer)
        while True:
            try:
                found.append(session.run(element).tolist())
            except tf.errors.DataLossError as e:
                assert "truncated record at 85 in " in e.message
                found.append([])
            except tf.errors.OutOfRangeError:
                break
    before = [values[i : i + size] for i in range(0, 6 - size, size)]
    after = [values[i : i + size] for i in range(0, 6, size)]
    assert found == [*before, [], *after]


def test_damage_that_comes_next_is_saved(resumed, tmp_path):
    path = records(tmp_path / "r", [b"%d" % i for i in range(6)])
    cut = written(tmp_path / "cut", (tmp_path / "r").read_bytes()[:-3])

    def make():
        kept = TFRecordDataset([cut, path]).map(lambda s: s + "!").batch(4)
        return kept.apply(tf.data.experimental.ignore_errors()).unbatch()

    resumed(make, tmp_path, (0, 2, 4, 6))


def test_records_of_one_length(walk, tmp_path):
    path = written(tmp_path / "f", b"H" + b"aabbcc" + b"FF")
    made = FixedLengthRecordDataset(path, 2, header_bytes=1, footer_bytes=2)
    assert walk(made) == [b"aa", b"bb", b"cc"]
    zipped = written(tmp_path / "g", gzip.compress(b"H" + b"aabbcc" + b"FF"))
    made = FixedLengthRecordDataset(zipped, 2, 1, 2, compression_type="GZIP")
    assert walk(made) == [b"aa", b"bb", b"cc"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"body length 6 bytes.*\(4 bytes\)"):
        walk(FixedLengthRecordDataset(path, 4, 1, 2))


def test_files_are_listed_and_read_in_turn(walk, tmp_path):
    for name in "cab":
        written(tmp_path / f"{name}.txt", f"{name}1\n{name}2\n".encode())
    names = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert [n.decode()[-5] for n in walk(names)] == ["a", "b", "c"]
    assert walk(TextLineDataset(names, num_parallel_reads=3)) == [
        b"a1", b"b1", b"c1", b"a2", b"b2", b"c2"
    ]  # fmt: skip
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        walk(Dataset.list_files(str(tmp_path / "*.none")))


def test_rows_of_csv(walk, tmp_path):
    text = b'a,b,c\r\n1,"x,""y""",2.5\n,"two\nlines",\n'
    path = written(tmp_path / "t.csv", text)
    rows = walk(CsvDataset(path, [[7], tf.string, [0.5]], header=True))
    assert [(int(a), b, float(c)) for a, b, c in rows] == [
        (1, b'x,"y"', 2.5),
        (7, b"two\nlines", 0.5),
    ]
    chosen = CsvDataset(path, [tf.string], header=True, select_cols=[1])
    assert [b for (b,) in walk(chosen)] == [b'x,"y"', b"two\nlines"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"1,2\n", "Expect 3 fields but have 2 in record"),
        (b"1,2,3,4\n", "Expect 3 fields but have more in record"),
        (b"x,2,3\n", "Field 0 in record is not a valid int32: x"),
        (b",2,3\n", "Field 0 is required but missing in record!"),
        (b'1,2"3",4\n', "Unquoted fields cannot have quotes inside"),
        (b'1,"2"3,4\n', "Quote inside a string has to be escaped by another quote"),
        (b'1,"2\n', "Reached end of file without closing quoted field"),
    ],
)
def test_rows_that_cannot_be_read_say_why(line, told, walk, tmp_path):
    path = written(tmp_path / "bad.csv", line)
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        walk(CsvDataset(path, [tf.int32, tf.string, tf.string]))


def test_rows_that_cannot_be_read_say_where(walk, tmp_path):
    text = b'a,b\n1,"x\ny"\n2,z\nthree,z\n4,"un\nclosed'
    path = written(tmp_path / "bad.csv", text)
    element = CsvDataset(path, [tf.int32, tf.string], header=True).make_one_shot_iterator()
    following, found = element.get_next(), []
    with tf.Session() as session:
        for _ in range(4):
            try:
                found.append(int(session.run(following)[0]))
            except tf.errors.InvalidArgumentError as e:
                found.append(e.message.partition("(")[2].partition(")")[0])
    assert found == [1, 2, f"line 5 of {path}", f"line 6 of {path}"]


def test_whole_tables(walk, tmp_path):
    path = written(tmp_path / "t.csv", b"n,x,s\n1,1.5,a\n2,2.5,b\n3,3,\n")
    made = make_csv_dataset(path, 2, label_name="s", num_epochs=1, shuffle=False)
    (features, label), (rest, _) = walk(made)
    assert features["n"].dtype == np.int32 and features["x"].tolist() == [1.5, 2.5]
    assert label.tolist() == [b"a", b"b"] and rest["n"].tolist() == [3]
    with pytest.raises(ValueError, match="must be one of the columns"):
        make_csv_dataset(path, 2, label_name="z")


def test_features_of_examples(walk, tmp_path):
    def example(i):
        feature = {"i": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    path = records(tmp_path / "e", [example(i) for i in range(3)])
    features = {"i": tf.FixedLenFeature([], tf.int64)}
    made = tf.data.experimental.make_batched_features_dataset(
        path, 2, features, num_epochs=1, shuffle=False
    )
    assert [b["i"].tolist() for b in walk(made)] == [[0, 1], [2]]


def test_rows_of_a_database(walk, tmp_path):
    path = str(tmp_path / "d.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (n integer, s text)")
        connection.execute("insert into t values (1, 'a'), (2, null)")
    rows = SqlDataset("sqlite", path, "select s, n from t order by n", (tf.string, tf.int32))
    assert [(s, int(n)) for s, n in walk(rows)] == [(b"a", 1), (b"", 2)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must match the number"):
        walk(SqlDataset("sqlite", path, "select s from t", (tf.string, tf.int32)))


STORED = [1, "12abc", "abc", " -7", "1e3x", 2.7, 1e300, -1e300, None, b"5", b"\xff", 2**40, ".5"]
STORED += ["9" * 5000, float("inf")]
READ = {
    tf.int32: [1, 12, 0, -7, 1, 2, -1, 0, 0, 5, 0, 0, 0, -1, -1],
    tf.int64: [1, 12, 0, -7, 1, 2, 2**63 - 1, -(2**63), 0, 5, 0, 2**40, 0, 2**63 - 1, 2**63 - 1],
    tf.float64: [1, 12, 0, -7, 1e3, 2.7, 1e300, -1e300, 0, 5, 0, 2**40, 0.5, np.inf, np.inf],
    tf.string: [
        b"1", b"12abc", b"abc", b" -7", b"1e3x", b"2.7", b"1.0e+300", b"-1.0e+300", b"", b"5",
        b"\xff", b"1099511627776", b".5", b"9" * 5000, b"Inf",
    ],
}  # fmt: skip
"""As TensorFlow reads these values."""


def test_values_of_a_database_by_the_conversions_of_sqlite(walk, tmp_path):
    path = str(tmp_path / "d.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (v)")
        connection.executemany("insert into t values (?)", [(v,) for v in STORED])
    for dtype, expected in READ.items():
        rows = walk(SqlDataset("sqlite", path, "select v from t", (dtype,)))
        assert [v.item() if isinstance(v, np.generic) else v for (v,) in rows] == expected


@pytest.mark.parametrize(
    ("content", "query", "error"),
    [
        (b"no database" * 20, "select 1 from sqlite_master", "InvalidArgumentError"),
        (None, "select v from t", "UnknownError"),
        (None, "no query", "UnknownError"),
    ],
)
def test_what_is_no_database_or_no_query(walk, tmp_path, content, query, error):
    path = tmp_path / "d.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(getattr(tf.errors, error), match=f"Failed to read the database {path}"):
        walk(SqlDataset("sqlite", str(path), query, (tf.int32,)))


def test_a_cache_in_a_file(walk, tmp_path):
    name = str(tmp_path / "cache")
    made = []

    def make(x):
        made.append(int(x))
        return x

    dataset = Dataset.range(3).map(lambda x: tf.py_func(make, [x], tf.int64)).cache(name)
    assert [int(v) for v in walk(dataset.repeat(2))] == [0, 1, 2] * 2
    assert [int(v) for v in walk(dataset)] == [0, 1, 2]
    assert made == [0, 1, 2]


def test_a_dataset_is_written_as_records(tmp_path):
    path = str(tmp_path / "out")
    dataset = Dataset.from_tensor_slices(["a", "b"])
    with tf.Session() as session:
        session.run(tf.data.experimental.TFRecordWriter(path).write(dataset))
    assert list(tf.python_io.tf_record_iterator(path)) == [b"a", b"b"]
    with pytest.raises(TypeError, match="must produce scalar"):
        tf.data.experimental.TFRecordWriter(path).write(Dataset.range(3))


def test_readers_of_queues_and_defaults_of_more_than_a_value_are_refused(tmp_path):
    path = str(tmp_path / "a")
    (tmp_path / "a").write_text("1\n")
    with pytest.raises(TypeError, match="must return a `Dataset` object"):
        tf.data.experimental.make_batched_features_dataset(
            path, 2, {"a": tf.FixedLenFeature([], tf.int64)}, reader=tf.TFRecordReader
        )
    with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
        CsvDataset(path, [tf.constant([[0]])])
    with pytest.raises(ValueError, match="length-0 or length-1 vector, or a scalar"):
        CsvDataset(path, [tf.constant([0, 1])])
