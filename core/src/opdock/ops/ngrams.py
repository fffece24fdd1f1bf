"""N-grams: windows over rows of strings."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape, shape
from opdock.ops.fill import range
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_prod
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import ragged
from opdock.shapes import Shape

# `ngrams` is public as tf.strings.ngrams.
__all__: list[str] = []

string_ngrams_op = define_op(
    "StringNGrams",
    "data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits",
    "separator: string, ngram_widths: list(int) >= 0, left_pad: string, right_pad: string, "
    "pad_width: int, preserve_short_sequences: bool, Tsplits: {int32, int64} = DT_INT64",
).not_differentiable()


@string_ngrams_op.shape
def _string_ngrams_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 1)
    return [(None,), shapes.with_rank(sig.shapes[1], 1)]


@extensible
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The windows of some widths over the last dimension, joined.

    Args:
        data: a string tensor or RaggedTensor of known rank, 1 or more.
        ngram_width: a width, or a list of widths.
        separator: what to put between the strings of a window.
        pad_values: a string to put before and after each row, or two; none by default.
        padding_width: how often; `width - 1` times by default.
        preserve_short_sequences: make one window of all of a row that is too short for any.
        name: a name for the operation.

    Returns:
        A string RaggedTensor, or a tensor if `data` is one.

    Raises:
        TypeError: `pad_values` holds something that is no string.
        ValueError: a width is not positive, or the rank is not known.
    """
    with name_scope(name, "StringNGrams", [data]):
        left, right = _pads(pad_values)
        if padding_width is not None and padding_width < 1:
            raise ValueError("padding_width must be greater than 0.")
        if padding_width is not None and pad_values is None:
            raise ValueError("pad_values must be provided if padding_width is set.")
        widths = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
        if any(width < 1 for width in widths):
            raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
        pad = 0 if pad_values is None else -1 if padding_width is None else padding_width
        attrs = {
            "separator": separator, "ngram_widths": widths, "left_pad": left, "right_pad": right,
            "pad_width": pad, "preserve_short_sequences": preserve_short_sequences,
        }  # fmt: skip
        return _ngrams(ragged.to_tensor_or_ragged(data, dtypes.string, "data"), attrs)


def _pads(values: Any) -> tuple[Any, Any]:
    if values is None:
        return "", ""
    left, right = values[:2] if isinstance(values, (list, tuple)) else (values, values)
    if not isinstance(left, (str, bytes)) or not isinstance(right, (str, bytes)):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    return left, right


def _ngrams(data: Any, attrs: dict[str, Any]) -> Any:
    if not ragged.is_ragged(data):
        return _dense(data, attrs)
    if data.ragged_rank > 1:
        return data.with_values(_ngrams(data.values, attrs))
    values, splits = string_ngrams_op(data.flat_values, data.row_splits, **attrs)
    return ragged.ragged_tensor().from_row_splits(values, splits, validate=False)


def _dense(data: Tensor, attrs: dict[str, Any]) -> Tensor:
    rank = data.shape.ndims
    if rank is None:
        raise ValueError("Rank of data must be known.")
    if rank == 0:
        raise ValueError("Data must have rank>0")
    dims = shape(data, out_type=dtypes.int64)
    flat = reshape(data, [-1])
    # Rows of one length have windows in equal numbers.
    rows = reduce_prod(dims[:-1])
    values, _ = string_ngrams_op(flat, range(rows + 1, dtype=dtypes.int64) * dims[-1], **attrs)
    return reshape(values, concat([dims[:-1], [-1]], 0))
