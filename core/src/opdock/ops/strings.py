"""Ops on strings: joining, splitting, cutting, case and length."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import rank
from opdock.ops.fill import range
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util, common_shapes, ragged
from opdock.shapes import Shape

# The others are public in tf.strings alone.
__all__ = ["reduce_join", "string_join", "string_split", "string_strip", "substr"]

_UNIT = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"

string_join_op = define_op(
    "StringJoin", "inputs: N * string -> output: string", 'N: int >= 1, separator: string = ""'
)
string_split_op = define_op(
    "StringSplit",
    "input: string, delimiter: string -> indices: int64, values: string, shape: int64",
    "skip_empty: bool = true",
)
string_split_v2_op = define_op(
    "StringSplitV2",
    "input: string, sep: string -> indices: int64, values: string, shape: int64",
    "maxsplit: int = -1",
)
string_strip_op = define_op("StringStrip", "input: string -> output: string")
string_lower_op = define_op(
    "StringLower", "input: string -> output: string", 'encoding: string = ""'
)
string_upper_op = define_op(
    "StringUpper", "input: string -> output: string", 'encoding: string = ""'
)
string_length_op = define_op("StringLength", "input: string -> output: int32", _UNIT)
substr_op = define_op(
    "Substr", "input: string, pos: T, len: T -> output: string", f"T: {{int32, int64}}, {_UNIT}"
)
reduce_join_op = define_op(
    "ReduceJoin", "inputs: string, reduction_indices: int32 -> output: string",
    'keep_dims: bool = false, separator: string = ""',
)  # fmt: skip
unsorted_segment_join_op = define_op(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string",
    'separator: string = "", Tindices: {int32, int64}, Tnumsegments: {int32, int64} = DT_INT32',
)
for _op in (
    string_join_op, string_split_op, string_split_v2_op, string_strip_op, string_lower_op,
    string_upper_op, string_length_op, substr_op, reduce_join_op, unsorted_segment_join_op,
):  # fmt: skip
    _op.not_differentiable()
for _op in (string_strip_op, string_lower_op, string_upper_op, string_length_op):
    _op.shape(common_shapes.unchanged)


# ---------------------------------------------------------------- shapes
@string_join_op.shape
def _string_join_shape(sig: ShapeSig) -> Shape:
    # Scalars join with everything; all else must have one shape.
    if all(s == () for s in sig.shapes):
        return ()
    shape: Shape = None
    for other in sig.shapes:
        if other is not None and other != ():
            shape = shapes.merge(shape, other)
    return shape


@string_split_op.shape
@string_split_v2_op.shape
def _string_split_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 0)
    return [(None, 2), (None,), (2,)]


@substr_op.shape
def _substr_shape(sig: ShapeSig) -> Shape:
    strings, pos, length = sig.shapes
    if pos is not None and length is not None:
        shapes.with_rank(pos, len(length))
        if any(
            a is not None and b is not None and a != b for a, b in zip(pos, length, strict=True)
        ):
            raise ValueError(
                f"pos and len shapes must match: {shapes.text(pos)} vs. {shapes.text(length)}"
            )
    return shapes.broadcast(strings, pos)


@reduce_join_op.shape
def _reduce_join_shape(sig: ShapeSig) -> Shape:
    source, axes = sig.shapes[0], array_util.const_ints(sig, 1)
    shapes.with_rank_at_most(sig.shapes[1], 1)
    if source is None:
        return None
    kept: bool = sig.attrs["keep_dims"]
    if axes is None:
        return (None,) * len(source) if kept else None
    for axis in axes:
        if not -len(source) <= axis < len(source):
            raise ValueError(
                f"Invalid reduction dimension {axis} for input with {len(source)} dimensions."
            )
    gone = {axis % len(source) for axis in axes}
    if kept:
        return tuple(1 if i in gone else d for i, d in enumerate(source))
    return tuple(d for i, d in enumerate(source) if i not in gone)


@unsorted_segment_join_op.shape
def _unsorted_segment_join_shape(sig: ShapeSig) -> Shape:
    data, ids = sig.shapes[0], sig.shapes[1]
    shapes.with_rank(sig.shapes[2], 0)
    if data is None or ids is None:
        return None
    if len(ids) <= len(data):
        shapes.merge(data[: len(ids)], ids)
    return (array_util.const_int(sig, 2), *data[len(ids) :])


# ---------------------------------------------------------------- public functions
@extensible
def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Joins strings element by element.

    Args:
        inputs: a list of string tensors, all of one shape; scalars are repeated.
        separator: what to put between two strings.
        name: a name for the operation.

    Returns:
        A string tensor.
    """
    return string_join_op(inputs, separator=separator, name=name)  # type: ignore[no-any-return]


