"""Serialized Examples, CSV and JSON as tensors: the ops, which `example_features` uses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import common_shapes
from opdock.shapes import Shape

__all__ = ["decode_csv", "decode_json_example"]

_TYPES = "{float, int64, string}"

parse_example_op = define_op(
    "ParseExample",
    "serialized: string, names: string, sparse_keys: Nsparse * string, "
    "dense_keys: Ndense * string, dense_defaults: Tdense -> sparse_indices: Nsparse * int64, "
    "sparse_values: sparse_types, sparse_shapes: Nsparse * int64, dense_values: Tdense",
    f"Nsparse: int >= 0, Ndense: int >= 0, sparse_types: list({_TYPES}) >= 0, "
    f"Tdense: list({_TYPES}) >= 0, dense_shapes: list(shape) >= 0",
)
parse_single_example_op = define_op(
    "ParseSingleExample",
    "serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, "
    "sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense",
    "num_sparse: int >= 0, sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, "
    f"sparse_types: list({_TYPES}) >= 0, Tdense: list({_TYPES}) >= 0, "
    "dense_shapes: list(shape) >= 0",
)
_SEQUENCE = (
    "Ncontext_sparse: int >= 0 = 0, Ncontext_dense: int >= 0 = 0, "
    "Nfeature_list_sparse: int >= 0 = 0, Nfeature_list_dense: int >= 0 = 0, "
    f"context_sparse_types: list({_TYPES}) >= 0 = [], Tcontext_dense: list({_TYPES}) >= 0 = [], "
    f"feature_list_dense_types: list({_TYPES}) >= 0 = [], "
    "context_dense_shapes: list(shape) >= 0 = [], "
    f"feature_list_sparse_types: list({_TYPES}) >= 0 = [], "
    "feature_list_dense_shapes: list(shape) >= 0 = []"
)
_SEQUENCE_OUTPUTS = (
    "context_sparse_indices: Ncontext_sparse * int64, "
    "context_sparse_values: context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
    "feature_list_sparse_values: feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
    "feature_list_dense_values: feature_list_dense_types"
)
parse_sequence_example_op = define_op(
    "ParseSequenceExample",
    "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense -> "
    f"{_SEQUENCE_OUTPUTS}, feature_list_dense_lengths: Nfeature_list_dense * int64",
    "feature_list_dense_missing_assumed_empty: list(string) >= 0, "
    "context_sparse_keys: list(string) >= 0, context_dense_keys: list(string) >= 0, "
    "feature_list_sparse_keys: list(string) >= 0, feature_list_dense_keys: list(string) >= 0, "
    + _SEQUENCE,
)
parse_single_sequence_example_op = define_op(
    "ParseSingleSequenceExample",
    "serialized: string, feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
    "feature_list_sparse_keys: Nfeature_list_sparse * string, "
    "feature_list_dense_keys: Nfeature_list_dense * string, "
    f"context_dense_defaults: Tcontext_dense, debug_name: string -> {_SEQUENCE_OUTPUTS}",
    _SEQUENCE,
)
decode_csv_op = define_op(
    "DecodeCSV", "records: string, record_defaults: OUT_TYPE -> output: OUT_TYPE",
    "OUT_TYPE: list({float, double, int32, int64, string}) >= 1, field_delim: string = ',', "
    "use_quote_delim: bool = true, na_value: string = '', select_cols: list(int) = []",
)  # fmt: skip
decode_json_example_op = define_op(
    "DecodeJSONExample", "json_examples: string -> binary_examples: string"
)
for _op in (
    parse_example_op, parse_single_example_op, parse_sequence_example_op,
    parse_single_sequence_example_op, decode_csv_op, decode_json_example_op,
):  # fmt: skip
    _op.not_differentiable()
decode_json_example_op.shape(common_shapes.unchanged)


# ---------------------------------------------------------------- many at once
@parse_single_example_op.rows
def _parse_examples(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """A batch of Examples, if what each has is of one size."""
    attrs = op.attrs
    if attrs["sparse_keys"] or any(rowed[1:]):
        return None
    if not all(shapes.is_fully_defined(s) for s in attrs["dense_shapes"]):
        return None
    return parse_example_op(
        inputs[0], [], [], list(attrs["dense_keys"]), list(inputs[1:]),
        sparse_types=[], dense_shapes=attrs["dense_shapes"],
    ).dense_values  # fmt: skip


@decode_csv_op.rows
def _decode_lines(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """Lines of any shape make columns of that shape."""
    if any(rowed[1:]):
        return None
    names = ("field_delim", "use_quote_delim", "na_value", "select_cols")
    own = {name: op.attrs[name] for name in names}
    return decode_csv_op(inputs[0], list(inputs[1:]), **own)


# ---------------------------------------------------------------- shapes
def _sparse(count: int, rank: int) -> list[Shape]:
    indices: list[Shape] = [(None, rank)] * count
    values: list[Shape] = [(None,)] * count
    return [*indices, *values, *[(rank,)] * count]


def _dense(prefix: Shape, dense_shapes: list[Shape]) -> list[Shape]:
    return [shapes.concat(prefix, shape) for shape in dense_shapes]


@parse_example_op.shape
def _parse_example_shape(sig: ShapeSig) -> list[Shape]:
    batch = shapes.with_rank(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 1)
    sparse = _sparse(sig.attrs["Nsparse"], 2)
    return sparse + _dense(batch, sig.attrs["dense_shapes"])


@parse_single_example_op.shape
def _parse_single_example_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    sparse = _sparse(len(sig.attrs["sparse_keys"]), 1)
    return sparse + _dense((), sig.attrs["dense_shapes"])


@parse_sequence_example_op.shape
def _parse_sequence_example_shape(sig: ShapeSig) -> list[Shape]:
    batch = shapes.with_rank(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 1)
    attrs = sig.attrs
    return [
        *_sparse(attrs["Ncontext_sparse"], 2),
        *_dense(batch, attrs["context_dense_shapes"]),
        *_sparse(attrs["Nfeature_list_sparse"], 3),
        *_dense((*batch, None), attrs["feature_list_dense_shapes"]),
        *[batch] * attrs["Nfeature_list_dense"],
    ]


@parse_single_sequence_example_op.shape
def _parse_single_sequence_example_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    shapes.with_rank(sig.shapes[1], 1)
    attrs = sig.attrs
    return [
        *_sparse(attrs["Ncontext_sparse"], 1),
        *_dense((), attrs["context_dense_shapes"]),
        *_sparse(attrs["Nfeature_list_sparse"], 2),
        *_dense((None,), attrs["feature_list_dense_shapes"]),
    ]


@decode_csv_op.shape
def _decode_csv_shape(sig: ShapeSig) -> list[Shape]:
    for default in sig.shapes[1:]:
        shapes.with_rank_at_most(default, 1)
        if default and (default[0] or 0) > 1:
            raise ValueError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )
    return [sig.shapes[0]] * sig.n_outputs


# ---------------------------------------------------------------- public functions
@extensible
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """The fields of lines of CSV (RFC 4180).

    Args:
        records: a string tensor; each string is a line.
        record_defaults: for each column a value for empty fields, which gives the column's type:
            float32, float64, int32, int64 or string. An empty one if a field is required.
        field_delim: what separates fields, one character.
        use_quote_delim: whether double quotes enclose fields.
        name: a name for the operation.
        na_value: another text that stands for an empty field.
        select_cols: the columns to read, in increasing order; all by default.

    Returns:
        A tensor for each column, of the shape of `records`.

    Raises:
        ValueError: the columns do not increase, or are not as many as the defaults.
        tf.errors.InvalidArgumentError: at run time, for a malformed line or a missing field.
    """
    if select_cols is not None:
        columns = list(select_cols)
        if any(a >= b for a, b in itertools.pairwise(columns)):
            raise ValueError("select_cols is not strictly increasing.")
        if columns and columns[0] < 0:
            raise ValueError("select_cols contains negative values.")
        if len(columns) != len(record_defaults):
            raise ValueError("Length of select_cols and record_defaults do not match.")
    return decode_csv_op(  # type: ignore[no-any-return]
        records, record_defaults, field_delim=field_delim, use_quote_delim=use_quote_delim,
        na_value=na_value, select_cols=select_cols, name=name,
    )  # fmt: skip


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples in JSON as serialized Examples.

    Args:
        json_examples: a string tensor; each string is an Example in protobuf's JSON.
        name: a name for the operation.

    Returns:
        A string tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for malformed JSON.
    """
    return decode_json_example_op(json_examples, name=name)  # type: ignore[no-any-return]
