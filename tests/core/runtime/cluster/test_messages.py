"""Messages as bytes: what comes out is what went in, and what is no message says so."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import opdock as tf
from opdock.plugins.clusters import Packet
from opdock.runtime.cluster.messages import PROTOCOL, Message, decode, encode, failure, raised

VALUES = [
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
    np.array(3, np.int64),
    np.zeros([0, 4], np.uint8),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.array([[1.5]], ml_dtypes.bfloat16),
    np.array([[b"a", b"\x00b"], [b"", b"caf\xc3\xa9"]], object),
    np.float32(2.5),
    np.str_("caf\xe9"),
    np.array([b"ab", b"c"]),
]


def test_values_come_out_as_they_went_in():
    told = Message("run", {"step": 2**62, "text": "é", "none": None, "graph": b"\x00\xff"}, VALUES)
    packet = encode(told)
    carried = Packet(bytes(packet.header), tuple(bytes(p) for p in packet.parts))
    found = decode(carried)
    assert (found.kind, found.fields) == ("run", told.fields)
    for a, b in zip(VALUES, found.tensors, strict=True):
        if b.dtype == object:
            a = np.vectorize(lambda s: s.encode() if isinstance(s, str) else s, otypes=[object])(a)
        assert np.asarray(a).dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", [object(), np.array([{}], object)])
def test_what_is_no_data_does_not_leave(value):
    with pytest.raises(tf.errors.UnimplementedError, match="cannot leave its task"):
        encode(Message("values", {}, [value]))


def header(**changes):
    fields = {"protocol": PROTOCOL, "kind": "run", "fields": {}, "blobs": [], "tensors": []}
    return json.dumps({**fields, **changes}).encode()


@pytest.mark.parametrize(
    "packet",
    [
        Packet(b"", ()),
        Packet(b"[]", ()),
        Packet(b"{}", ()),
        Packet(b"\xff", ()),
        Packet(header(), (b"more",)),
        Packet(header(tensors=[["float32", [3]]]), (b"1234",)),
        Packet(header(tensors=[["float32", [-1]]]), (b"123",)),
        Packet(header(tensors=[["float33", [1]]]), (b"1234",)),
        Packet(header(tensors=[["float32", [1 << 60]]]), (b"1234",)),
        Packet(header(tensors=[["string", [1]]]), (b"\xff\xff\xff",)),
        Packet(header(tensors=[["float32"]]), (b"1234",)),
    ],
)
def test_what_is_no_message(packet):
    with pytest.raises(tf.errors.InvalidArgumentError, match="is no message"):
        decode(packet)


def test_errors_cross_by_code():
    op = tf.no_op(name="culprit")
    found = raised(decode(encode(failure(tf.errors.OutOfRangeError(None, op, "the end")))))
    assert isinstance(found, tf.errors.OutOfRangeError)
    assert (found.message, found.op.name) == ("the end", "culprit")
    found = raised(decode(encode(failure(KeyError("x")))))
    assert isinstance(found, tf.errors.InternalError)
    assert found.message == "KeyError: 'x'"
    assert raised(Message("done")) is None
