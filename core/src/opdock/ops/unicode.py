"""Text in Unicode: code points out of and into strings, other codes, scripts."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.fill import range
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_prod
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util, common_shapes, ragged
from opdock.shapes import Shape

# All are public in tf.strings alone.
__all__: list[str] = []

_POLICY = "errors: {'strict', 'replace', 'ignore'} = 'replace', replacement_char: int = 65533"
_DECODE = (
    f"input_encoding: string, {_POLICY}, replace_control_characters: bool = false, "
    "Tsplits: {int32, int64} = DT_INT64"
)
_OUTPUT = "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}"

unicode_decode_op = define_op(
    "UnicodeDecode", "input: string -> row_splits: Tsplits, char_values: int32", _DECODE
)
unicode_decode_with_offsets_op = define_op(
    "UnicodeDecodeWithOffsets",
    "input: string -> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
    _DECODE,
)
unicode_encode_op = define_op(
    "UnicodeEncode", "input_values: int32, input_splits: Tsplits -> output: string",
    f"errors: {{'ignore', 'replace', 'strict'}} = 'replace', {_OUTPUT}, "
    "replacement_char: int = 65533, Tsplits: {int32, int64} = DT_INT64",
)  # fmt: skip
unicode_transcode_op = define_op(
    "UnicodeTranscode", "input: string -> output: string",
    f"input_encoding: string, {_OUTPUT}, {_POLICY}, replace_control_characters: bool = false",
)  # fmt: skip
unicode_script_op = define_op("UnicodeScript", "input: int32 -> output: int32")
for _op in (
    unicode_decode_op, unicode_decode_with_offsets_op, unicode_encode_op, unicode_transcode_op,
    unicode_script_op,
):  # fmt: skip
    _op.not_differentiable()
unicode_transcode_op.shape(common_shapes.unchanged)
unicode_script_op.shape(common_shapes.unchanged)


@unicode_decode_op.shape
@unicode_decode_with_offsets_op.shape
def _unicode_decode_shape(sig: ShapeSig) -> list[Shape]:
    rows = array_util.add(shapes.num_elements(sig.shapes[0]), 1)
    chars: list[Shape] = [(None,)] * (sig.n_outputs - 1)
    return [(rows,), *chars]


@unicode_encode_op.shape
def _unicode_encode_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    (splits,) = shapes.with_rank(sig.shapes[1], 1)
    return (array_util.subtract(splits, 1),)


# ---------------------------------------------------------------- public functions
@extensible
def unicode_script(input: Any, name: str | None = None) -> Tensor:
    """The script of each code point, by ICU's numbers.

    Args:
        input: an int32 tensor of code points.
        name: a name for the operation.

    Returns:
        An int32 tensor of the same shape; -1 for what is no code point.
    """
    return unicode_script_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Strings of one encoding in another.

    Args:
        input: a string tensor.
        input_encoding: the name of an encoding, such as "UTF-8", "UTF-16" or "windows-1252".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what becomes of malformed parts: "strict" raises, "replace" puts
            `replacement_char` in their place, "ignore" leaves them out.
        replacement_char: a code point.
        replace_control_characters: treat the code points 0 to 31 as malformed too.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for an unknown encoding, a replacement that is
            no code point, and malformed strings if `errors` is "strict".
    """
    return unicode_transcode_op(  # type: ignore[no-any-return]
        input, input_encoding=input_encoding, output_encoding=output_encoding, errors=errors,
        replacement_char=replacement_char, replace_control_characters=replace_control_characters,
        name=name,
    )  # fmt: skip


