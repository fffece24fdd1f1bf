"""Summary kernels: arrays to serialized Summary protobufs, by core's `host_ops`."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import KernelTable, host_ops

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


def _scalar(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


@table.kernel("ScalarSummary")
def scalar_summary(ctx: Any, tags: Array, values: Array) -> Array:
    """One value per tag."""
    return _scalar(host_ops.scalar_summary(tags, values))


@table.kernel("HistogramSummary")
def histogram_summary(ctx: Any, tag: Array, values: Array) -> Array:
    """The histogram of a tensor."""
    return _scalar(host_ops.histogram_summary(tag, values, ctx.sig.name))


@table.kernel("ImageSummary")
def image_summary(ctx: Any, tag: Array, tensor: Array) -> Array:
    """PNG images of a batch."""
    attrs = ctx.sig.attrs
    bad_color = np.asarray(attrs["bad_color"]).tolist()
    return _scalar(host_ops.image_summary(tag, tensor, attrs["max_images"], bad_color))


@table.kernel("AudioSummaryV2")
def audio_summary_v2(ctx: Any, tag: Array, tensor: Array, sample_rate: Array) -> Array:
    """WAV clips of a batch."""
    limit = ctx.sig.attrs["max_outputs"]
    return _scalar(host_ops.audio_summary(tag, tensor, sample_rate, limit))


@table.kernel("AudioSummary")
def audio_summary(ctx: Any, tag: Array, tensor: Array) -> Array:
    """WAV clips of a batch at a fixed rate."""
    attrs = ctx.sig.attrs
    return _scalar(host_ops.audio_summary(tag, tensor, attrs["sample_rate"], attrs["max_outputs"]))


@table.kernel("TensorSummaryV2")
def tensor_summary_v2(ctx: Any, tag: Array, tensor: Array, metadata: Array) -> Array:
    """A tensor with a plugin's metadata."""
    data = bytes(np.asarray(metadata, object).reshape(-1)[0])
    return _scalar(host_ops.tensor_summary(tag, tensor, data))


@table.kernel("TensorSummary")
def tensor_summary(ctx: Any, tensor: Array) -> Array:
    """A tensor under its node's name."""
    return _scalar(host_ops.tensor_summary(None, tensor, b"", ctx.sig.name))


@table.kernel("MergeSummary")
def merge_summary(ctx: Any, *inputs: Array) -> Array:
    """The values of all inputs in one Summary."""
    return _scalar(host_ops.merge_summaries(inputs))
