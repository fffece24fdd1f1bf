"""Hostile strings that ops take apart: examples, tensors, messages, rows of text, packed data."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
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
def _proto_seeds() -> Sequence[bytes]:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="h.proto", package="h", syntax="proto2")
    message = file.message_type.add(name="M")
    kinds = {"d": field.TYPE_DOUBLE, "i": field.TYPE_INT32, "s": field.TYPE_STRING}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_REPEATED)
    message.field.add(
        name="m", number=9, type=field.TYPE_MESSAGE, type_name=".h.M", label=field.LABEL_OPTIONAL
    )
    described = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    given = struct.pack("<Bd", 9, 1.5) + b"\x10\x07\x1a\x02ab\x4a\x02\x10\x01"
    return [_joined(described, given)]


def _mutate_proto(rng: Random, data: bytes) -> bytes:
    described, given = _parts(data)
    if rng.random() < 0.5:
        return _joined(by_message(descriptor_pb2.FileDescriptorSet, rng, described), given)
    return _joined(described, mutate_bytes(rng, given))


def _read_proto(data: bytes, folder: Path) -> None:
    described, given = _parts(data)
    names, types = ["d", "i", "s", "m"], [tf.float64, tf.int32, tf.string, tf.string]
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.io.decode_proto(
            [given], "h.M", names, types, descriptor_source=b"bytes://" + described
        )
        session.run(found)


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
