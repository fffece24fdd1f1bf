"""Hostile checkpoints of both formats, and object graphs in them."""

from __future__ import annotations

import io
import struct
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import safetensors.numpy

import opdock as tf
from opdock.io import crc32c, protos
from opdock.io.checkpoint_v2 import BundleWriter
from opdock.io.safetensors_files import safetensors_to_checkpoint
from opdock.io.table import TableBuilder, TableReader
from opdock.io.varint import read_varint
from tests.hostile import graphs
from tests.hostile.base import Format, Wrong, by_message, write
from tests.hostile.mutations import mutate_bytes


def _pack(files: dict[str, bytes]) -> bytes:
    """Several files as one."""
    head = ";".join(f"{name}={len(data)}" for name, data in files.items())
    return struct.pack("<I", len(head)) + head.encode() + b"".join(files.values())


def _unpack(data: bytes) -> dict[str, bytes]:
    (size,) = struct.unpack_from("<I", data)
    at, files = 4 + size, {}
    for item in data[4:at].decode().split(";"):
        name, _, length = item.partition("=")
        files[name] = data[at : at + int(length)]
        at += int(length)
    return files


def _checkpoint_seeds(v2: bool) -> Sequence[bytes]:

    found = []
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        graphs.variables()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            version = tf.train.SaverDef.V2 if v2 else tf.train.SaverDef.V1
            prefix = tf.train.Saver(write_version=version).save(
                session, f"{folder}/m", write_meta_graph=False, write_state=False
            )
        files = {p.name: p.read_bytes() for p in sorted(Path(folder).glob(f"{Path(prefix).name}*"))}
        found.append(_pack(files))
    return found


def _mutate_checkpoint(rng: Random, data: bytes) -> bytes:
    """Bytes of one of the files, or, with sums that fit, of what a table holds."""
    files = _unpack(data)
    name = rng.choice(sorted(files))
    if ".data-" in name or rng.random() < 0.3:
        files[name] = mutate_bytes(rng, files[name])
    else:
        files[name] = _mutate_table(rng, files[name])
    return _pack(files)


def _mutate_table(rng: Random, data: bytes) -> bytes:
    """A table, sound in itself, with other entries; or with a block of other bytes."""

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with TableReader(file.name) as table:
            entries = dict(table)
    v1 = not any(k == b"" and len(v) < 16 for k, v in entries.items())
    key = rng.choice(sorted(entries))
    kind = protos.SavedTensorSlices
    if not v1:
        kind = protos.BundleEntryProto if key else protos.BundleHeaderProto
    if rng.random() < 0.8:
        entries[key] = by_message(kind, rng, entries[key])
    else:
        entries[mutate_bytes(rng, key)] = entries.pop(key)
    out = io.BytesIO()
    builder = TableBuilder(out)
    for k in sorted(entries):
        builder.add(k, entries[k])
    builder.finish()
    table_bytes = out.getvalue()
    return _mutate_block(rng, table_bytes) if rng.random() < 0.2 else table_bytes


def _mutate_block(rng: Random, table: bytes) -> bytes:
    """The first block changed, its sum made anew."""

    # The meta block, which the footer names first, follows the data blocks.
    end = read_varint(table, len(table) - 48, "footer")[0]
    body = bytearray(table[: end - 4])
    for _ in range(rng.choice((1, 2))):
        body[rng.randrange(len(body))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    return bytes(body) + struct.pack("<I", crc32c.masked(bytes(body))) + table[end:]


def _read_checkpoint(data: bytes, folder: Path) -> None:
    files = _unpack(data)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        write(folder, name, content)
    prefix = str(folder / "m")
    reader = tf.train.NewCheckpointReader(prefix)
    shapes = reader.get_variable_to_shape_map()
    reader.get_variable_to_dtype_map()
    reader.debug_string()
    failed: Exception | None = None
    for name in shapes:
        try:
            value = np.asarray(reader.get_tensor(name))
        except tf.errors.OpError as e:
            failed = e
            continue
        if list(value.shape) != shapes[name]:
            raise Wrong(f"{name} is {value.shape}, listed as {shapes[name]}")
    with tf.Graph().as_default():
        graphs.variables()
        with tf.Session(config=graphs.CONFIG) as session:
            tf.train.Saver().restore(session, prefix)
    if failed is not None:
        raise failed


def _object_seeds() -> Sequence[bytes]:

    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as session:
        step = graphs.tracked()
        session.run(tf.global_variables_initializer())
        step.save(f"{folder}/o", session=session)
        reader = tf.train.NewCheckpointReader(f"{folder}/o-1")
        found: bytes = reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    return [found]


def _read_objects(data: bytes, folder: Path) -> None:
    with BundleWriter(str(folder / "o")) as writer:
        writer.add("_CHECKPOINTABLE_OBJECT_GRAPH", np.array(data, object))
        writer.add("v/.ATTRIBUTES/VARIABLE_VALUE", np.float32(1.0))
    with tf.Graph().as_default(), tf.Session(config=graphs.CONFIG) as session:
        status = graphs.tracked().restore(str(folder / "o"))
        status.initialize_or_restore(session)


def _safetensors_seeds() -> Sequence[bytes]:
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7)}
    return [safetensors.numpy.save(tensors)]


def _mutate_safetensors(rng: Random, data: bytes) -> bytes:
    """Bytes anywhere, or in its head, whose length is made to fit."""
    if rng.random() < 0.4:
        return mutate_bytes(rng, data)
    (size,) = struct.unpack_from("<Q", data)
    head = mutate_bytes(rng, data[8 : 8 + size])
    return struct.pack("<Q", len(head)) + head + data[8 + size :]


def _read_safetensors(data: bytes, folder: Path) -> None:
    path = write(folder, "m.safetensors", data)
    safetensors_to_checkpoint(path, str(folder / "s"))


FORMATS = {
    "checkpoint_v2": Format(partial(_checkpoint_seeds, True), _mutate_checkpoint, _read_checkpoint),
    "checkpoint_v1": Format(
        partial(_checkpoint_seeds, False), _mutate_checkpoint, _read_checkpoint
    ),
    "objects": Format(
        _object_seeds, partial(by_message, protos.TrackableObjectGraph), _read_objects
    ),
    "safetensors": Format(_safetensors_seeds, _mutate_safetensors, _read_safetensors),
}
