"""The kinds of files that strangers give us: valid ones to start from, and what reads them.

A `Format` reads a case as a user's program would. What comes back must be what the bytes say, as
far as they have checksums; whoever reads raises `Wrong` where it is not.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

import opdock as tf
from opdock.io import crc32c, protos
from opdock.io.checkpoint_v2 import BundleWriter
from tests.hostile import graphs
from tests.hostile.mutations import mutate_bytes, mutate_message

Mutate = Callable[[Random, bytes], bytes]


class Wrong(Exception):
    """A damaged file was read as if it were whole."""


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        seeds: makes valid files.
        mutate: makes a hostile file of a valid one.
        read: reads one, in a folder of its own that may be used again.
    """

    seeds: Callable[[], Sequence[bytes]]
    mutate: Mutate
    read: Callable[[bytes, Path], None]

    def case(self, seed: int, number: int) -> bytes:
        """The file of a case."""
        rng = Random(f"{seed}:{number}")
        return self.mutate(rng, rng.choice(_kept(self)))


@cache
def _kept(kind: Format) -> tuple[bytes, ...]:
    return tuple(kind.seeds())


def _message(cls: str, rng: Random, data: bytes) -> bytes:
    """By the fields of the message three times of four, else by its bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, data)
    message = mutate_message(rng, getattr(protos, cls).FromString(data))
    return bytes(message.SerializePartialToString(deterministic=True))


def parsed(cls: str, data: bytes) -> Any | None:
    """The message, or None where protobuf itself, which the user calls, finds none in the bytes."""
    from google.protobuf.message import DecodeError

    try:
        return getattr(protos, cls).FromString(data)
    except DecodeError:
        return None


def _write(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


# ---------------------------------------------------------------- graphs
def _read_graph(data: bytes, folder: Path) -> None:
    graph_def = parsed("GraphDef", data)
    if graph_def is not None:
        graphs.import_and_run(lambda: tf.import_graph_def(graph_def, name=""))


def _read_meta_graph(data: bytes, folder: Path) -> None:
    meta = parsed("MetaGraphDef", data)
    if meta is not None:
        graphs.import_and_run(lambda: tf.train.import_meta_graph(meta))


def _saved_model_seeds() -> Sequence[bytes]:
    found = []
    for meta in graphs.meta_graphs():
        model = protos.SavedModel(saved_model_schema_version=1)
        model.meta_graphs.add().ParseFromString(meta)
        model.meta_graphs[0].meta_info_def.tags.append("serve")
        found.append(model.SerializeToString(deterministic=True))
    return found


def _read_saved_model(data: bytes, folder: Path) -> None:
    _write(folder, "saved_model.pb", data)
    with tf.Graph().as_default(), tf.Session(config=graphs.CONFIG) as session:
        tf.saved_model.loader.load(session, ["serve"], str(folder))


# ---------------------------------------------------------------- checkpoints
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
    import tempfile

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
    import tempfile

    from opdock.io.table import TableBuilder, TableReader

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with TableReader(file.name) as table:
            entries = dict(table)
    v1 = not any(k == b"" and len(v) < 16 for k, v in entries.items())
    key = rng.choice(sorted(entries))
    kind = "SavedTensorSlices" if v1 else "BundleEntryProto" if key else "BundleHeaderProto"
    if rng.random() < 0.8:
        entries[key] = _message(kind, rng, entries[key])
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
    from opdock.io.varint import read_varint

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
        _write(folder, name, content)
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
    import tempfile

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


# ---------------------------------------------------------------- records
def _frame(record: bytes) -> bytes:
    head = struct.pack("<Q", len(record))
    sums = (struct.pack("<I", crc32c.masked(part)) for part in (head, record))
    return head + next(sums) + record + next(sums)


def _record_seeds() -> Sequence[bytes]:
    records = [b"", b"a", bytes(300), b"xyz" * 50]
    plain = b"".join(map(_frame, records))
    gzip = zlib.compressobj(wbits=31)
    return [
        b"-" + plain, b"z" + zlib.compress(plain), b"g" + gzip.compress(plain) + gzip.flush(),
    ]  # fmt: skip


_COMPRESSIONS = {b"-": "", b"z": "ZLIB", b"g": "GZIP"}


def _mutate_records(rng: Random, data: bytes) -> bytes:
    kind, body = data[:1], data[1:]
    if kind == b"-" or rng.random() < 0.5:
        return kind + mutate_bytes(rng, body)
    # What is compressed is damaged, the compression is sound.
    plain = mutate_bytes(rng, zlib.decompress(body, wbits=47))
    packer = zlib.compressobj(wbits=31 if kind == b"g" else 15)
    return kind + packer.compress(plain) + packer.flush()


def _read_records(data: bytes, folder: Path) -> None:
    kind = _COMPRESSIONS[data[:1]]
    path = _write(folder, "records", data[1:])
    options = tf.python_io.TFRecordOptions(kind)
    read = list(tf.python_io.tf_record_iterator(path, options))
    framed = b"".join(map(_frame, read))
    if not kind and framed != data[1:]:
        raise Wrong(f"{len(read)} records were read that are not the file's")


def _event_seeds() -> Sequence[bytes]:
    summary = protos.Summary()
    summary.value.add(tag="loss", simple_value=0.5)
    summary.value.add(tag="h").histo.bucket.extend([1.0, 2.0])
    events = [
        protos.Event(wall_time=1.0, file_version="brain.Event:2"),
        protos.Event(wall_time=2.0, step=1, summary=summary),
    ]
    return [b"".join(_frame(e.SerializeToString(deterministic=True)) for e in events)]


def _frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + size]
        at += size + 16


def _mutate_events(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    events = list(_frames(data))
    at = rng.randrange(len(events))
    events[at] = _message("Event", rng, events[at])
    return b"".join(map(_frame, events))


def _read_events(data: bytes, folder: Path) -> None:
    for _ in tf.train.summary_iterator(_write(folder, "events.out.tfevents.1.x", data)):
        pass


# ---------------------------------------------------------------- examples
def _example_seeds() -> Sequence[bytes]:
    example = protos.Example()
    example.features.feature["f"].float_list.value.extend([1.0, 2.0])
    example.features.feature["i"].int64_list.value.extend([1, 2, 3])
    example.features.feature["s"].bytes_list.value.append(b"text")
    example.features.feature["v"].int64_list.value.extend([4, 5])
    return [example.SerializeToString(deterministic=True)]


@cache
def _example_step() -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        features = {
            "f": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0]),
            "i": tf.VarLenFeature(tf.int64),
            "s": tf.FixedLenFeature([], tf.string, ""),
            "v": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
        }
        many = tf.parse_example(tf.stack([data, data]), features)
        one = tf.parse_single_example(data, features)
        return tf.Session().make_callable([many, one], [data])


def _sequence_seeds() -> Sequence[bytes]:
    example = protos.SequenceExample()
    example.context.feature["c"].int64_list.value.append(1)
    for values in ([1.0], [2.0], [3.0]):
        item = example.feature_lists.feature_list["f"].feature.add()
        item.float_list.value.extend(values)
        item = example.feature_lists.feature_list["s"].feature.add()
        item.bytes_list.value.append(b"x")
    return [example.SerializeToString(deterministic=True)]


@cache
def _sequence_step() -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        step = tf.parse_single_sequence_example(
            data,
            {"c": tf.FixedLenFeature([], tf.int64, 0)},
            {
                "f": tf.FixedLenSequenceFeature([1], tf.float32, allow_missing=True),
                "s": tf.VarLenFeature(tf.string),
            },
        )
        return tf.Session().make_callable(step, [data])


# ---------------------------------------------------------------- pictures and sound
def _pictures(*kinds: str) -> Sequence[bytes]:
    rng = np.random.RandomState(0)
    pixels = rng.randint(0, 255, (9, 13, 3)).astype(np.uint8)
    found = []
    for kind in kinds:
        options = dict[str, Any](progressive=True) if kind == "JPEG+" else {}
        modes = {"PNG": ("RGB", "RGBA", "L", "P", "1"), "GIF": ("P",)}.get(kind, ("RGB", "L"))
        for mode in modes:
            out = io.BytesIO()
            picture = Image.fromarray(pixels).convert(mode)
            if kind == "GIF":
                options = {"save_all": True, "append_images": [picture.rotate(90)], "loop": 0}
            picture.save(out, kind.rstrip("+"), **options)
            found.append(out.getvalue())
    return found


@cache
def _decode(*names: str) -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        steps = [getattr(tf.image, name)(data) for name in names]
        calls = [tf.Session().make_callable(step, [data]) for step in steps]
    return partial(_each, calls)


def _each(calls: Sequence[Callable[[bytes], Any]], data: bytes) -> None:
    """All calls, whatever each raises; the first error then, if any."""
    failed: Exception | None = None
    for call in calls:
        try:
            call(data)
        except tf.errors.OpError as e:
            failed = failed or e
    if failed is not None:
        raise failed


def _mutate_png(rng: Random, data: bytes) -> bytes:
    """Bytes; or one chunk's, with a sum that fits, so that what is behind the sum is tried."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    at, chunks = 8, list[tuple[bytes, bytes]]()
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += size + 12
    which = rng.randrange(len(chunks))
    kind, body = chunks[which]
    if kind == b"IDAT" and rng.random() < 0.6:
        body = zlib.compress(mutate_bytes(rng, zlib.decompress(body)))
    else:
        body = mutate_bytes(rng, body)
    chunks[which] = (kind, body)
    if rng.random() < 0.2:
        chunks.insert(rng.randrange(len(chunks)), rng.choice(chunks))
    sums = (struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks)
    return data[:8] + b"".join(
        struct.pack(">I", len(b)) + k + b + s for (k, b), s in zip(chunks, sums)
    )