@extensible
def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Strings without the white space at their ends.

    Args:
        input: a string tensor.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.
    """
    return string_strip_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in lower case.

    Args:
        input: a string tensor.
        encoding: "" changes ASCII letters alone, "utf-8" all that Unicode has.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for another encoding.
    """
    return string_lower_op(input, encoding=encoding, name=name)  # type: ignore[no-any-return]


@extensible
def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings in upper case; see `lower`.

    Args:
        input: a string tensor.
        encoding: "utf-8", or empty for ASCII alone.
        name: a name for the operation.
    """
    return string_upper_op(input, encoding=encoding, name=name)  # type: ignore[no-any-return]


@extensible
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The lengths of strings.

    Args:
        input: a string tensor.
        name: a name for the operation.
        unit: "BYTE", or "UTF8_CHAR" for code points of strings in UTF-8.

    Returns:
        An int32 tensor of the same shape.
    """
    return string_length_op(input, unit=unit, name=name)  # type: ignore[no-any-return]


@extensible
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Parts of strings.

    Args:
        input: a string tensor.
        pos: int32 or int64, where the parts begin; from the end if negative.
        len: of the type and shape of `pos`: how long they are; a string may end before.
        name: a name for the operation.
        unit: what is counted: "BYTE" or "UTF8_CHAR".

    Returns:
        A string tensor of the shape to which `input` and `pos` broadcast.

    Raises:
        ValueError: `pos` and `len` differ in shape.
        tf.errors.InvalidArgumentError: at run time, for a position outside of a string.
    """
    return substr_op(input, pos, len, unit=unit, name=name)  # type: ignore[no-any-return]


@extensible
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Joins the strings along some dimensions.

    Args:
        inputs: a string tensor.
        axis: the dimensions, in the order of joining: the first changes fastest. All of them, the
            last one fastest, by default.
        keep_dims: a deprecated name of `keepdims`.
        separator: what to put between two strings.
        name: a name for the operation.
        reduction_indices: a deprecated name of `axis`.
        keepdims: keep the dimensions, with size 1.

    Returns:
        A string tensor.

    Raises:
        ValueError: a dimension is out of range, or an argument is given under both its names.
    """
    kept = array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims)
    axis = array_util.renamed("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(None, "ReduceJoin", [inputs, axis]):
        strings = convert_to_tensor(inputs)
        if axis is None:
            known = strings.raw_shape
            if known is None:
                axis = range(rank(strings) - 1, -1, -1)
            else:
                axis = np.arange(len(known) - 1, -1, -1, dtype=np.int32)
        return reduce_join_op(  # type: ignore[no-any-return]
            strings, axis, keep_dims=bool(kept), separator=separator, name=name
        )


@extensible
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings of each segment.

    Args:
        inputs: a string tensor.
        segment_ids: int32 or int64: the segment of each entry of the leading dimensions.
        num_segments: int32 or int64 scalar.
        separator: what to put between two strings.
        name: a name for the operation.

    Returns:
        A string tensor of shape `[num_segments] + inputs.shape[rank(segment_ids):]`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for a segment out of range.
    """
    return unsorted_segment_join_op(  # type: ignore[no-any-return]
        inputs, segment_ids, num_segments, separator=separator, name=name
    )


@extensible
def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Splits strings at each of a set of characters.

    Args:
        source: a 1-D string tensor.
        sep: a scalar string: each of its bytes separates; " " by default. An empty one splits into
            bytes.
        skip_empty: leave out empty parts.
        delimiter: a deprecated name of `sep`.
        result_type: "SparseTensor" or "RaggedTensor".
        name: a name for the operation.

    Returns:
        A SparseTensor of shape [len(source), most parts], or a RaggedTensor.

    Raises:
        ValueError: for another `result_type`.
    """
    _check_result_type(result_type)
    with name_scope(name, "StringSplit", [source]):
        sep = array_util.renamed("sep", sep, "delimiter", delimiter)
        mark = convert_to_tensor(" " if sep is None else sep, dtypes.string)
        strings = convert_to_tensor(source, dtypes.string)
        parts = SparseTensor(*string_split_op(strings, mark, skip_empty=skip_empty))
        return parts if result_type == "SparseTensor" else _rows(parts)


@extensible
def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Splits strings as `str.split` does.

    Args:
        input: a string tensor; one of unknown rank is taken for a vector.
        sep: a scalar string; runs of white space by default.
        maxsplit: how often to split at most, if positive.
        result_type: "SparseTensor" or "RaggedTensor".
        source: a deprecated name of `input`.
        name: a name for the operation.

    Returns:
        A SparseTensor or a RaggedTensor of rank `rank(input) + 1`; as a RaggedTensor, a vector for
        a scalar.

    Raises:
        ValueError: for another `result_type`.
    """
    _check_result_type(result_type)
    input = array_util.renamed("input", input, "source", source)
    with name_scope(name, "StringSplit", [input]):
        strings = ragged.to_tensor_or_ragged(input, dtypes.string, "input")
        if result_type == "SparseTensor" and strings.shape.ndims in (1, None):
            return _split_vector(strings, sep, maxsplit)
        parts = _split_ragged(strings, sep, maxsplit)
        return parts.to_sparse() if result_type == "SparseTensor" else parts


def split_v2(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """`tf.strings.split` as TF 2 has it: its result is ragged."""
    return split(input, sep, maxsplit, "RaggedTensor", name=name)


def _check_result_type(result_type: str) -> None:
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")


def _split_vector(strings: Any, sep: Any, maxsplit: int) -> SparseTensor:
    mark = convert_to_tensor("" if sep is None else sep, dtypes.string)
    return SparseTensor(*string_split_v2_op(strings, mark, maxsplit=maxsplit))


def _split_ragged(strings: Any, sep: Any, maxsplit: int) -> Any:
    """The parts of strings of any rank; of an unknown one as of a vector."""

    def rows(flat: Any) -> Any:
        return _rows(_split_vector(flat, sep, maxsplit))

    return rows(strings) if strings.shape.ndims is None else ragged.map_vector(strings, rows)


def _rows(parts: SparseTensor) -> Any:
    """The rows of a matrix of strings as a RaggedTensor."""
    return ragged.ragged_tensor().from_value_rowids(
        values=parts.values, value_rowids=parts.indices[:, 0], nrows=parts.dense_shape[0],
        validate=False,
    )  # fmt: skip


@extensible
def string_bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of strings.

    Args:
        input: a string tensor or RaggedTensor of known rank.
        name: a name for the operation.

    Returns:
        A RaggedTensor of rank `rank(input) + 1`; a vector for a scalar.

    Raises:
        ValueError: the rank is not known.
    """
    with name_scope(name, "StringsByteSplit", [input]):
        strings = ragged.to_tensor_or_ragged(input, dtypes.string, "input")
        return ragged.map_vector(
            strings, lambda flat: _rows(SparseTensor(*string_split_op(flat, "", skip_empty=False)))
        )
