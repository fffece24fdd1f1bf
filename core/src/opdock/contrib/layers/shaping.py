"""Layers that change shapes alone: sequences of images' lines, one-hot rows, inner dimensions."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes
from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import channels, finish
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.check_static import assert_rank_at_least
from opdock.ops.composed.sparse import sparse_reshape
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_prod
from opdock.ops.select import one_hot

__all__ = ["images_to_sequence", "inner_flatten", "one_hot_encoding", "sequence_to_images"]


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The lines of images as sequences along their width: [width, batch * height, depth].

    Args:
        inputs: images of known width and depth.
        data_format: "NHWC" or "NCHW".
        outputs_collections: collections for the result.
        scope: a name for the operations.

    Raises:
        ValueError: the format is another one.
    """
    first = channels(data_format) == "channels_first"
    with name_scope(scope, "ImagesToSequence", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        if first:
            inputs = transpose(inputs, [0, 2, 3, 1])
        *_, width, depth = inputs.shape.as_list()
        sizes = shape(inputs)
        lines = transpose(inputs, [2, 0, 1, 3])
        outputs = reshape(lines, [width, sizes[0] * sizes[1], depth])
        return finish(outputs, None, outputs_collections, sc)


@add_arg_scope
def sequence_to_images(
    inputs: Any, height: int, output_data_format: str = "channels_last",
    outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """Images of sequences that are their lines; `images_to_sequence` the other way round.

    Args:
        inputs: a tensor [width, batch * height, depth] of known width and depth.
        height: the lines of an image.
        output_data_format: "channels_last" or "channels_first".
        outputs_collections: collections for the result.
        scope: a name for the operations.
    """
    with name_scope(scope, "SequenceToImages", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        width, lines, depth = inputs.shape.as_list()
        count = -1 if lines is None else lines // height
        whole = reshape(inputs, [width, count, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return finish(transpose(whole, order), None, outputs_collections, sc)


@add_arg_scope
def one_hot_encoding(
    labels: Any, num_classes: int, on_value: Any = 1.0, off_value: Any = 0.0,
    outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """A row for each label with one value where the label is and another elsewhere.

    Args:
        labels: a tensor of integers.
        num_classes: the length of a row.
        on_value, off_value: the values.
        outputs_collections: collections for the result.
        scope: a name for the operations.
    """
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as sc:
        labels = convert_to_tensor(labels)
        if labels.dtype == dtypes.int32:
            labels = cast(labels, dtypes.int64)
        outputs = one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return finish(outputs, None, outputs_collections, sc)


@add_arg_scope
def inner_flatten(
    inputs: Any, new_rank: Any, output_collections: Any = None, scope: str | None = None
) -> Any:
    """The last dimensions as one, so that a tensor has `new_rank` of them.

    Args:
        inputs: a tensor, or a SparseTensor, of that rank or more.
        new_rank: the rank of the result, at least 1.
        output_collections: collections for the result.
        scope: a name for the operations.

    Raises:
        ValueError: the rank is known to be less; InvalidArgumentError where it is found out late.
    """
    with name_scope(scope, "InnerFlatten", [inputs, new_rank]) as sc:
        if isinstance(inputs, SparseTensor):
            flat: Any = _flat_sparse(inputs, new_rank)
        else:
            flat = _flat_dense(convert_to_tensor(inputs), new_rank)
        return finish(flat, None, output_collections, sc)


def _flat_sparse(inputs: SparseTensor, new_rank: int) -> SparseTensor:
    rank = inputs.dense_shape.shape.as_list()[0]
    if rank is not None and rank < new_rank:
        raise ValueError(
            f"Inputs has rank less than new_rank. {inputs} must have rank at least {new_rank}. "
            f"Received rank {rank}, shape {inputs.get_shape()}"
        )
    outer, inner = inputs.dense_shape[: new_rank - 1], inputs.dense_shape[new_rank - 1 :]
    return sparse_reshape(inputs, concat([outer, [reduce_prod(inner)]], 0))


def _flat_dense(inputs: Tensor, new_rank: Any) -> Tensor:
    check = assert_rank_at_least(inputs, new_rank, message="inputs has rank less than new_rank")
    with control_dependencies([check]):
        flat = reshape(inputs, concat([shape(inputs)[: new_rank - 1], [-1]], 0))
    if isinstance(new_rank, int) and inputs.shape.ndims is not None:
        sizes = inputs.shape.as_list()
        inner = [size for size in sizes[new_rank - 1 :] if size is not None]
        whole = math.prod(inner) if len(inner) == len(sizes) - new_rank + 1 else None
        flat.set_shape([*sizes[: new_rank - 1], whole])
    return flat
