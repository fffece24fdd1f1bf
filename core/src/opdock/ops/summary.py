"""Summary ops: nodes whose value is a serialized Summary, for `tf.summary.FileWriter`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.replication import is_first_replica
from opdock.graph.nodes.scopes import executing_eagerly, name_scope, refuse_eagerly
from opdock.io import protos
from opdock.ops.registry import define_op
from opdock.ops.support import common_shapes

# Public as tf.summary.*, not at the top.
__all__: list[str] = []

_log = logging.getLogger("tensorflow")
_ILLEGAL = re.compile(r"[^-/\w\.]")

scalar_summary_op = define_op(
    "ScalarSummary", "tags: string, values: T -> summary: string", "T: realnumbertype"
)
histogram_summary_op = define_op(
    "HistogramSummary", "tag: string, values: T -> summary: string", "T: realnumbertype = float"
)
image_summary_op = define_op(
    "ImageSummary",
    "tag: string, tensor: T -> summary: string",
    "max_images: int >= 1 = 3, T: {uint8, float, half, double} = float,"
    " bad_color: tensor = uint8[255, 0, 0, 255]",
)
audio_summary_op = define_op(
    "AudioSummary",
    "tag: string, tensor: float -> summary: string",
    "sample_rate: float, max_outputs: int >= 1 = 3",
)
audio_summary_v2_op = define_op(
    "AudioSummaryV2",
    "tag: string, tensor: float, sample_rate: float -> summary: string",
    "max_outputs: int >= 1 = 3",
)
tensor_summary_op = define_op(
    "TensorSummary",
    "tensor: T -> summary: string",
    'T: type, description: string = "", labels: list(string) = [], display_name: string = ""',
)
tensor_summary_v2_op = define_op(
    "TensorSummaryV2",
    "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string",
    "T: type",
)
merge_summary_op = define_op("MergeSummary", "inputs: N * string -> summary: string", "N: int >= 1")

for _op in (
    scalar_summary_op, histogram_summary_op, image_summary_op, audio_summary_op,
    audio_summary_v2_op, tensor_summary_op, tensor_summary_v2_op, merge_summary_op,
):  # fmt: skip
    _op.shape(common_shapes.scalar)
    _op.not_differentiable()


# ---------------------------------------------------------------- names, tags, collections
def clean_tag(name: str | None) -> str | None:
    """A name with the characters that a tag cannot have replaced by "_"."""
    if name is None:
        return None
    cleaned = _ILLEGAL.sub("_", name).lstrip("/")
    if cleaned != name:
        _log.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


@contextmanager
def summary_scope(
    name: str, family: str | None = None, default_name: str | None = None, values: Any = None
) -> Iterator[tuple[str, str]]:
    """Opens the name scope of a summary op; yields (tag, scope).

    The tag is the scope's unique name, after `family` if there is one.
    """
    name = clean_tag(name) or ""
    family = clean_tag(family)
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


_NOT_MERGED: Final = (
    "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary "
    "instead."
)


def collect(value: Tensor, collections: Any, default: list[str]) -> None:
    """Adds a summary to the given collections, the default ones when None."""
    # Nobody would take it out again where operations run as they are made.
    if executing_eagerly():
        return
    for key in default if collections is None else collections:
        add_to_collection(key, value)


# ---------------------------------------------------------------- public functions
def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of one number.

    Args:
        name: the tag, completed by the current name scope.
        tensor: a real scalar.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.
        family: prefix of the tag, under which TensorBoard groups it.

    Returns:
        A scalar string tensor, a serialized `Summary`.
    """
    if not is_first_replica():
        return constant("")
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        value: Tensor = scalar_summary_op(tag, tensor, name=scope)
        collect(value, collections, [GraphKeys.SUMMARIES])
    return value


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of the distribution of a tensor's values.

    Args:
        name: the tag, completed by the current name scope.
        values: a real tensor of any shape.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.
        family: prefix of the tag, under which TensorBoard groups it.

    Returns:
        A scalar string tensor, a serialized `Summary`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when a value is NaN or infinite.
    """
    if not is_first_replica():
        return constant("")
    with summary_scope(name, family, default_name="HistogramSummary", values=[values]) as (
        tag,
        scope,
    ):
        value: Tensor = histogram_summary_op(tag, values, name=scope)
        collect(value, collections, [GraphKeys.SUMMARIES])
    return value


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Any = None,
    family: str | None = None,
) -> Tensor:  # fmt: skip
    """A summary with images.

    Args:
        name: the tag, completed by the current name scope and "/image/0", "/image/1", ...
        tensor: uint8 or float, [batch, height, width, channels] with 1, 3 or 4 channels. Floats
            are scaled per image to the range of bytes.
        max_outputs: how many images of the batch to keep.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.
        family: prefix of the tag, under which TensorBoard groups it.

    Returns:
        A scalar string tensor, a serialized `Summary`.
    """
    if not is_first_replica():
        return constant("")
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        value: Tensor = image_summary_op(tag, tensor, max_images=max_outputs, name=scope)
        collect(value, collections, [GraphKeys.SUMMARIES])
    return value


def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None,
    family: str | None = None,
) -> Tensor:  # fmt: skip
    """A summary with sound clips.

    Args:
        name: the tag, completed by the current name scope and "/audio/0", "/audio/1", ...
        tensor: float32, [batch, frames] or [batch, frames, channels], values in -1 to 1.
        sample_rate: frames per second, a scalar.
        max_outputs: how many clips of the batch to keep.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.
        family: prefix of the tag, under which TensorBoard groups it.

    Returns:
        A scalar string tensor, a serialized `Summary`.
    """
    if not is_first_replica():
        return constant("")
    with summary_scope(name, family=family, values=[tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtype=dtypes.float32, name="sample_rate")
        value: Tensor = audio_summary_v2_op(tag, tensor, rate, max_outputs=max_outputs, name=scope)
        collect(value, collections, [GraphKeys.SUMMARIES])
    return value


def tensor_summary(
    name: str, tensor: Any, summary_description: Any = None, collections: Any = None,
    summary_metadata: Any = None, family: str | None = None, display_name: str | None = None,
) -> Tensor:  # fmt: skip
    """A summary with a whole tensor, for a TensorBoard plugin.

    Args:
        name: the tag, completed by the current name scope.
        tensor: a tensor of any type and shape.
        summary_description: text for the metadata.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.
        summary_metadata: a `SummaryMetadata` that names the plugin.
        family: prefix of the tag, under which TensorBoard groups it.
        display_name: name to show, for the metadata.

    Returns:
        A scalar string tensor, a serialized `Summary`.
    """
    metadata = protos.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = str(summary_description)
    if display_name is not None:
        metadata.display_name = display_name
    if not is_first_replica():
        return constant("")
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        value: Tensor = tensor_summary_v2_op(tag, tensor, metadata.SerializeToString(), name=scope)
        collect(value, collections, [GraphKeys.SUMMARIES])
    return value


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    """A summary with text: Markdown cells, laid out as the tensor is.

    Args:
        name: the tag, completed by the current name scope.
        tensor: a string tensor of up to two dimensions.
        collections: graph collections to add the summary to, `[GraphKeys.SUMMARIES]` by default.

    Returns:
        A scalar string tensor, a serialized `Summary`.

    Raises:
        ValueError: `tensor` is not of type string.
    """
    if tensor.dtype.base_dtype is not dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = protos.SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """One summary with the values of several.

    Args:
        inputs: summaries, scalar string tensors.
        collections: graph collections to add the result to, none by default.
        name: a name for the operation.

    Returns:
        A scalar string tensor, a serialized `Summary`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when two values have the same tag.
    """
    refuse_eagerly(_NOT_MERGED)
    name = clean_tag(name)
    inputs = list(inputs)
    with name_scope(name, "Merge", inputs):
        value: Tensor = merge_summary_op(inputs, name=name)
        collect(value, collections, [])
    return value


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """Merges the summaries of a collection.

    Args:
        key: the collection.
        scope: keep the summaries whose names match this pattern at the start.
        name: a name for the operation.

    Returns:
        A scalar string tensor, or None when the collection is empty.
    """
    refuse_eagerly(_NOT_MERGED)
    summaries = get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None
