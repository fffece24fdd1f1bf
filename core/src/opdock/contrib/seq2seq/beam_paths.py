"""Arrays of a cell's state, sorted as the beams have grown from each other."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.api import logging
from opdock.contrib.seq2seq.attention_base import size_of
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.array import reshape, shape
from opdock.ops.beam_search import gather_tree
from opdock.ops.cast import cast
from opdock.ops.composed.masks import sequence_mask
from opdock.ops.fill import range as tensor_range
from opdock.ops.gather import gather_nd
from opdock.ops.joining import stack
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_max
from opdock.ops.select import where
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape

__all__ = ["can_sort", "gather_tree_from_array", "sorted_beams"]

_HINT = (
    "Consider setting reorder_tensor_arrays to False to disable TensorArray reordering during "
    "the beam search."
)


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Tensor:
    """Sorts what was written in each step as the beams have grown from each other.

    Args:
        t: a tensor [time, batch * beams, ...] or [time, batch, beams, ...].
        parent_ids: an int32 tensor [time, batch, beams]: the beam that each grew from.
        sequence_length: an int tensor [batch, beams]: the lengths of the beams.

    Returns:
        A tensor like `t`.
    """
    parent_ids = convert_to_tensor(parent_ids)
    time, batch, width = (size_of(parent_ids, axis) for axis in range(3))
    own = tile(reshape(tensor_range(width), [1, 1, -1]), [time, batch, 1])
    longest = cast(reduce_max(sequence_length, axis=1), dtypes.int32)
    places = gather_tree(own, parent_ids, longest, width + 1)
    inside = transpose(sequence_mask(sequence_length, maxlen=time), [2, 0, 1])
    places = where(inside, places, own)
    steps = tile(reshape(tensor_range(time), [-1, 1, 1]), [1, batch, width])
    rows = tile(reshape(tensor_range(batch), [1, -1, 1]), [time, 1, width])
    found = gather_nd(reshape(t, [time, batch, width, -1]), stack([steps, rows, places], -1))
    return reshape(found, shape(t))


def can_sort(array: Any, batch: Any, width: int) -> bool:
    """Whether a TensorArray's elements are known to have beams; a warning says why not."""
    element = array.element_shape
    if not element.ndims:
        logging.warn(
            "The TensorArray %s in the cell state is not amenable to sorting based on the beam "
            "search result. For a TensorArray to be sorted, its elements shape must be defined "
            "and have at least a rank of 1, but saw shape: %s", array.handle.name, element,
        )  # fmt: skip
        return False
    return may_have_beams(element, None if batch is None else int(batch), width)


def may_have_beams(element: TensorShape, batch_size: int | None, beam_width: int) -> bool:
    """Whether a static shape may be that of [batch * beams, ...] or [batch, beams, ...].

    A warning says that it cannot.
    """
    first, *rest = element.as_list()
    if batch_size is None or first is None:
        return True
    split = bool(rest) and first == batch_size and rest[0] in (None, beam_width)
    if split or first == batch_size * beam_width:
        return True
    logging.warn(
        "TensorArray reordering expects elements to be reshapable to %s which is incompatible "
        "with the current shape %s. %s",
        TensorShape([batch_size, beam_width, None]),
        element,
        _HINT,
    )
    return False


def sorted_beams(array: Any, parent_ids: Any, lengths: Any, batch: Any, width: int) -> Tensor:
    """The elements of a TensorArray, sorted; an error when it runs if they have no beams."""
    values = array.stack()
    with control_dependencies([check_beams(values, batch, width)]):
        return gather_tree_from_array(values, parent_ids, lengths)


def check_beams(t: Any, batch_size: Any, beam_width: Any) -> Any:
    """An op that fails where [time, ...] has no beams behind the time.

    Args:
        t: the tensor.
        batch_size: the number of examples.
        beam_width: the number of beams.
    """
    sizes = shape(t)
    fits = emit("Equal", sizes[1], batch_size * beam_width)
    if t.shape.ndims != 2:
        rows, columns = emit("Equal", sizes[1], batch_size), emit("Equal", sizes[2], beam_width)
        fits = emit("LogicalOr", fits, emit("LogicalAnd", rows, columns))
    message = (
        "TensorArray reordering expects elements to be reshapable to [batch_size, beam_size, -1] "
        f"which is incompatible with the dynamic shape of {t.name} elements. {_HINT}"
    )
    return emit("Assert", fits, [message])
