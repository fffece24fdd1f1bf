"""`tf.compat.v2.summary` in graphs: summaries as TensorFlow 2 has them, written by operations.

Writers are those of `tf.contrib.summary`, and so are the collections: `tf.compat.v1.summary` has
`initialize` and `all_v2_summary_ops`. What differs: summaries are recorded unless somebody says
otherwise, need a step, and carry the metadata by which TensorBoard's plugins know them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import add_to_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor, graph_behind, is_tensor
from opdock.graph.nodes.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    init_scope,
    name_scope,
)
from opdock.io import protos
from opdock.io.files import as_path
from opdock.ops import summary_writer as ops
from opdock.ops.array import reshape, shape, size
from opdock.ops.audio import encode_wav
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.composed.functional import map_fn
from opdock.ops.composed.image_adjust import convert_image_dtype
from opdock.ops.control import cond
from opdock.ops.elementary import floor
from opdock.ops.encoding import as_string
from opdock.ops.fill import linspace, ones_like, zeros
from opdock.ops.identity import identity
from opdock.ops.image_codec import encode_png
from opdock.ops.joining import concat, stack
from opdock.ops.reduce import reduce_max, reduce_min
from opdock.ops.summary import _ILLEGAL
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.summary import recording
from opdock.summary.recording import SummaryWriter, flush, record_if
from opdock.util.graph_helpers import smart_cond

__all__ = [
    "SummaryWriter", "audio", "create_file_writer", "create_noop_writer", "flush", "get_step",
    "graph", "histogram", "image", "record_if", "scalar", "set_step", "summary_scope", "text",
    "write", "write_raw_pb",
]  # fmt: skip


_numbers: Final = itertools.count()


# ---------------------------------------------------------------- writers and steps
def create_file_writer(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:  # fmt: skip
    """A writer of an event file.

    Args:
        logdir: its directory.
        max_queue: how many events may wait, 10 by default.
        flush_millis: the longest time that an event waits, two minutes by default.
        filename_suffix: ending of the file's name, ".v2" by default.
        name: a name for the operation; each writer has a file of its own.

    Raises:
        ValueError: there is no directory; or the writer is made where operations run as they are
            made, which cannot wait for a tensor of a graph.
    """
    if logdir is None:
        raise ValueError("logdir cannot be None")
    given = {
        "logdir": logdir, "max_queue": max_queue, "flush_millis": flush_millis,
        "filename_suffix": filename_suffix,
    }  # fmt: skip
    inside = get_default_graph().building_function
    with name_scope(name, "create_file_writer") as scope, init_scope():
        shared = scope.rstrip("/")
        if executing_eagerly():
            _check_known(given, inside)
            shared = f"{shared}_{next(_numbers)}"  # names are not unique there
        folder = logdir if is_tensor(logdir) else as_path(logdir)
        return recording.file_writer(
            shared, folder, max_queue, flush_millis, filename_suffix, own=True
        )


def _check_known(given: dict[str, Any], inside: bool) -> None:
    """Raises ValueError for arguments of a writer that are tensors of a graph."""
    for name, value in given.items():
        if is_tensor(value) and not graph_behind(value).eager:
            raise ValueError(
                f'Invalid graph Tensor argument "{name}={value}" to '
                + (
                    "create_file_writer() inside an @tf.function. The writer is made outside of "
                    "it, where there are none of its tensors."
                    if inside
                    else "eagerly executed create_file_writer()."
                )
            )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing; it does not take the place of another as default."""
    return SummaryWriter()


def get_step() -> Any:
    """The step of summaries that are given none, in this thread; None if it was not set."""
    return recording._current.step


def set_step(step: Any) -> None:
    """Sets the step of summaries that are given none, in this thread.

    Args:
        step: a number, a variable or a tensor; None takes it back.
    """
    recording._current.step = step


