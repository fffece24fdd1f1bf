"""Ops with which TensorFlow 2 has replaced some of 1.15's, for graphs that it wrote.

Each is a call of a function of 1.15's ops, which is made of the node's attributes: before any pass
looks, those ops stand in its place. No function of the library makes them.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.compat import as_str
from opdock.graph.nodes.operation import Tensor
from opdock.ops import diag, parsing
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import rank, reshape, shape, size
from opdock.ops.calls import call_gradient
from opdock.ops.cast import cast
from opdock.ops.compare import equal, logical_and, logical_or, not_equal
from opdock.ops.composed.image_files import decode_image
from opdock.ops.data_elements import batch_dataset_v2_op
from opdock.ops.data_functions import (
    parallel_interleave_dataset_v2_op,
    parallel_map_dataset_op,
)
from opdock.ops.elementary import log1p
from opdock.ops.fill import ones, ones_like, zeros_like
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.registry import ShapeSig
from opdock.ops.scan import cumsum
from opdock.ops.select import where_v2
from opdock.ops.support import array_util, common_shapes
from opdock.ops.support.data import ELEMENTS
from opdock.ops.support.standing import stands_for
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import Shape

__all__: list[str] = []

# ---------------------------------------------------------------- diagonals
_ALIGN = "T: type, align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'"


def _aligned(diagonals: Tensor, k: Tensor, rows: Any, cols: Any, attrs: Any, back: bool) -> Tensor:
    """Bands of diagonals as 1.15 has them, each from the left, moved to where they begin later.

    Args:
        diagonals: [..., count, length], or [..., length] of one diagonal.
        k: the one diagonal, or the lowest and the highest.
        rows, cols: of the matrices.
        attrs: `align` says on which sides the diagonals above and below the middle begin.
        back: the other way round.
    """
    above, below = as_str(attrs["align"]).split("_")
    lower, upper = reshape(k, [-1])[0], reshape(k, [-1])[-1]
    numbers = upper - range_(upper - lower + 1)
    longest = shape(diagonals)[-1]
    lengths = minimum(rows + minimum(numbers, 0), cols - maximum(numbers, 0))
    gaps = longest - lengths
    from_left = logical_or(
        logical_and(numbers >= 0, above == "LEFT"), logical_and(numbers <= 0, below == "LEFT")
    )
    moved = where_v2(from_left, zeros_like(gaps), gaps)
    moved = -moved if back else moved
    columns = (range_(longest) - reshape(moved, [-1, 1])) % maximum(longest, 1)
    places = columns + reshape(range_(size(numbers)) * longest, [-1, 1])
    flat = reshape(diagonals, [-1, size(numbers) * longest])
    return reshape(gather(flat, reshape(places, [-1]), axis=1), shape(diagonals))


@stands_for(
    "MatrixDiagV3",
    "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
    _ALIGN,
)
def matrix_diag_v3_op(
    attrs: Any, diagonal: Tensor, k: Tensor, num_rows: Tensor, num_cols: Tensor, padding: Tensor
) -> Tensor:
    """Matrices with a band of diagonals; a size that is not given is the least that fits."""
    lower, upper = reshape(k, [-1])[0], reshape(k, [-1])[-1]
    length = shape(diagonal)[-1]
    rows, cols = length - minimum(upper, 0), length + maximum(lower, 0)
    neither = logical_and(equal(num_rows, -1), equal(num_cols, -1))
    square = maximum(rows, cols)
    rows = where_v2(neither, square, where_v2(equal(num_rows, -1), rows, num_rows))
    cols = where_v2(neither, square, where_v2(equal(num_cols, -1), cols, num_cols))
    band = _aligned(diagonal, k, rows, cols, attrs, back=True)
    found: Tensor = diag.matrix_diag_v2_op(band, k, rows, cols, padding)
    return found


@stands_for("MatrixDiagPartV3", "input: T, k: int32, padding_value: T -> diagonal: T", _ALIGN)
def matrix_diag_part_v3_op(attrs: Any, source: Tensor, k: Tensor, padding: Tensor) -> Tensor:
    """A band of diagonals of matrices."""
    band = diag.matrix_diag_part_v2_op(source, k, padding)
    rows, cols = shape(source)[-2], shape(source)[-1]
    return _aligned(band, k, rows, cols, attrs, back=False)


@stands_for("MatrixSetDiagV3", "input: T, diagonal: T, k: int32 -> output: T", _ALIGN)
def matrix_set_diag_v3_op(attrs: Any, source: Tensor, diagonal: Tensor, k: Tensor) -> Tensor:
    """Matrices with another band of diagonals."""
    rows, cols = shape(source)[-2], shape(source)[-1]
    band = _aligned(diagonal, k, rows, cols, attrs, back=True)
    found: Tensor = diag.matrix_set_diag_v2_op(source, band, k)
    return found


matrix_diag_v3_op.shape(diag.matrix_diag_v2_shape)
matrix_diag_part_v3_op.shape(diag.matrix_diag_part_v2_shape)
matrix_set_diag_v3_op.shape(diag.matrix_set_diag_v2_shape)


# ---------------------------------------------------------------- numbers
@stands_for("Xlog1py", "x: T, y: T -> z: T", "T: {half, float, double, complex64, complex128}")
def xlog1py_op(attrs: Any, x: Tensor, y: Tensor) -> Tensor:
    """`x * log1p(y)`, and 0 where x is 0."""
    none = equal(x, zeros_like(x))
    safe = where_v2(none, zeros_like(y), y)
    return where_v2(none, zeros_like(x) * safe, x * log1p(safe))


xlog1py_op.shape(common_shapes.broadcast2)
for _op in (matrix_diag_v3_op, matrix_diag_part_v3_op, matrix_set_diag_v3_op, xlog1py_op):
    _op.gradient(call_gradient)


@stands_for(
    "DenseBincount", "input: Tidx, size: Tidx, weights: T -> output: T",
    "Tidx: {int32, int64}, T: {int32, int64, float, double}, binary_output: bool = false",
)  # fmt: skip
def dense_bincount_op(attrs: Any, numbers: Tensor, length: Tensor, weights: Tensor) -> Tensor:
    """How often each number occurs in a vector, or in each row of a matrix."""
    ids, length = cast(numbers, dtypes.int32), cast(length, dtypes.int32)
    # A vector is one row, and the rows lie side by side while they are counted.
    rows = reshape(ids, [-1, maximum(shape(ids)[-1], 1)])
    starts = reshape(range_(shape(rows)[0]) * length, [-1, 1])
    inside = logical_and(rows >= 0, rows < length)
    places = reshape(where_v2(inside, rows + starts, -ones_like(rows)), [-1])
    # No weights are weights of 1.
    missing = where_v2(equal(size(weights), 0), size(ids), 0)
    each = concat([reshape(weights, [-1]), ones(reshape(missing, [1]), attrs["T"])], 0)
    counts = unsorted_segment_sum(each, places, shape(rows)[0] * length)
    found = reshape(counts, concat([shape(ids)[:-1], [length]], 0))
    if attrs["binary_output"]:
        found = cast(not_equal(found, zeros_like(found)), attrs["T"])
    return found


@dense_bincount_op.shape
def _counts(sig: ShapeSig) -> Shape:
    source, length = sig.shapes[0], array_util.const_int(sig, 1)
    return None if source is None else (*source[:-1], length)


# ---------------------------------------------------------------- files and datasets
@stands_for(
    "DecodeImage", "contents: string -> image: dtype",
    "channels: int = 0, dtype: {uint8, uint16, float} = DT_UINT8, expand_animations: bool = true",
)  # fmt: skip
def decode_image_op(attrs: Any, contents: Tensor) -> Tensor:
    """An image of whichever format."""
    kinds = {name: attrs[name] for name in ("channels", "dtype", "expand_animations")}
    return decode_image(contents, **kinds)


_TYPES = "{float, int64, string}"


@stands_for(
    "ParseExampleV2",
    "serialized: string, names: string, sparse_keys: string, dense_keys: string, "
    "ragged_keys: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, "
    "sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense, "
    "ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
    f"Tdense: list({_TYPES}) >= 0, num_sparse: int >= 0, sparse_types: list({_TYPES}) >= 0, "
    f"ragged_value_types: list({_TYPES}) >= 0, ragged_split_types: list({{int32, int64}}) >= 0, "
    "dense_shapes: list(shape) >= 0",
)
def parse_example_v2_op(
    attrs: Any, serialized: Tensor, names: Tensor, sparse_keys: Tensor, dense_keys: Tensor,
    ragged_keys: Tensor, dense_defaults: list[Tensor],
) -> list[Tensor]:  # fmt: skip
    """Features of one Example or of many; those that are ragged are parsed as sparse ones."""
    sparse, ragged = attrs["num_sparse"], len(attrs["ragged_value_types"])
    keys = [sparse_keys[i] for i in range(sparse)] + [ragged_keys[i] for i in range(ragged)]
    found = parsing.parse_example_op(
        reshape(serialized, [-1]), reshape(names, [-1]), keys,
        [dense_keys[i] for i in range(len(dense_defaults))], dense_defaults,
        sparse_types=[*attrs["sparse_types"], *attrs["ragged_value_types"]],
        dense_shapes=attrs["dense_shapes"],
    )  # fmt: skip
    # Of one Example there is no dimension in front.
    first = 1 - rank(serialized)
    indices = [t[:, first:] for t in found.sparse_indices[:sparse]]
    sizes = [t[first:] for t in found.sparse_shapes[:sparse]]
    dense = [reshape(t, concat([shape(serialized), shape(t)[1:]], 0)) for t in found.dense_values]
    splits = [
        _splits(where, count, kind)
        for where, count, kind in zip(
            found.sparse_indices[sparse:], found.sparse_shapes[sparse:],
            attrs["ragged_split_types"], strict=True,
        )
    ]  # fmt: skip
    values = list(found.sparse_values)
    return [*indices, *values[:sparse], *sizes, *dense, *values[sparse:], *splits]


def _splits(indices: Tensor, sizes: Tensor, kind: dtypes.DType) -> Tensor:
    """Where the rows of a sparse matrix, which is filled from the left, begin and end."""
    rows = cast(indices[:, 0], dtypes.int32)
    lengths = unsorted_segment_sum(ones_like(rows), rows, cast(sizes[0], dtypes.int32))
    found: Tensor = cast(concat([[0], cumsum(lengths)], 0), kind)
    return found


@parse_example_v2_op.shape
def _parsed(sig: ShapeSig) -> list[Shape]:
    attrs, batch = sig.attrs, sig.shapes[0]
    rank_of = None if batch is None else 1 + len(batch)
    sparse = attrs["num_sparse"]
    return [
        *[(None, rank_of)] * sparse, *[(None,)] * sparse, *[(rank_of,)] * sparse,
        *(shapes.concat(batch, s) for s in attrs["dense_shapes"]),
        *[(None,)] * (2 * len(attrs["ragged_value_types"])),
    ]  # fmt: skip


def _sloppy(attrs: Any) -> bool:
    return as_str(attrs["deterministic"]) == "false"


def _same(attrs: Any, *names: str) -> dict[str, Any]:
    return {name: attrs[name] for name in (*names, "output_types", "output_shapes")}


_F = f"f: func, Targuments: list(type) >= 0, {ELEMENTS}, deterministic: string = 'default'"
_CAPTURED = "input_dataset: variant, other_arguments: Targuments"
_INTERLEAVED = f"{_CAPTURED}, cycle_length: int64, block_length: int64"


@stands_for(
    "ParallelMapDatasetV2", f"{_CAPTURED}, num_parallel_calls: int64 -> handle: variant",
    f"{_F}, use_inter_op_parallelism: bool = true, preserve_cardinality: bool = false",
)  # fmt: skip
def parallel_map_dataset_v2_op(
    attrs: Any, source: Tensor, captured: list[Tensor], calls: Tensor
) -> Any:
    """A dataset of what a function makes of each element."""
    return parallel_map_dataset_op(
        source, captured, cast(calls, dtypes.int32), sloppy=_sloppy(attrs),
        **_same(attrs, "f", "use_inter_op_parallelism", "preserve_cardinality"),
    )  # fmt: skip


@stands_for(
    "ParallelInterleaveDatasetV3",
    f"{_INTERLEAVED}, num_parallel_calls: int64 -> handle: variant",
    _F,
)
def parallel_interleave_dataset_v3_op(
    attrs: Any, source: Tensor, captured: list[Tensor], cycle: Tensor, block: Tensor, calls: Tensor
) -> Any:
    """A dataset of the elements of several datasets that a function makes, in turn."""
    return parallel_interleave_dataset_v2_op(
        source, captured, cycle, block, calls, sloppy=_sloppy(attrs), **_same(attrs, "f")
    )


@stands_for(
    "ParallelInterleaveDatasetV4",
    f"{_INTERLEAVED}, buffer_output_elements: int64, prefetch_input_elements: int64, "
    "num_parallel_calls: int64 -> handle: variant",
    _F,
)
def parallel_interleave_dataset_v4_op(
    attrs: Any, source: Tensor, captured: list[Tensor], cycle: Tensor, block: Tensor,
    buffered: Tensor, prefetched: Tensor, calls: Tensor,
) -> Any:  # fmt: skip
    """The same; how much is computed ahead changes no element."""
    return parallel_interleave_dataset_v2_op(
        source, captured, cycle, block, calls, sloppy=_sloppy(attrs), **_same(attrs, "f")
    )


@stands_for(
    "ParallelBatchDataset",
    "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool "
    "-> handle: variant",
    f"{ELEMENTS}, parallel_copy: bool = false, deterministic: string = 'default'",
)
def parallel_batch_dataset_op(
    attrs: Any, source: Tensor, count: Tensor, calls: Tensor, drops: Tensor
) -> Any:
    """A dataset of so many elements at once."""
    return batch_dataset_v2_op(source, count, drops, **_same(attrs))


_UNCHANGED = "input_dataset: variant -> handle: variant"


# What these tell the runtime of TensorFlow 2 changes no element.
@stands_for(
    "RewriteDataset", "input_dataset: variant, rewrite_name: string -> handle: variant", ELEMENTS
)
def rewrite_dataset_op(attrs: Any, source: Tensor, name: Tensor) -> Tensor:
    """The dataset, which a pass of TF's names a rewrite for."""
    return identity(source)


@stands_for(
    "OptionsDataset", _UNCHANGED, f"serialized_options: string, {ELEMENTS}"
)  # fmt: skip
def options_dataset_op(attrs: Any, source: Tensor) -> Tensor:
    """The dataset, with options."""
    return identity(source)


@stands_for("FinalizeDataset", _UNCHANGED, f"{ELEMENTS}, has_captured_ref: bool = false")
def finalize_dataset_op(attrs: Any, source: Tensor) -> Tensor:
    """The dataset, which ends a pipeline."""
    return identity(source)


def _handle(sig: ShapeSig) -> Shape:
    return ()


_DATASETS = (
    parallel_map_dataset_v2_op, parallel_interleave_dataset_v3_op,
    parallel_interleave_dataset_v4_op, parallel_batch_dataset_op, rewrite_dataset_op,
    options_dataset_op, finalize_dataset_op,
)  # fmt: skip
for _op in _DATASETS:
    _op.shape(_handle)


decode_image_op.shape(common_shapes.unknown)
for _op in (dense_bincount_op, decode_image_op, parse_example_v2_op, *_DATASETS):
    _op.not_differentiable()
