"""RecordInput: each record once a turn, in an order that the seed decides."""

from __future__ import annotations

from pathlib import Path

import pytest

import opdock as tf
from opdock.ops.composed.record_input import RecordInput


def write(folder: Path, files: int, each: int, kind: str = "") -> list[bytes]:
    written = []
    for i in range(files):
        with tf.python_io.TFRecordWriter(str(folder / f"r.{i:02d}"), kind) as writer:
            for j in range(each):
                written.append(b"%d" % (i * each + j))
                writer.write(written[-1])
    return written


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_each_record_comes_once_a_turn_and_the_seed_decides_when(tmp_path: Path, kind: str) -> None:
    written = write(tmp_path, 7, 20, kind)
    orders = []
    for seed in (1, 1, 2):
        records = RecordInput(
            f"{tmp_path}/r.0*,{tmp_path}/none*", batch_size=7, batches=2, buffer_size=30,
            parallelism=3, shift_ratio=0.3, seed=seed, compression_type=kind,
        ).get_yield_op()  # fmt: skip
        flat = []
        with tf.Session() as sess:
            for _ in range(2):
                batches = [batch for _ in range(10) for batch in sess.run(records)]
                flat.append([record for batch in batches for record in batch])
        assert sorted(flat[0]) == sorted(flat[1]) == sorted(written)
        assert flat[0] != flat[1]
        orders.append(flat)
    assert orders[0] == orders[1] != orders[2]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with tf.Session() as sess:
        none = RecordInput(f"{tmp_path}/none*").get_yield_op()
        for _ in range(2):
            with pytest.raises(tf.errors.NotFoundError, match="Found no files at .*none"):
                sess.run(none)
        (tmp_path / "empty").write_bytes(b"")
        with pytest.raises(tf.errors.OutOfRangeError, match="hold no records"):
            sess.run(RecordInput(f"{tmp_path}/empty").get_yield_op())
        (tmp_path / "bad").write_bytes(b"no records at all")
        with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0 in .*bad"):
            sess.run(RecordInput(f"{tmp_path}/bad").get_yield_op())
    with pytest.raises(ValueError, match="LZ4"):
        RecordInput("x", compression_type="LZ4")
