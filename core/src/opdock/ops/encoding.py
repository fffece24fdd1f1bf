"""Strings from and to numbers, tensors and other codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Elementwise, ShapeSig, Traits, define_op
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

__all__ = [
    "as_string", "decode_base64", "decode_compressed", "decode_raw", "encode_base64",
    "parse_tensor", "serialize_tensor", "string_to_number",
]  # fmt: skip

as_string_op = define_op(
    "AsString", "input: T -> output: string",
    "T: {int8, int16, int32, int64, complex64, complex128, float, double, bool}, "
    "precision: int = -1, scientific: bool = false, shortest: bool = false, width: int = -1, "
    'fill: string = ""',
)  # fmt: skip
string_to_number_op = define_op(
    "StringToNumber", "string_tensor: string -> output: out_type",
    "out_type: {float, double, int32, int64} = DT_FLOAT",
)  # fmt: skip
encode_base64_op = define_op("EncodeBase64", "input: string -> output: string", "pad: bool = false")
decode_base64_op = define_op("DecodeBase64", "input: string -> output: string")
decode_compressed_op = define_op(
    "DecodeCompressed", "bytes: string -> output: string", 'compression_type: string = ""'
)
_RAW = "half, float, double, int32, uint16, uint8, int16, int8, int64"
decode_raw_op = define_op(
    "DecodeRaw", "bytes: string -> output: out_type",
    f"out_type: {{{_RAW}, complex64, complex128, bool}}, little_endian: bool = true",
)  # fmt: skip
decode_padded_raw_op = define_op(
    "DecodePaddedRaw", "input_bytes: string, fixed_length: int32 -> output: out_type",
    f"out_type: {{{_RAW}}}, little_endian: bool = true",
)  # fmt: skip
parse_tensor_op = define_op(
    "ParseTensor", "serialized: string -> output: out_type", "out_type: type"
)
serialize_tensor_op = define_op("SerializeTensor", "tensor: T -> serialized: string", "T: type")
for _op in (
    as_string_op, string_to_number_op, encode_base64_op, decode_base64_op, decode_compressed_op,
):  # fmt: skip
    _op.shape(common_shapes.unchanged)
    _op.declare(Traits(layout=Elementwise()))
    _op.not_differentiable()
for _op in (decode_raw_op, decode_padded_raw_op, parse_tensor_op, serialize_tensor_op):
    _op.not_differentiable()
parse_tensor_op.shape(common_shapes.unknown)
serialize_tensor_op.shape(common_shapes.scalar)


@decode_raw_op.shape
def _decode_raw_shape(sig: ShapeSig) -> Shape:
    return shapes.concat(sig.shapes[0], (None,))


@decode_raw_op.rows
def _decode_raw_rows(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """Strings of one length make a row each; of several lengths they are an error."""
    attrs = op.attrs
    return [
        decode_raw_op(*inputs, out_type=attrs["out_type"], little_endian=attrs["little_endian"])
    ]


@decode_padded_raw_op.shape
def _decode_padded_raw_shape(sig: ShapeSig) -> Shape:
    length = array_util.const_int(sig, 1)
    size = sig.attrs["out_type"].np.itemsize
    width = None if length is None else array_util.divide_exactly(length, size)
    return shapes.concat(sig.shapes[0], (width,))


@extensible
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as text, in the formats of C's printf.

    Args:
        input: a tensor of numbers or truth values.
        precision: digits behind the point, for floating numbers.
        scientific: write them as "1.5e+03".
        shortest: write them in the shorter of both ways.
        width: pad to this many characters.
        fill: what to pad with: " ", "0", "-" to pad on the right, "+" or "#", as in printf.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when the arguments do not go together.
    """
    return as_string_op(  # type: ignore[no-any-return]
        input, precision=precision, scientific=scientific, shortest=shortest, width=width,
        fill=fill, name=name,
    )  # fmt: skip


@extensible
def string_to_number(
    string_tensor: Any = None,
    out_type: Any = dtypes.float32,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The numbers that strings spell.

    Args:
        string_tensor: a string tensor.
        out_type: float32, float64, int32 or int64.
        name: a name for the operation.
        input: another name of `string_tensor`.

    Returns:
        A tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for what is no number, or an integer that is
            out of range.
    """
    strings = array_util.renamed("input", input, "string_tensor", string_tensor)
    return string_to_number_op(strings, out_type=out_type, name=name)  # type: ignore[no-any-return]


@extensible
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in web-safe base64.

    Args:
        input: a string tensor.
        pad: end with "=" up to a multiple of four characters.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.
    """
    return encode_base64_op(input, pad=pad, name=name)  # type: ignore[no-any-return]


@extensible
def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Strings out of web-safe base64, with padding or without.

    Args:
        input: a string tensor.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for what is no base64.
    """
    return decode_base64_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Decompresses strings.

    Args:
        bytes: a string tensor.
        compression_type: "", "ZLIB" or "GZIP".
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.DataLossError: at run time, for damaged data.
    """
    return decode_compressed_op(bytes, compression_type=compression_type, name=name)  # type: ignore[no-any-return]


@extensible
def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
    *,
    fixed_length: Any = None,
) -> Tensor:
    """Reads the bytes of strings as numbers.

    Args:
        input_bytes: a string tensor; all strings have one length, unless `fixed_length` is given.
        out_type: the type of the numbers.
        little_endian: whether low bytes come first.
        name: a name for the operation.
        bytes: a deprecated name of `input_bytes`.
        fixed_length: how many bytes of each string are read: longer ones are cut, shorter ones get
            zeros at their end. An argument of TensorFlow 2's.

    Returns:
        A tensor with one dimension more than `input_bytes`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when lengths differ or are no multiple of the
            size of a number.
    """
    strings = array_util.renamed("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    if fixed_length is not None:
        return decode_padded_raw_op(  # type: ignore[no-any-return]
            strings, fixed_length, out_type=out_type, little_endian=little_endian, name=name
        )
    return decode_raw_op(strings, out_type=out_type, little_endian=little_endian, name=name)  # type: ignore[no-any-return]


@extensible
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor in a serialized TensorProto.

    Args:
        serialized: a scalar string tensor.
        out_type: the type of the tensor.
        name: a name for the operation.

    Returns:
        A tensor of unknown static shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when it is none, or of another type.
    """
    return parse_tensor_op(serialized, out_type=out_type, name=name)  # type: ignore[no-any-return]


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialized TensorProto.

    Args:
        tensor: any tensor.
        name: a name for the operation.

    Returns:
        A scalar string tensor.
    """
    return serialize_tensor_op(tensor, name=name)  # type: ignore[no-any-return]