@extensible
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Strings of code points.

    Args:
        input: an int32 tensor or RaggedTensor of rank 1 or more; a string is made of each row.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what becomes of numbers that are no code points: "strict", "replace" or "ignore".
        replacement_char: a code point.
        name: a name for the operation.

    Returns:
        A string tensor with one dimension less.

    Raises:
        ValueError: the rank is not known, or 0.
    """
    with name_scope(name, "UnicodeEncode", [input]):
        points = ragged.to_tensor_or_ragged(input, dtypes.int32, "input")
        rank = points.shape.ndims
        if rank is None:
            raise ValueError("Rank of input_tensor must be statically known.")
        if rank == 0:
            raise ValueError("input_tensor's rank must be at least 1.")
        policy = {
            "output_encoding": output_encoding, "errors": errors,
            "replacement_char": replacement_char,
        }  # fmt: skip
        return _encode_rows(points, policy)


def _encode_rows(points: Any, policy: dict[str, Any]) -> Any:
    if not ragged.is_ragged(points):
        dims = shape(points, out_type=dtypes.int64)
        width = dims[-1]
        flat = reshape(points, [-1])
        rows = 1 if points.shape.ndims == 1 else reduce_prod(dims[:-1])
        texts = unicode_encode_op(flat, range(rows + 1, dtype=dtypes.int64) * width, **policy)
        known = points.raw_shape[:-1]
        return reshape(texts, dims[:-1] if None in known else list(known))
    if points.flat_values.shape.ndims > 1:
        return points.with_flat_values(_encode_rows(points.flat_values, policy))
    if points.ragged_rank > 1:
        return points.with_values(_encode_rows(points.values, policy))
    return unicode_encode_op(points.values, points.row_splits, **policy)


@extensible
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of strings.

    Args:
        input: a string tensor or RaggedTensor of known rank.
        input_encoding: as for `unicode_transcode`.
        errors: as for `unicode_transcode`.
        replacement_char: a code point.
        replace_control_characters: as for `unicode_transcode`.
        name: a name for the operation.

    Returns:
        An int32 RaggedTensor with one dimension more; a vector for a scalar.

    Raises:
        ValueError: the rank is not known.
    """
    with name_scope(name, "UnicodeDecode", [input]):
        return _decode(
            input, unicode_decode_op, input_encoding=input_encoding, errors=errors,
            replacement_char=replacement_char,
            replace_control_characters=replace_control_characters,
        )[0]  # fmt: skip


@extensible
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The code points of strings, and the bytes at which they begin; see `unicode_decode`.

    Args:
        input: a string tensor.
        input_encoding: its encoding, by a name that ICU knows, such as "UTF-8".
        errors: what becomes of malformed text: "replace", "strict" or "ignore".
        replacement_char: the code point that replaces it.
        replace_control_characters: whether control characters are replaced too.
        name: a name for the operation.

    Returns:
        Two RaggedTensors, int32 code points and int64 offsets; vectors for a scalar.
    """
    with name_scope(name, "UnicodeDecodeWithOffsets", [input]):
        points, offsets = _decode(
            input, unicode_decode_with_offsets_op, input_encoding=input_encoding, errors=errors,
            replacement_char=replacement_char,
            replace_control_characters=replace_control_characters,
        )  # fmt: skip
        return points, offsets


@extensible
def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of strings, each a string of its own in the same encoding.

    The arguments are those of `unicode_decode`.

    Args:
        input: a string tensor.
        input_encoding: its encoding, by a name that ICU knows, such as "UTF-8".
        errors: what becomes of malformed text: "replace", "strict" or "ignore".
        replacement_char: the code point that replaces it.
        name: a name for the operation.

    Returns:
        A string RaggedTensor with one dimension more; a vector for a scalar.
    """
    with name_scope(name, "UnicodeSplit", [input]):
        points = _decode(
            input, unicode_decode_op, input_encoding=input_encoding, errors=errors,
            replacement_char=replacement_char,
        )[0]  # fmt: skip
        return _characters(points, input_encoding, errors, replacement_char)


@extensible
def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The characters of strings, and the bytes at which they begin; see `unicode_split`.

    Args:
        input: a string tensor.
        input_encoding: its encoding, by a name that ICU knows, such as "UTF-8".
        errors: what becomes of malformed text: "replace", "strict" or "ignore".
        replacement_char: the code point that replaces it.
        name: a name for the operation.

    Returns:
        Two RaggedTensors, strings and int64 offsets; vectors for a scalar.
    """
    with name_scope(name, "UnicodeSplitWithOffsets", [input]):
        points, offsets = _decode(
            input, unicode_decode_with_offsets_op, input_encoding=input_encoding, errors=errors,
            replacement_char=replacement_char,
        )  # fmt: skip
        return _characters(points, input_encoding, errors, replacement_char), offsets


def _characters(points: Any, encoding: str, errors: str, replacement_char: int) -> Any:
    """A string of each code point."""

    def strings(flat: Any) -> Any:
        return unicode_encode(expand_dims(flat, -1), encoding, errors, replacement_char)

    return (
        points.with_flat_values(strings(points.flat_values))
        if ragged.is_ragged(points)
        else strings(points)
    )


def _decode(input: Any, op: Any, **attrs: Any) -> list[Any]:
    """The results of a decoding op but the first, with the shape of `input` and one dimension."""
    strings = ragged.to_tensor_or_ragged(input, dtypes.string, "input")
    rank = strings.shape.ndims
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 0:
        return list(op(stack([strings]), **attrs)[1:])
    decoded: list[Any] = []

    def rows(flat: Any) -> Any:
        splits, *values = op(flat, **attrs)
        made = ragged.ragged_tensor()
        decoded.extend(made.from_row_splits(v, splits, validate=False) for v in values)
        return decoded[0]

    first = ragged.map_vector(strings, rows)
    return [first, *(ragged.with_same_rows(first, more) for more in decoded[1:])]
