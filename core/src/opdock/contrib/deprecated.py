"""`tf.contrib.deprecated`, and what else from before TensorFlow 1.0 is more than another name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.operation import Tensor
from opdock.ops import summary as ops
from opdock.ops.linalg import batch_matmul_op
from opdock.ops.select import where

__all__ = [
    "audio_summary", "batch_matmul", "histogram_summary", "image_summary", "merge_all_summaries",
    "merge_summary", "scalar_summary", "select",
]  # fmt: skip


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: Any = None) -> Tensor:
    """A summary of numbers under the tags that are given, as they are.

    Args:
        tags: a string tensor.
        values: real numbers of the same shape.
        collections: graph collections to add it to, `[GraphKeys.SUMMARIES]` by default.
        name: the op's name.

    Returns:
        A scalar string tensor, a serialized `Summary`.
    """
    return _collected(ops.scalar_summary_op(tags, values, name=name), collections)


def histogram_summary(tag: Any, values: Any, collections: Any = None, name: Any = None) -> Tensor:
    """A summary of the distribution of values under a tag; arguments as in `scalar_summary`."""
    return _collected(ops.histogram_summary_op(tag, values, name=name), collections)


def image_summary(
    tag: Any, tensor: Any, max_images: int = 3, collections: Any = None, name: Any = None
) -> Tensor:
    """A summary of up to `max_images` images, [batch, height, width, channels], under a tag."""
    found = ops.image_summary_op(tag, tensor, max_images=max_images, name=name)
    return _collected(found, collections)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    name: Any = None,
) -> Tensor:
    """A summary of up to `max_outputs` sounds, [batch, frames] or with channels, under a tag."""
    found = ops.audio_summary_v2_op(tag, tensor, sample_rate, max_outputs=max_outputs, name=name)
    return _collected(found, collections)


def merge_summary(inputs: Sequence[Any], collections: Any = None, name: Any = None) -> Tensor:
    """One summary of several; it is in no collection by default."""
    found: Tensor = ops.merge_summary_op(list(inputs), name=name)
    ops.collect(found, collections, [])
    return found


def merge_all_summaries(key: str = GraphKeys.SUMMARIES) -> Tensor | None:
    """One summary of all in a collection; None if it is empty."""
    found = get_collection(key)
    return merge_summary(found) if found else None


def batch_matmul(
    x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Tensor:
    """Products of matrices, [..., a, b] by [..., b, c]; `adj_x` takes the adjoints of the first."""
    found: Tensor = batch_matmul_op(x, y, adj_x=adj_x, adj_y=adj_y, name=name)
    return found


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Tensor:
    """Elements of `t` where the condition holds, of `e` elsewhere."""
    found: Tensor = where(condition, t, e, name=name)
    return found


def _collected(value: Tensor, collections: Any) -> Tensor:
    ops.collect(value, collections, [GraphKeys.SUMMARIES])
    return value
