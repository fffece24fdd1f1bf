"""Summaries written to event files, by core's `host_ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, errors, host_ops

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


def _text(value: Any) -> bytes:
    return bytes(np.asarray(value, object).reshape(-1)[0])


def _number(value: Any) -> int:
    return int(np.asarray(value).reshape(-1)[0])


def _sink(handle: Any) -> Any:
    found = handle.item() if isinstance(handle, np.ndarray) else handle
    if not isinstance(found, host_ops.EventSink):
        raise errors.InvalidArgumentError(
            None, None, f"The handle is one of {type(found).__name__}, not of a summary writer"
        )
    return found


@table.binder("SummaryWriter")
def summary_writer(sig: NodeSig) -> Callable[[], Any]:
    """The writer of a node: its own, or the one that it shares by name."""
    attrs, resources = sig.attrs, sig.resources
    name = attrs["shared_name"] or sig.name
    assert resources is not None

    def make() -> Any:
        return host_ops.EventSink(name)

    return lambda: resources.get_or_create("summary_writer", attrs["container"], name, make)


@table.kernel("CreateSummaryFileWriter")
def create(
    ctx: Any, writer: Any, logdir: Array, max_queue: Array, flush_millis: Array, suffix: Array
) -> tuple[()]:
    """Starts the event file of a writer."""
    ending, folder = _text(suffix).decode(), _text(logdir).decode()
    _sink(writer).create(folder, _number(max_queue), _number(flush_millis), ending)
    return ()


@table.kernel("FlushSummaryWriter")
def flush(ctx: Any, writer: Any) -> tuple[()]:
    """Waits until all events are in the file."""
    _sink(writer).flush()
    return ()


@table.kernel("CloseSummaryWriter")
def close(ctx: Any, writer: Any) -> tuple[()]:
    """Closes the file."""
    _sink(writer).close()
    return ()


@table.kernel("WriteSummary")
def write(
    ctx: Any, writer: Any, step: Array, tensor: Array, tag: Array, metadata: Array
) -> tuple[()]:
    """Writes a tensor with a plugin's metadata."""
    summary = host_ops.tensor_summary(tag, tensor, _text(metadata))
    _sink(writer).write(_number(step), summary)
    return ()


@table.kernel("WriteScalarSummary")
def write_scalar(ctx: Any, writer: Any, step: Array, tag: Array, value: Array) -> tuple[()]:
    """Writes a number."""
    _sink(writer).write(_number(step), host_ops.scalar_summary(tag, value))
    return ()


@table.kernel("WriteHistogramSummary")
def write_histogram(ctx: Any, writer: Any, step: Array, tag: Array, values: Array) -> tuple[()]:
    """Writes the histogram of a tensor."""
    _sink(writer).write(_number(step), host_ops.histogram_summary(tag, values, ctx.sig.name))
    return ()


@table.kernel("WriteImageSummary")
def write_image(
    ctx: Any, writer: Any, step: Array, tag: Array, tensor: Array, bad_color: Array
) -> tuple[()]:
    """Writes images of a batch."""
    most, color = ctx.sig.attrs["max_images"], np.asarray(bad_color).tolist()
    _sink(writer).write(_number(step), host_ops.image_summary(tag, tensor, most, color))
    return ()


@table.kernel("WriteAudioSummary")
def write_audio(
    ctx: Any, writer: Any, step: Array, tag: Array, tensor: Array, sample_rate: Array
) -> tuple[()]:
    """Writes clips of a batch."""
    most = ctx.sig.attrs["max_outputs"]
    _sink(writer).write(_number(step), host_ops.audio_summary(tag, tensor, sample_rate, most))
    return ()


@table.kernel("WriteGraphSummary")
def write_graph(ctx: Any, writer: Any, step: Array, tensor: Array) -> tuple[()]:
    """Writes a serialized GraphDef."""
    _sink(writer).write(_number(step), _text(tensor), "graph_def")
    return ()


@table.kernel("WriteRawProtoSummary")
def write_raw(ctx: Any, writer: Any, step: Array, tensor: Array) -> tuple[()]:
    """Writes serialized Summaries, all of one step."""
    _sink(writer).write_summaries(_number(step), np.asarray(tensor, object).reshape(-1).tolist())
    return ()


@table.kernel("ImportEvent")
def import_event(ctx: Any, writer: Any, event: Array) -> tuple[()]:
    """Writes a serialized Event as it is."""
    _sink(writer).add(_text(event))
    return ()
