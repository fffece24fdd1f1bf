"""Embedding lookups: rows of one table, or of one that is partitioned over several."""

from __future__ import annotations

import builtins
import logging
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import SparseTensor, internal_convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops.array import expand_dims, rank, reshape, shape, size
from opdock.ops.cast import cast
from opdock.ops.fill import fill, range, zeros_like
from opdock.ops.gather import gather
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.partition import dynamic_partition, parallel_dynamic_stitch_op
from opdock.ops.registry import get
from opdock.shapes import Shape

__all__: list[str] = []  # everything here lives in the namespace tf.nn

_COMBINERS = ("mean", "sqrtn", "sum")


@extensible
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Looks up rows of an embedding table.

    Args:
        params: the table, or a list of tensors among which its rows are divided.
        ids: an int32 or int64 tensor of row numbers.
        partition_strategy: how rows are divided: "mod" (row i is in part i % n) or "div"
            (contiguous ranges).
        name: a name for the operations.
        validate_indices: ignored; indices are always checked.
        max_norm: rows with a larger l2-norm are scaled down to it.

    Returns:
        A tensor of shape `ids.shape + params.shape[1:]`.

    Raises:
        ValueError: `params` is empty or the strategy is unknown.
    """
    tables = _tables(params)
    with name_scope(name, "embedding_lookup", [*tables, ids]) as scope:
        if not any(hasattr(p, "handle") for p in tables):
            tables = [
                internal_convert_to_tensor_or_indexed_slices(p, name=f"params_{i}")
                for i, p in enumerate(tables)
            ]
        ids = convert_to_tensor(ids, name="ids")
        if len(tables) == 1:
            with colocate_with(_producer(tables[0])):
                found = _clipped(gather(tables[0], ids, name=scope), ids, max_norm)
            # The identity is free of the colocation with the table.
            return identity(found)
        return _partitioned(tables, ids, partition_strategy, scope, max_norm)


def _tables(params: Any) -> list[Any]:
    if params is None or (isinstance(params, (list, tuple)) and not params):
        raise ValueError("Need to specify params")
    if isinstance(params, (list, tuple)):
        return list(params)
    # A partitioned variable stands for its parts.
    return list(params) if hasattr(params, "_get_variable_list") else [params]


def _producer(table: Any) -> Any:
    return table.handle if hasattr(table, "handle") else table


def _static_shape(table: Any) -> Shape:
    return shapes.as_shape(table.get_shape())


def _partitioned(
    tables: list[Any], ids: Tensor, strategy: str, scope: str, max_norm: float | None
) -> Tensor:
    n = len(tables)
    flat = reshape(ids, [-1])
    positions = range(size(flat))
    part, row = _assign(tables, flat, strategy)
    part = cast(part, dtypes.int32)
    rows = dynamic_partition(row, part, n)
    places = dynamic_partition(positions, part, n)
    found = []
    for table, picked in zip(tables, rows, strict=True):
        with colocate_with(_producer(table)):
            found.append(gather(table, picked))
    out: Tensor = parallel_dynamic_stitch_op(places, found, name=scope)
    element: Shape = None
    for table in tables:
        whole = _static_shape(table)
        element = shapes.merge(element, None if whole is None else whole[1:])
    if shapes.is_fully_defined(element):
        tail: Any = list(element or ())
    else:
        with colocate_with(_producer(tables[0])):
            tail = shape(tables[0])[1:]
    tail = convert_to_tensor(tail, dtypes.int32)
    out = reshape(out, concat([shape(ids), tail], 0))
    out.set_shape(shapes.concat(ids.raw_shape, element))
    return _clipped(out, ids, max_norm)


def _assign(tables: list[Any], ids: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """(part, row in the part) of each id."""
    n = len(tables)
    if strategy == "mod":
        return ids % n, ids // n
    if strategy != "div":
        raise ValueError("Unrecognized partition strategy: " + strategy)
    total = _total_rows(tables, ids)
    per_part, extras = total // n, total % n
    # The first parts hold one row more each.
    part = get("Maximum")(ids // (per_part + 1), (ids - extras) // per_part)
    row = get("Select")(part < extras, ids % (per_part + 1), (ids - extras) % per_part)
    return part, row


def _total_rows(tables: list[Any], ids: Tensor) -> Tensor:
    from opdock.ops.reduce import reduce_sum

    counts: list[Any] = []
    for table in tables:
        whole = _static_shape(table)
        if whole is not None and whole[0] is not None:
            counts.append(whole[0])
        else:
            with colocate_with(_producer(table)):
                counts.append(shape(table)[0])
    if all(isinstance(c, int) for c in counts):
        return convert_to_tensor(sum(counts), ids.dtype)
    return reduce_sum(cast(stack(counts), ids.dtype))


def _clipped(rows: Tensor, ids: Any, max_norm: float | None) -> Tensor:
    if max_norm is None:
        return rows
    from opdock.ops.clip import clip_by_norm

    first, known = ids.raw_shape, rows.raw_shape
    axes: Any
    if first is not None and known is not None:
        axes = list(builtins.range(len(first), len(known)))
    else:
        axes = range(rank(ids), rank(rows))
    return clip_by_norm(rows, max_norm, axes=axes)  # type: ignore[no-any-return]


@extensible
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """Looks up the rows for each line of a SparseTensor and combines them.

    Args:
        params: the table, or a list of tensors among which its rows are divided.
        sp_ids: a SparseTensor [lines, positions] of row numbers.
        sp_weights: a SparseTensor of weights with the same entries, or None for 1.
        partition_strategy: "mod" or "div", see `embedding_lookup`.
        name: a name for the operations.
        combiner: "sum"; "mean" (the sum over the sum of the weights, the default); or "sqrtn" (the
            sum over the root of the sum of the squared weights).
        max_norm: rows with a larger l2-norm are scaled down before they are combined.

    Returns:
        A tensor with one combined row for each line.

    Raises:
        TypeError: `sp_ids` or `sp_weights` is not a SparseTensor.
        ValueError: the combiner is unknown.
    """
    if combiner is None:
        logging.getLogger("opdock").warning(
            'The default value of combiner will change from "mean" to "sqrtn" after 2016/11/01.'
        )
        combiner = "mean"
    if combiner not in _COMBINERS:
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    tables = _tables(params)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError("sp_weights must be either None or SparseTensor")
    if sp_weights is not None:
        for part in ("values", "indices", "dense_shape"):
            known = getattr(sp_ids, part).shape
            known.assert_is_compatible_with(getattr(sp_weights, part).shape)
    with name_scope(name, "embedding_lookup_sparse", [*tables, sp_ids.values]) as scope:
        from opdock.ops.sets import unique

        lines = cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, which = unique(sp_ids.values)
        rows = embedding_lookup(
            tables, ids, partition_strategy=partition_strategy, max_norm=max_norm
        )
        if rows.dtype in (dtypes.float16, dtypes.bfloat16):
            rows = cast(rows, dtypes.float32)
        if sp_weights is None:
            op = {"sum": "SparseSegmentSum", "mean": "SparseSegmentMean"}.get(
                combiner, "SparseSegmentSqrtN"
            )
            return get(op)(rows, which, lines, name=scope)  # type: ignore[no-any-return]
        return _weighted(gather(rows, which), sp_weights.values, lines, combiner, scope)


def _weighted(rows: Tensor, weights: Tensor, lines: Tensor, combiner: str, scope: str) -> Tensor:
    from opdock.ops.composed.division import div
    from opdock.ops.segment import segment_sum

    column = cast(weights, rows.dtype)
    known = column.raw_shape
    ones = fill(expand_dims(rank(rows) - 1, 0), 1)
    column = reshape(column, concat([shape(column), ones], 0))
    if rows.raw_shape is not None and known is not None:
        column.set_shape((*known, *[1] * (len(rows.raw_shape) - 1)))
    rows = rows * column
    if combiner == "sum":
        return segment_sum(rows, lines, name=scope)
    total = segment_sum(rows, lines)
    if combiner == "mean":
        return div(total, segment_sum(column, lines), name=scope)
    return div(total, get("Sqrt")(segment_sum(column * column, lines)), name=scope)


@extensible
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """`embedding_lookup_sparse` for ids of any rank, with invalid and missing entries.

    Negative ids and, unless they are summed, weights that are not positive are left out. A line
    without entries gives the row `default_id`, or zeros.

    Args:
        embedding_weights: the table, or a list of tensors among which its rows are divided.
        sparse_ids: a SparseTensor of row numbers; its last dimension is combined.
        sparse_weights: a SparseTensor of weights with the same entries, or None for 1.
        combiner: "sum", "mean" or "sqrtn", see `embedding_lookup_sparse`.
        default_id: the row for lines without entries.
        name: a name for the operations.
        partition_strategy: "div" or "mod", see `embedding_lookup`.
        max_norm: rows with a larger l2-norm are scaled down before they are combined.

    Returns:
        A dense tensor of shape `sparse_ids.dense_shape[:-1] + embedding_weights.shape[1:]`.

    Raises:
        ValueError: the table is missing, or its type is not that of the weights.
    """
    from opdock.ops.reduce import reduce_prod

    tables = _tables(embedding_weights)
    if sparse_weights is not None and any(
        dtypes.as_dtype(t.dtype).base_dtype is not sparse_weights.dtype.base_dtype for t in tables
    ):
        raise ValueError("The types of the embedding weights and of sparse_weights differ")
    with name_scope(name, "embedding_lookup", [*tables, sparse_ids.values]) as scope:
        full = sparse_ids.dense_shape
        known = sparse_ids.get_shape().ndims
        lines = stack([reduce_prod(full[:-1]), full[-1]])
        indices, flat_shape = get("SparseReshape")(sparse_ids.indices, full, lines)
        weights: Any = None
        if sparse_weights is not None:  # of the same entries, as far as is known
            weights = SparseTensor(sparse_ids.indices, sparse_weights.values, full).values
        keep = sparse_ids.values >= 0
        if weights is not None and combiner != "sum":
            keep = get("LogicalAnd")(keep, weights > 0)
        rows = reshape(get("Where")(keep), [-1])
        indices, ids = gather(indices, rows), gather(sparse_ids.values, rows)
        fill_rows = get("SparseFillEmptyRows")
        default = convert_to_tensor(default_id or 0, ids.dtype)
        filled = fill_rows(indices, ids, flat_shape, default)
        if weights is not None:
            one = convert_to_tensor(1, weights.dtype)
            extended = fill_rows(indices, gather(weights, rows), flat_shape, one)
            weights = SparseTensor(extended[0], extended[1], flat_shape)
        out = embedding_lookup_sparse(
            tables,
            SparseTensor(filled[0], filled[1], flat_shape),
            weights,
            combiner=combiner,
            partition_strategy=partition_strategy,
            name=None if default_id is None else scope,
            max_norm=max_norm,
        )
        if default_id is None:
            out = get("Select")(filled[2], zeros_like(out), out)
        lead = cast(full, dtypes.int32)[:-1]
        result = reshape(out, concat([lead, shape(out)[1:]], 0))
        if known is not None and out.raw_shape is not None:
            lead_shape = shapes.as_shape(sparse_ids.get_shape()) or (None,) * known
            result.set_shape((*lead_shape[:-1], *out.raw_shape[1:]))
        return result