def _wav_seeds() -> Sequence[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        tone = np.sin(np.arange(60).reshape(30, 2)).astype(np.float32)
        return [session.run(tf.audio.encode_wav(tone, 8000))]


@cache
def _wav_step() -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        steps = [tf.audio.decode_wav(data), tf.audio.decode_wav(data, 1, 50)]
        calls = [tf.Session().make_callable(step, [data]) for step in steps]
    return partial(_each, calls)


def _feed(step: Callable[[], Callable[[bytes], Any]]) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        step()(data)

    return read


def _image(mutate: Mutate, *kinds: str, decoders: tuple[str, ...]) -> Format:
    step = partial(_decode, *decoders, "decode_image")
    return Format(partial(_pictures, *kinds), mutate, _feed(step))


FORMATS: dict[str, Format] = {
    "graph": Format(graphs.graph_defs, partial(_message, "GraphDef"), _read_graph),
    "meta_graph": Format(graphs.meta_graphs, partial(_message, "MetaGraphDef"), _read_meta_graph),
    "saved_model": Format(_saved_model_seeds, partial(_message, "SavedModel"), _read_saved_model),
    "checkpoint_v2": Format(partial(_checkpoint_seeds, True), _mutate_checkpoint, _read_checkpoint),
    "checkpoint_v1": Format(
        partial(_checkpoint_seeds, False), _mutate_checkpoint, _read_checkpoint
    ),
    "objects": Format(_object_seeds, partial(_message, "TrackableObjectGraph"), _read_objects),
    "records": Format(_record_seeds, _mutate_records, _read_records),
    "events": Format(_event_seeds, _mutate_events, _read_events),
    "example": Format(_example_seeds, partial(_message, "Example"), _feed(_example_step)),
    "sequence": Format(
        _sequence_seeds, partial(_message, "SequenceExample"), _feed(_sequence_step)
    ),
    "jpeg": _image(mutate_bytes, "JPEG", "JPEG+", decoders=("decode_jpeg",)),
    "png": _image(_mutate_png, "PNG", decoders=("decode_png",)),
    "gif": _image(mutate_bytes, "GIF", decoders=("decode_gif",)),
    "bmp": _image(mutate_bytes, "BMP", decoders=("decode_bmp",)),
    "wav": Format(_wav_seeds, mutate_bytes, _feed(_wav_step)),
}
