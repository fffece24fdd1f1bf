"""CTC over dense labels: the loss with any class as the blank, and what prepares labels for it."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape, shape, size
from opdock.ops.cast import cast
from opdock.ops.compare import logical_and, not_equal
from opdock.ops.composed.functional import map_fn
from opdock.ops.composed.masks import boolean_mask, sequence_mask
from opdock.ops.ctc import ctc_loss
from opdock.ops.fill import ones_like
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.padding import pad
from opdock.ops.reduce import reduce_max, reduce_sum
from opdock.ops.scatter import scatter_nd
from opdock.ops.select import where, where_op
from opdock.ops.sets import unique

__all__ = [
    "collapse_repeated", "ctc_loss_dense", "ctc_loss_v2", "ctc_unique_labels",
    "dense_labels_to_sparse",
]  # fmt: skip


def _dimension(tensor: Tensor, axis: int) -> Any:
    """A dimension as a number, or as a tensor where it is not known."""
    known = None if tensor.raw_shape is None else tensor.raw_shape[axis]
    return shape(tensor)[axis] if known is None else known


@extensible
def ctc_loss_v2(
    labels: Any, logits: Any, label_length: Any, logit_length: Any,
    logits_time_major: bool = True, unique: Any = None, blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The negative log probability of label sequences, summed over all their alignments.

    Args:
        labels: classes [batch, max label length], or an int32 SparseTensor of that shape.
        logits: floats [time, batch, num_classes], or batch first when not `logits_time_major`.
        label_length: [batch], how many labels of each entry count; of no use for sparse labels.
        logit_length: [batch], how many steps of each entry count.
        logits_time_major: whether time is the first dimension of `logits`.
        unique: accepted for TensorFlow's signature (see `ctc_unique_labels`).
        blank_index: the class that is the blank, counted from the end if negative; 0 for dense
            labels if not given.
        name: a name for the operations.

    Returns:
        The losses [batch].

    Raises:
        ValueError: `labels` are sparse, and no `blank_index` is given.
        InvalidArgumentError: when run, a label is out of range or does not fit its time.
    """
    if not isinstance(labels, SparseTensor):
        return ctc_loss_dense(
            labels, logits, label_length, logit_length, logits_time_major, unique,
            0 if blank_index is None else blank_index, name,
        )  # fmt: skip
    if blank_index is None:
        raise ValueError("blank_index must be given when using SparseTensor labels.")
    with name_scope(name, "ctc_loss", [labels.values, logits]):
        logits, values = _blank_last(
            convert_to_tensor(logits, name="logits"), labels.values, blank_index
        )
        sparse = SparseTensor(labels.indices, values, labels.dense_shape)
        return ctc_loss(sparse, logits, logit_length, time_major=logits_time_major)


def ctc_loss_dense(
    labels: Any, logits: Any, label_length: Any, logit_length: Any,
    logits_time_major: bool = True, unique: Any = None, blank_index: int = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`ctc_loss_v2` of dense labels."""
    with name_scope(name, "ctc_loss_dense", [logits, labels, label_length, logit_length]):
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        label_length = convert_to_tensor(label_length, name="label_length")
        logit_length = cast(convert_to_tensor(logit_length, name="logit_length"), dtypes.int32)
        if not logits_time_major:
            logits = transpose(logits, [1, 0, 2])
        logits, labels = _blank_last(logits, labels, blank_index)
        sparse = dense_labels_to_sparse(labels, label_length)
        return ctc_loss(sparse, logits, logit_length)


def _blank_last(logits: Tensor, labels: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Logits whose last class is the blank, where the op has it, and the labels after that."""
    classes = _dimension(logits, 2)
    if blank < 0:
        blank = blank + classes
    parts = [logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank : blank + 1]]
    return concat(parts, 2), where(labels < blank, labels, labels - 1)


def dense_labels_to_sparse(dense: Any, length: Any) -> SparseTensor:
    """Labels [batch, max label length] as an int32 SparseTensor of those that count."""
    dense = convert_to_tensor(dense)
    mask = sequence_mask(length, maxlen=_dimension(dense, 1))
    indices = where_op(mask)
    values = cast(boolean_mask(dense, mask), dtypes.int32)
    rows = cast(shape(dense)[0], dtypes.int64)
    longest = cast(reduce_max(length), dtypes.int64)
    return SparseTensor(indices, values, [rows, longest])


@extensible
def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> Any:
    """Merges repeated labels of each sequence.

    Args:
        labels: [batch, max label length].
        seq_length: [batch], how many labels of each entry count.
        name: a name for the operations.

    Returns:
        The labels that are left, padded with zeros to the longest sequence, and how many they are.
    """
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        seq_length = convert_to_tensor(seq_length, name="seq_length")
        first = ones_like(labels[:, :1], dtype=dtypes.bool)
        new = concat([first, not_equal(labels[:, 1:], labels[:, :-1])], axis=1)
        kept = logical_and(new, sequence_mask(seq_length, maxlen=_dimension(labels, 1)))
        lengths = reduce_sum(cast(kept, dtypes.int32), axis=1)
        full = sequence_mask(lengths, maxlen=reduce_max(lengths))
        # Row by row both masks have as many places, so the order of places is that of labels.
        places = cast(where_op(reshape(full, [-1])), dtypes.int32)
        flat = scatter_nd(places, boolean_mask(labels, kept), [size(full)])
        return reshape(flat, shape(full)), cast(lengths, seq_length.dtype)


@extensible
def ctc_unique_labels(labels: Any, name: str | None = None) -> Any:
    """The different labels of each row, padded with zeros, and which of them each label is.

    Args:
        labels: [batch, max label length].
        name: a name for the operations.

    Returns:
        int64 and int32 tensors of the shape of `labels`.
    """
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")

        def of_row(row: Tensor) -> list[Tensor]:
            found, which = unique(row)
            padded = pad(found, [[0, _dimension(which, 0) - size(found)]])
            return [cast(padded, dtypes.int64), which]

        return map_fn(of_row, labels, dtype=[dtypes.int64, dtypes.int32])
