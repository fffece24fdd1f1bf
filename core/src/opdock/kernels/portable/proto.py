"""Kernels of protocol buffers, on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from opdock import errors
from opdock.dtypes import DType
from opdock.io import proto_fields
from opdock.kernels.array_api import dims, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def _names(sig: NodeSig) -> list[str]:
    return [n.decode() if isinstance(n, bytes) else str(n) for n in sig.attrs["field_names"]]


@portable("DecodeProtoV2", host_inputs=("bytes",), host_outputs=("sizes", "values"))
def decode(xp: Any, sig: NodeSig) -> Any:
    """How often each field occurs, and its values."""
    attrs, types = sig.attrs, [d.base_dtype for d in sig.attrs["output_types"]]
    names, parse = _names(sig), None

    def prepare() -> Any:
        if len(names) != len(types):
            raise invalid("field_names and output_types attributes must have the same length")
        if str(attrs["message_format"]) not in ("binary", "text"):
            raise invalid("format must be one of binary or text")
        cls, pool = proto_fields.message_class(
            attrs["descriptor_source"], str(attrs["message_type"])
        )
        fields = proto_fields.fields_of(cls, pool, names, types, "Unexpected output type for")
        return cls, pool, fields

    def run(serialized: Any) -> tuple[Any, ...]:
        nonlocal parse
        parse = parse or prepare()
        cls, pool, fields = parse
        batch = tuple(np.shape(serialized))
        if not math.prod(batch):
            raise invalid("Bufs argument must contain at least one value")
        text = str(attrs["message_format"]) == "text"
        found = [
            [proto_fields.read(m, field) for field in fields]
            for m in (_message(cls, pool, b, text) for b in np.asarray(serialized).reshape(-1))
        ]
        sizes = np.array([[len(v) for v in row] for row in found], np.int32)
        values = [
            _padded([row[i] for row in found], proto_fields.defaults(field), dtype, batch)
            for i, (field, dtype) in enumerate(zip(fields, types, strict=True))
        ]
        return sizes.reshape(*batch, len(fields)), *values

    return run


def _message(cls: Any, pool: Any, serialized: Any, text: bool) -> Any:
    message = cls()
    try:
        if text:
            raw = serialized.decode() if isinstance(serialized, bytes) else str(serialized)
            text_format.Parse(raw, message, descriptor_pool=pool)
        else:
            message.ParseFromString(serialized)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as e:
        kind = "text" if text else "binary"
        raise errors.DataLossError(
            None, None, f"Unable to parse {kind} protobuf of type {cls.DESCRIPTOR.full_name}: {e}"
        ) from None
    return message


def _padded(rows: Sequence[list[Any]], default: Any, dtype: DType, batch: tuple[int, ...]) -> Any:
    # One at least, so that a field that no message has can be read as its default.
    width = max(1, *(len(row) for row in rows))
    out = np.full((len(rows), width), default, dtype.np)
    for place, row in zip(out, rows, strict=True):
        place[: len(row)] = row
    return out.reshape(*batch, width)


@portable("EncodeProto", host_inputs=("sizes", "values"), host_outputs=("bytes",))
def encode(xp: Any, sig: NodeSig) -> Any:
    """Serialized messages of the given fields."""
    attrs, names = sig.attrs, _names(sig)
    types = [d.base_dtype for d in attrs["Tinput_types"]]

    def run(sizes: Any, *values: Any) -> Any:
        if len(names) != len(types):
            raise invalid("Length of inputs list must match field_names")
        cls, pool = proto_fields.message_class(
            attrs["descriptor_source"], str(attrs["message_type"])
        )
        fields = proto_fields.fields_of(cls, pool, names, types, "Incompatible type for field")
        batch = _batch(np.asarray(sizes), values, names)
        counts = np.asarray(sizes).reshape(-1, len(names))
        flat = [np.asarray(v).reshape(len(counts), -1) for v in values]
        out = np.empty(len(counts), object)
        for i, row in enumerate(counts):
            message = cls()
            for field, count, column in zip(fields, row.tolist(), flat, strict=True):
                if not 0 <= count <= column.shape[1]:
                    raise invalid(
                        f"Size of field {field.name} in message {i} is {count}, but there are "
                        f"{column.shape[1]} values"
                    )
                proto_fields.write(message, field, column[i, :count].tolist())
            out[i] = message.SerializePartialToString(deterministic=True)
        return out.reshape(batch)

    return run


def _batch(sizes: Any, values: Sequence[Any], names: list[str]) -> tuple[int, ...]:
    if sizes.ndim < 1 or sizes.shape[-1] != len(names):
        raise invalid(
            f"sizes should be batch_size + [len(field_names)], got {dims(sizes.shape)} for "
            f"{len(names)} fields"
        )
    batch = tuple(sizes.shape[:-1])
    for name, value in zip(names, values, strict=True):
        if np.ndim(value) < 2:
            raise invalid(
                f"Invalid shape for field {name}.  Saw shape {dims(np.shape(value))} but it "
                "should be at least a matrix."
            )
        if tuple(np.shape(value)[:-1]) != batch:
            raise invalid(
                f"Values of field {name} have shape {dims(np.shape(value))}, which does not fit "
                f"sizes of shape {dims(sizes.shape)}"
            )
    return batch