# ---------------------------------------------------------------- any summary
@contextmanager
def summary_scope(
    name: str, default_name: str = "summary", values: Any = None
) -> Iterator[tuple[str, str]]:
    """A name scope for a summary, with its tag, which is neither made unique nor cleaned."""
    name = name or default_name
    around = get_default_graph().get_name_scope()
    tag = f"{around}/{name}" if around else name
    with name_scope(_ILLEGAL.sub("", name) or None, default_name, values) as scope:
        yield tag, scope


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> Tensor:
    """Writes a tensor with what says how it is shown.

    Args:
        tag: under which it is found.
        tensor: the tensor.
        step: the step to record, by default that of `set_step`.
        metadata: a `SummaryMetadata`, or its bytes.
        name: the name scope.

    Returns:
        A boolean tensor: whether it has written.

    Raises:
        ValueError: there is no step.
    """
    data = b"" if metadata is None else metadata
    if hasattr(data, "SerializeToString"):
        data = data.SerializeToString()

    def record(handle: Any, step: Any, scope: str) -> Any:
        return ops.write_summary_op(handle, step, identity(tensor), tag, data, name=scope)

    return _recorded(name, "write_summary", step, record)


def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Writes serialized `Summary` messages; see `write`."""

    def record(handle: Any, step: Any, scope: str) -> Any:
        return ops.write_raw_proto_summary_op(handle, step, identity(tensor), name=scope)

    return _recorded(name, "write_raw_pb", step, record)


def graph(graph_data: Any) -> Tensor:
    """Writes a graph, at step 0.

    Args:
        graph_data: a `Graph`, such as that of a concrete function, or a `GraphDef`.

    Returns:
        Whether it was written: nothing is without a default writer.

    Raises:
        NotImplementedError: this is a graph, whose writers take `tf.compat.v1.summary`'s.
        ValueError: it is neither.
    """
    if not executing_eagerly():
        raise NotImplementedError(
            "tf.summary.graph writes when it is called; in graphs use FileWriter.add_graph"
        )
    if isinstance(graph_data, Graph):
        graph_data = graph_data.as_graph_def(add_shapes=True)
    elif not isinstance(graph_data, protos.GraphDef):
        raise ValueError(
            f"graph_data must be a tf.Graph or a tf.compat.v1.GraphDef, got {type(graph_data)}"
        )
    data = graph_data.SerializeToString()

    def record(handle: Any, step: Any, scope: str) -> Any:
        return ops.write_graph_summary_op(handle, step, constant(data), name=scope)

    return _recorded(None, "graph", 0, record)


def _recorded(name: str | None, default_name: str, step: Any, write_with: Any) -> Tensor:
    with name_scope(name, default_name) as scope:
        writer = recording._current.writer
        if writer is None:
            return constant(False)
        step = get_step() if step is None else step
        if step is None:
            raise ValueError(
                "No step set via 'step' argument or tf.summary.experimental.set_step()"
            )

        def record() -> Tensor:
            done = write_with(writer._resource, cast(step, dtypes.int64), scope)
            with control_dependencies([done]):
                return constant(True)

        with device("cpu:0"):
            made: Tensor = smart_cond(recording.records(True), record, lambda: constant(False))
        add_to_collection(recording._SUMMARIES, made)
        return made


# ---------------------------------------------------------------- what plugins of TensorBoard show
def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a number.

    Args:
        name: the tag, completed by the current name scope.
        data: a real scalar, written as float32.
        step: the step to record, by default that of `set_step`.
        description: what it means, in Markdown.

    Raises:
        ValueError: it is no scalar, or there is no step.
    """
    from tensorboard.plugins.scalar import metadata

    with summary_scope(name, "scalar_summary", [data]) as (tag, _):
        value = convert_to_tensor(data)
        if value.raw_shape not in (None, ()):
            raise ValueError(f"Expected scalar shape, saw shape: {value.shape}.")
        told = metadata.create_summary_metadata(display_name=None, description=description)
        return write(tag, cast(value, dtypes.float32), step, told)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes strings, of which TensorBoard shows up to two dimensions as a table; see `scalar`."""
    from tensorboard.plugins.text import metadata

    with summary_scope(name, "text_summary", [data]) as (tag, _):
        told = metadata.create_summary_metadata(display_name=None, description=description)
        return write(tag, convert_to_tensor(data, dtypes.string), step, told)


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> Tensor:
    """Writes images, [batch, height, width, channels], floats of 0 to 1 or bytes; see `scalar`.

    Args:
        name: see `scalar`.
        data: the images.
        step: see `scalar`.
        max_outputs: how many of them.
        description: see `scalar`.
    """
    from tensorboard.plugins.image import metadata

    with summary_scope(name, "image_summary", [data, max_outputs]) as (tag, _):
        told = metadata.create_summary_metadata(
            display_name=None, description=description, converted_to_tensor=True
        )
        pixels = convert_image_dtype(convert_to_tensor(data)[:max_outputs], dtypes.uint8, True)
        files = map_fn(encode_png, pixels, dtypes.string)
        sizes = as_string(shape(data)[1:3][::-1])
        return write(tag, concat([sizes, files], 0), step, told)


def audio(
    name: str, data: Any, sample_rate: Any, step: Any = None, max_outputs: int = 3,
    encoding: str | None = None, description: str | None = None,
) -> Tensor:  # fmt: skip
    """Writes clips of sound, [clips, frames, channels], floats of -1 to 1; see `scalar`.

    Args:
        name: see `scalar`.
        data: the clips.
        sample_rate: how many frames a second has.
        step: see `scalar`.
        max_outputs: how many of the clips.
        encoding: "wav", the only one.
        description: see `scalar`.

    Raises:
        ValueError: another encoding, or clips of another rank.
    """
    from tensorboard.plugins.audio import metadata

    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    with summary_scope(name, "audio_summary", [data, sample_rate, max_outputs]) as (tag, _):
        told = metadata.create_summary_metadata(
            display_name=None, description=description, encoding=metadata.Encoding.Value("WAV")
        )
        clips = convert_to_tensor(data)
        clips.shape.assert_has_rank(3)
        files = map_fn(
            lambda clip: encode_wav(clip, sample_rate), clips[:max_outputs], dtypes.string
        )
        # A file, and a label that nobody gives.
        return write(tag, stack([files, zeros(shape(files), dtypes.string)], 1), step, told)


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None,
    description: str | None = None,
) -> Tensor:  # fmt: skip
    """Writes the histogram of a tensor; see `scalar`.

    Args:
        name: see `scalar`.
        data: numbers, of any shape.
        step: see `scalar`.
        buckets: how many of equal width, 30 by default; equal numbers are in one.
        description: see `scalar`.
    """
    from tensorboard.plugins.histogram import metadata

    with summary_scope(name, "histogram_summary", [data, buckets]) as (tag, _):
        told = metadata.create_summary_metadata(display_name=None, description=description)
        counted = _counted(convert_to_tensor(data), 30 if buckets is None else buckets)
        return write(tag, counted, step, told)


def _counted(data: Tensor, count: int) -> Tensor:
    """Rows of a bucket's edges and how many numbers are in it."""
    flat = cast(reshape(data, [-1]), dtypes.float64)

    def some() -> Tensor:
        low, high = reduce_min(flat), reduce_max(flat)
        return cond(equal(low, high), lambda: one(low), lambda: many(low, high))  # type: ignore[no-any-return]

    def one(value: Tensor) -> Tensor:
        number = cast(size(flat), dtypes.float64)
        return reshape(stack([value - 0.5, value + 0.5, number]), [1, 3])

    def many(low: Tensor, high: Tensor) -> Tensor:
        at = cast(floor((flat - low) / ((high - low) / count)), dtypes.int32)
        at -= cast(equal(at, count), dtypes.int32)  # the largest is in the last one
        sums = unsorted_segment_sum(ones_like(flat), at, count)
        edges = linspace(low, high, count + 1)
        return stack([edges[:-1], edges[1:], sums], axis=1)

    empty = equal(size(flat), 0)
    return cond(empty, lambda: zeros([0, 3], dtypes.float64), some)  # type: ignore[no-any-return]
