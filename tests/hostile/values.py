"""Hostile strings that ops take apart: examples, tensors, messages, rows of text, packed data."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2
from google.protobuf.json_format import MessageToJson

import opdock as tf
from opdock.io import protos
from opdock.ops.composed.sparse_values import deserialize_sparse
from tests.hostile.base import Format, by_message, each, feed
from tests.hostile.mutations import mutate_bytes


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


def _json_seeds() -> Sequence[bytes]:
    (example,) = _example_seeds()
    return [MessageToJson(protos.Example.FromString(example)).encode()]


@cache
def _json_step() -> Callable[[bytes], Any]:
    return _calls(tf.io.decode_json_example)


def _calls(*steps: Callable[[tf.Tensor], Any]) -> Callable[[bytes], Any]:
    """What runs each of the steps on the bytes."""
    with tf.Graph().as_default():
        data = tf.placeholder(tf.string, [])
        calls = [tf.Session().make_callable(step(data), [data]) for step in steps]
    return partial(each, calls)


# ---------------------------------------------------------------- tensors
def _tensor_seeds() -> Sequence[bytes]:
    texts = np.array([b"a", b"bc", b""], object)
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.int32(7), np.ones((2, 0)), texts]
    messages = [tf.make_tensor_proto(a) for a in arrays]
    messages.append(tf.make_tensor_proto(1.5, tf.float32, [3]))  # one value for all
    messages.append(tf.make_tensor_proto([1.5, 2.0], tf.bfloat16))
    return [m.SerializeToString(deterministic=True) for m in messages]


@cache
def _tensor_step() -> Callable[[bytes], Any]:
    kinds = (tf.float32, tf.int32, tf.float64, tf.string, tf.bfloat16)
    return _calls(*(partial(tf.io.parse_tensor, out_type=t) for t in kinds))


def _sparse_seeds() -> Sequence[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.SparseTensorValue([[0, 1], [2, 0]], np.float32([1, 2]), [3, 2])
        parts = session.run(tf.io.serialize_sparse(value))
    return [_joined(*parts)]


def _joined(*parts: bytes) -> bytes:
    """Several strings as one, each behind its length."""
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def _parts(data: bytes) -> list[bytes]:
    at, found = 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _mutate_sparse(rng: Random, data: bytes) -> bytes:
    """One of the three tensors."""
    parts = _parts(data)
    which = rng.randrange(len(parts))
    parts[which] = by_message(protos.TensorProto, rng, parts[which])
    return _joined(*parts)


@cache
def _sparse_step() -> Callable[[bytes], Any]:
    with tf.Graph().as_default():
        parts = tf.placeholder(tf.string, [3])
        steps = [
            tf.io.deserialize_many_sparse(tf.stack([parts, parts]), tf.float32, rank=2),
            deserialize_sparse(parts, tf.float32),
        ]
        calls = [tf.Session().make_callable(step, [parts]) for step in steps]
    return lambda data: each(calls, np.array(_parts(data), object))


# ---------------------------------------------------------------- messages of any type
_Field = descriptor_pb2.FieldDescriptorProto
_FIELDS = {"d": tf.float64, "i": tf.int32, "s": tf.string, "m": tf.string}
_MORE = {
    "e": tf.int32, "g": tf.string, "k": tf.string, "v": tf.string, "o": tf.bool, "r": tf.uint64,
    "h.x": tf.string,
}  # fmt: skip


def _described() -> Any:
    """A file with a message type of a few fields."""
    file = descriptor_pb2.FileDescriptorProto(name="h.proto", package="h", syntax="proto2")
    message = file.message_type.add(name="M")
    kinds = {"d": _Field.TYPE_DOUBLE, "i": _Field.TYPE_INT32, "s": _Field.TYPE_STRING}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=_Field.LABEL_REPEATED)
    message.field.add(
        name="m", number=9, type=_Field.TYPE_MESSAGE, type_name=".h.M",
        label=_Field.LABEL_OPTIONAL,
    )  # fmt: skip
    return file


def _described_twice() -> Any:
    """A file that comes again in other words; the default value once broke protobuf."""
    first, second = _described(), _described()
    first.message_type[0].field[2].default_value = "m:1"
    return descriptor_pb2.FileDescriptorSet(file=[first, second])


def _described_with_all() -> Any:
    """Whatever a file describes: an enum, a group, maps, one of several, an extension, services."""
    file = _described()
    message = file.message_type[0]
    enum = message.enum_type.add(name="E")
    enum.value.add(name="A", number=0)
    enum.value.add(name="B", number=-3)
    message.nested_type.add(name="G").field.add(name="x", number=1, type=_Field.TYPE_SINT32)
    for name, kind in (("KEntry", None), ("VEntry", ".h.M")):
        entry = message.nested_type.add(name=name, options={"map_entry": True})
        entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=1)
        value = _Field.TYPE_MESSAGE if kind else _Field.TYPE_INT32
        entry.field.add(name="value", number=2, type=value, type_name=kind, label=1)
    once, often = _Field.LABEL_OPTIONAL, _Field.LABEL_REPEATED
    message.oneof_decl.add(name="one")
    more: tuple[dict[str, Any], ...] = (
        {"name": "e", "type": _Field.TYPE_ENUM, "type_name": ".h.M.E", "default_value": "B"},
        {"name": "g", "type": _Field.TYPE_GROUP, "type_name": "G", "label": often},
        {"name": "k", "type": _Field.TYPE_MESSAGE, "type_name": "KEntry", "label": often},
        {"name": "v", "type": _Field.TYPE_MESSAGE, "type_name": ".h.M.VEntry", "label": often},
        {"name": "o", "type": _Field.TYPE_BOOL, "oneof_index": 0},
        {"name": "r", "type": _Field.TYPE_UINT64, "label": _Field.LABEL_REQUIRED},
    )
    for number, field in enumerate(more, 10):
        message.field.add(**{"number": number, "label": once, **field})
    message.extension_range.add(start=100, end=200)
    file.extension.add(
        name="x", number=100, type=_Field.TYPE_MESSAGE, type_name=".h.M.G", extendee=".h.M",
        label=once,
    )  # fmt: skip
    other = descriptor_pb2.FileDescriptorProto(
        name="p.proto", syntax="proto3", dependency=["h.proto"], public_dependency=[0]
    )
    other.message_type.add(name="P", oneof_decl=[{"name": "_a"}]).field.add(
        name="a", number=1, type=_Field.TYPE_INT32, label=once, proto3_optional=True, oneof_index=0
    )
    other.service.add(name="S").method.add(name="go", input_type=".P", output_type=".h.M")
    return descriptor_pb2.FileDescriptorSet(file=[file, other])


def _proto_seeds() -> Sequence[bytes]:
    given = struct.pack("<Bd", 9, 1.5) + b"\x10\x07\x1a\x02ab\x4a\x02\x10\x01"
    more = b"\x50\x00\x5b\x08\x02\x5c\x62\x05\n\x01k\x10\x03\x6a\x03\n\x01k\x70\x01\x78\x05"
    more += b"\xa2\x06\x02\x08\x01"
    alone = descriptor_pb2.FileDescriptorSet(file=[_described()])
    sets = ((alone, given), (_described_twice(), given), (_described_with_all(), given + more))
    return [_joined(s.SerializeToString(deterministic=True), g) for s, g in sets]


def _mutate_proto(rng: Random, data: bytes) -> bytes:
    described, given = _parts(data)
    if rng.random() < 0.5:
        return _joined(by_message(descriptor_pb2.FileDescriptorSet, rng, described), given)
    return _joined(described, mutate_bytes(rng, given))


def _read_proto(data: bytes, folder: Path) -> None:
    described, given = _parts(data)
    source = b"bytes://" + described
    with tf.Graph().as_default(), tf.Session() as session:

        def there_and_back(kinds: Mapping[str, tf.DType], message: bytes) -> None:
            names, types = list(kinds), list(kinds.values())
            sizes, values = tf.io.decode_proto([message], "h.M", names, types, source)
            session.run(tf.io.encode_proto(sizes, values, names, "h.M", source))

        each([partial(there_and_back, kinds) for kinds in (_FIELDS, _MORE)], given)


# ---------------------------------------------------------------- text and packed data
def _csv_seeds() -> Sequence[bytes]:
    return [b"1,a,2.5,-7", b'-7,"b ""c"", d",,9999999999', b",,1e3,0"]


@cache
def _csv_step() -> Callable[[bytes], Any]:
    return _calls(lambda data: tf.decode_csv(data, [[0], [""], [0.5], np.int64([1])]))


def _packed_seeds() -> Sequence[bytes]:
    text = bytes(range(256)) * 3 + bytes(500)
    gzip = zlib.compressobj(wbits=31)
    return [zlib.compress(text), gzip.compress(text) + gzip.flush(), text[:64]]


@cache
def _packed_step() -> Callable[[bytes], Any]:
    return _calls(
        lambda data: tf.io.decode_compressed(data, "ZLIB"),
        lambda data: tf.io.decode_compressed(data, "GZIP"),
        lambda data: tf.decode_raw(data, tf.float32),
        lambda data: tf.decode_raw([data, data], tf.complex128),
        tf.decode_base64,
        lambda data: tf.strings.unicode_decode(data, "UTF-8"),
        tf.strings.to_number,
    )


FORMATS = {
    "example": Format(_example_seeds, partial(by_message, protos.Example), feed(_example_step)),
    "sequence": Format(
        _sequence_seeds, partial(by_message, protos.SequenceExample), feed(_sequence_step)
    ),
    "json": Format(_json_seeds, mutate_bytes, feed(_json_step)),
    "tensor": Format(_tensor_seeds, partial(by_message, protos.TensorProto), feed(_tensor_step)),
    "sparse": Format(_sparse_seeds, _mutate_sparse, feed(_sparse_step)),
    "proto": Format(_proto_seeds, _mutate_proto, _read_proto),
    "csv": Format(_csv_seeds, mutate_bytes, feed(_csv_step)),
    "packed": Format(_packed_seeds, mutate_bytes, feed(_packed_step)),
}
