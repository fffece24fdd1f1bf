"""Kernels that turn strings into numbers, tensors and other codes, and back."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors, host_ops
from opdock_cpu.text import base64_loops, numbers
from opdock_cpu.text.arrays import Array, array_of, each, flat, one, shown
from opdock_cpu.text.packed import packed

__all__ = ["table"]

table = KernelTable()
Buffer = bytes | Array


# ---------------------------------------------------------------- numbers
_TRUTHS: Final = np.array([b"false", b"true"], object)


@table.binder("AsString")
def as_string(sig: NodeSig) -> Callable[[Array], Array]:
    """Numbers as text."""
    attrs, dtype = sig.attrs, sig.in_dtypes[0].base_dtype
    _check_format(attrs, dtype)
    if dtype.np.kind == "b":
        return lambda x: _TRUTHS[np.asarray(x).view(np.uint8)]
    write = numbers.printer(
        dtype.np, attrs["precision"], attrs["scientific"], attrs["shortest"], attrs["width"],
        attrs["fill"],
    )  # fmt: skip
    return lambda x: write(np.asarray(x))


def _check_format(attrs: Any, dtype: Any) -> None:
    name = dtype.name
    if not (dtype.is_floating or dtype.is_complex):
        if attrs["scientific"] or attrs["shortest"]:
            raise checks.invalid(
                f"scientific and shortest format not supported for datatype {name}"
            )
        if attrs["precision"] >= 0:
            raise checks.invalid(f"precision not supported for datatype {name}")
    fill = attrs["fill"]
    if len(fill) > 1:
        raise checks.invalid("Fill string must be one or fewer characters")
    if attrs["scientific"] and attrs["shortest"]:
        raise checks.invalid("Cannot select both scientific and shortest notation")
    if fill and fill not in " +-0#":
        raise checks.invalid(f'Fill argument not supported: "{fill}"')


@table.binder("StringToNumber")
def string_to_number(sig: NodeSig) -> Callable[[Array], Array]:
    """Text as numbers."""
    dtype = sig.out_dtypes[0].np

    def run(strings: Array) -> Array:
        whole = packed(strings)
        if whole is not None:
            values, bad = numbers.read_pieces(whole, whole.starts, whole.ends, dtype)
        else:
            values, bad = numbers.read_array(flat(strings), dtype)
        if bad is not None:
            text = shown(flat(strings)[bad])
            raise checks.invalid(f"StringToNumberOp could not correctly convert string: {text}")
        return values.reshape(np.shape(strings))

    return run


# ---------------------------------------------------------------- base64
@table.binder("EncodeBase64")
def encode_base64(sig: NodeSig) -> Callable[[Array], Array]:
    """Web-safe, padded or not."""
    pad = sig.attrs["pad"]

    def one_string(text: bytes) -> bytes:
        code = base64.urlsafe_b64encode(text)
        return code if pad else code.rstrip(b"=")

    def run(strings: Array) -> Array:
        whole = packed(strings)
        found = None if whole is None else base64_loops.encoded(whole, pad)
        return each(one_string, strings) if found is None else found

    return run


_ALPHABET = re.compile(rb"[A-Za-z0-9_-]*")


def _decoded(text: bytes) -> bytes:
    body = text
    if len(text) % 4 == 0:
        body = text[:-2] if text.endswith(b"==") else text[:-1] if text.endswith(b"=") else text
    if len(body) % 4 == 1:
        raise checks.invalid("Base64 string length cannot be 1 modulo 4.")
    if _ALPHABET.fullmatch(body) is None:
        raise checks.invalid("Invalid character found in base64.")
    return binascii.a2b_base64(body.translate(_TO_STANDARD) + b"=" * (-len(body) % 4))


_TO_STANDARD = bytes.maketrans(b"-_", b"+/")


@table.kernel("DecodeBase64")
def decode_base64(ctx: Any, strings: Array) -> Array:
    """Web-safe, padded or not."""
    whole = packed(strings)
    found = None if whole is None else base64_loops.decoded(whole)
    return each(_decoded, strings) if found is None else found


# ---------------------------------------------------------------- compression
@table.binder("DecodeCompressed")
def decode_compressed(sig: NodeSig) -> Callable[[Array], Array]:
    """ZLIB, GZIP or nothing."""
    kind = sig.attrs["compression_type"]
    if kind not in ("", "ZLIB", "GZIP"):
        raise checks.invalid("Only ZLIB, GZIP or NONE are supported compressions")
    if not kind:
        return lambda strings: np.array(strings, object)
    bits = zlib.MAX_WBITS | (16 if kind == "GZIP" else 0)

    def inflate(data: bytes) -> bytes:
        try:
            # What was cut off counts as far as it goes, as in TF.
            return zlib.decompressobj(bits).decompress(data)
        except zlib.error as e:
            raise errors.DataLossError(None, None, f"inflate() failed: {e}") from None

    return lambda strings: each(inflate, strings)


# ---------------------------------------------------------------- raw bytes
@table.binder("DecodeRaw")
def decode_raw(sig: NodeSig) -> Callable[[Array], Array]:
    """Bytes as numbers; all strings have one length."""
    dtype, read = _raw_type(sig)

    def run(strings: Array) -> Array:
        whole, shape = packed(strings), np.shape(strings)
        if whole is not None and (whole.sizes == whole.sizes[0]).all():
            size = int(whole.sizes[0])
            if size % dtype.itemsize == 0:
                return read(whole.data, (*shape, size // dtype.itemsize))
        items = flat(strings)
        size = len(items[0]) if items else 0
        for i, item in enumerate(items):
            if len(item) != size:
                raise checks.invalid(
                    "DecodeRaw requires input strings to all be the same size, but element "
                    f"{i} has size {size} != {len(item)}"
                )
        if size % dtype.itemsize:
            raise checks.invalid(
                f"Input to DecodeRaw has length {size} that is not a multiple of "
                f"{dtype.itemsize}, the size of {dtypes.proto_name(sig.out_dtypes[0])}"
            )
        return read(b"".join(items), (*shape, size // dtype.itemsize))

    return run


@table.binder("DecodePaddedRaw")
def decode_padded_raw(sig: NodeSig) -> Callable[..., Array]:
    """Bytes as numbers; strings are cut, or filled with zeros, to one length."""
    dtype, read = _raw_type(sig)

    def run(strings: Array, fixed_length: Array) -> Array:
        if np.ndim(fixed_length) != 0:
            raise checks.invalid(
                f"k must be scalar, got shape {checks.dims(np.shape(fixed_length))}"
            )
        size = int(fixed_length)
        if size % dtype.itemsize:
            raise checks.invalid(
                f"fixed_length ({size}) must be a multiple of the size of out_type "
                f"({dtype.itemsize})"
            )
        if size <= 0:
            raise checks.invalid(f"fixed_length ({size}) must be greater than zero.")
        whole = packed(strings)
        joined: Buffer | None = None if whole is None else whole.padded(size)
        if joined is None:
            joined = b"".join([s[:size].ljust(size, b"\0") for s in flat(strings)])
        return read(joined, (*np.shape(strings), size // dtype.itemsize))

    return run


def _raw_type(sig: NodeSig) -> tuple[Any, Callable[[Buffer, tuple[int, ...]], Array]]:
    dtype = sig.out_dtypes[0].np
    # Each half of a complex number has its bytes in order.
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    stored = part.newbyteorder("<" if sig.attrs["little_endian"] else ">")

    def read(data: Buffer, shape: tuple[int, ...]) -> Array:
        return np.frombuffer(data, stored).astype(part).view(dtype).reshape(shape)

    if dtype.kind == "b":
        return dtype, lambda data, shape: (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    return dtype, read


# ---------------------------------------------------------------- tensors
@table.binder("ParseTensor")
def parse_tensor(sig: NodeSig) -> Callable[[Array], Array]:
    """A TensorProto as a tensor."""
    dtype = sig.attrs["out_type"].base_dtype

    def run(serialized: Array) -> Array:
        if np.ndim(serialized) != 0:
            shape = checks.dims(np.shape(serialized))
            raise checks.invalid(f"Expected `serialized` to be a scalar, got shape: {shape}")
        return host_ops.parse_tensor(one(serialized), dtype)

    return run


@table.binder("SerializeTensor")
def serialize_tensor(sig: NodeSig) -> Callable[[Array], Array]:
    """A tensor as a TensorProto."""
    dtype = sig.attrs["T"].base_dtype
    return lambda tensor: array_of([host_ops.tensor_to_bytes(tensor, dtype)], ())
