"""`tf.contrib.summary` in graphs: operations that write summaries by themselves as they run.

Each is made under a default writer, and runs if summaries are to be recorded: never by default.
A writer is a resource of the session; `initialize` makes its event file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.collections import add_to_collection, get_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import (
    control_dependencies,
    device,
    executing_eagerly,
    name_scope,
    refuse_eagerly,
)
from opdock.io.files import as_path
from opdock.ops import summary_writer as ops
from opdock.ops.compare import equal
from opdock.ops.control import no_op
from opdock.ops.identity import identity, placeholder
from opdock.ops.summary import summary_scope
from opdock.train.training_util import get_or_create_global_step
from opdock.util.graph_helpers import smart_cond

__all__ = [
    "SummaryWriter", "all_summary_ops", "all_v2_summary_ops", "always_record_summaries", "audio",
    "create_file_writer", "create_summary_file_writer", "eval_dir", "flush", "generic", "graph",
    "histogram", "image", "import_event", "initialize", "never_record_summaries",
    "record_if", "record_summaries_every_n_global_steps", "records", "scalar",
    "should_record_summaries", "summary_writer_initializer_op",
]  # fmt: skip

# The names of TF's collections.
_SUMMARIES, _WRITERS = "_SUMMARY_V2", "_SUMMARY_WRITER_V2"
_HOST = "cpu:0"


class _Current(threading.local):
    """The default writer of a thread, whether it records if that was said, and version 2's step."""

    writer: SummaryWriter | None = None
    records: Any = None
    step: Any = None


_current = _Current()


# ---------------------------------------------------------------- writers
def forget_default_writer() -> None:
    """Has the summaries that this thread makes from now on written nowhere."""
    _current.writer = None


class SummaryWriter:
    """A handle on an event file.

    Args:
        resource: the handle, None for a writer that writes nothing.
        make: adds the op that makes the file.
        own: whether no other writer has the file, so that one that is closed stays so.
    """

    def __init__(
        self, resource: Tensor | None = None, make: Callable[[], Any] | None = None,
        own: bool = False,
    ) -> None:  # fmt: skip
        self._resource = resource
        self._make = make
        self._own, self._closed = own, False
        self._made = None if make is None else make()
        if make is not None and not executing_eagerly():
            add_to_collection(_WRITERS, self._made)

    def set_as_default(self) -> None:
        """Has the summaries that this thread makes from now on written here.

        Raises:
            RuntimeError: the writer is closed.
        """
        self._check_open()
        if self._resource is not None:
            _current.writer = self

    @contextmanager
    def as_default(self) -> Iterator[SummaryWriter]:
        """Has the summaries that are made in a block written here, which is flushed at its end.

        Raises:
            RuntimeError: the writer is closed.
        """
        before = _current.writer
        self.set_as_default()
        try:
            yield self
            self.flush()
        finally:
            _current.writer = before

    def init(self) -> Any:
        """An operation that makes the file, if there is none.

        Raises:
            RuntimeError: the writer is closed.
        """
        self._check_open()
        return self._made if self._own or self._make is None else self._make()

    def flush(self) -> Any:
        """An operation that waits until all is in the file."""
        return None if self._resource is None or self._closed else flush(self)

    def close(self) -> Any:
        """An operation that flushes and closes the file."""
        if self._resource is None or self._closed:
            return None
        with device(_HOST):
            done = ops.close_summary_writer_op(self._resource)
        self._closed = self._own and executing_eagerly()
        return done

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")


def create_file_writer(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:  # fmt: skip
    """A writer of an event file.

    Args:
        logdir: its directory; None makes a writer that writes nothing.
        max_queue: how many events may wait, 10 by default.
        flush_millis: the longest time that an event waits, two minutes by default.
        filename_suffix: ending of the file's name, ".v2" by default.
        name: writers of one name share one file; of one directory by default.
    """
    if logdir is None:
        return SummaryWriter()
    folder = as_path(logdir)
    return file_writer(name or f"logdir:{folder}", folder, max_queue, flush_millis, filename_suffix)


def file_writer(
    shared_name: str, folder: Any, max_queue: Any, flush_millis: Any, suffix: Any,
    own: bool = False,
) -> SummaryWriter:  # fmt: skip
    """The writer of a name; see `create_file_writer` and `SummaryWriter`."""
    with device(_HOST):
        handle: Tensor = ops.summary_writer_op(shared_name=shared_name)

    def make() -> Any:
        with device(_HOST):
            return ops.create_summary_file_writer_op(
                handle, folder, 10 if max_queue is None else max_queue,
                120_000 if flush_millis is None else flush_millis,
                ".v2" if suffix is None else suffix,
            )  # fmt: skip

    return SummaryWriter(handle, make, own)


create_summary_file_writer = create_file_writer


def summary_writer_initializer_op() -> list[Any]:
    """The operations that make the files of all writers of the graph.

    Raises:
        RuntimeError: operations run as they are made, these too.
    """
    refuse_eagerly(
        "tf.contrib.summary.summary_writer_initializer_op is only supported in graph mode."
    )
    return get_collection(_WRITERS)


def initialize(graph: Any = None, session: Any = None) -> None:
    """Makes the files of all writers, and writes a graph.

    Nothing happens where operations run as they are made, since writers make their files then.

    Args:
        graph: a `Graph` or a `GraphDef` to write, or None.
        session: the session, the default one when None.

    Raises:
        RuntimeError: there is no default writer.
        ValueError: there is no session.
    """
    if executing_eagerly():
        return
    if _current.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = get_default_session() if session is None else session
    if session is None:
        raise ValueError("session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        if isinstance(graph, Graph):
            graph = graph.as_graph_def(add_shapes=True)
        data = placeholder(dtypes.string, [])
        session.run(_write_graph(data, 0), {data: graph.SerializeToString()})


def flush(writer: Any = None, name: str | None = None) -> Any:
    """An operation that waits until all is in the file of a writer, the default one when None."""
    writer = _current.writer if writer is None else writer
    if writer is None:
        return no_op()
    with device(_HOST):
        return ops.flush_summary_writer_op(getattr(writer, "_resource", writer), name=name)


def eval_dir(model_dir: Any, name: str | None = None) -> str:
    """The directory for the summaries of an evaluation."""
    return os.path.join(as_path(model_dir), f"eval_{name}" if name else "eval")


# ---------------------------------------------------------------- whether to record
@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """A context in which summaries are recorded if a condition holds.

    Args:
        condition: a boolean of Python's, a tensor, or a function of either.
    """
    before = _current.records
    _current.records = condition
    try:
        yield
    finally:
        _current.records = before


def always_record_summaries() -> Any:
    """A context in which summaries are recorded."""
    return record_if(True)


def never_record_summaries() -> Any:
    """A context in which no summaries are recorded."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context in which summaries are recorded in the steps that `n` divides."""
    step = get_or_create_global_step() if global_step is None else global_step
    with device(_HOST):
        return record_if(equal(step % n, 0))


def should_record_summaries() -> Tensor:
    """A boolean tensor: whether summaries are to be recorded."""
    return convert_to_tensor(records(False))


def records(default: bool) -> Any:
    """Whether the summaries that are made now are recorded.

    Args:
        default: what holds where nobody has said it.
    """
    said = _current.records() if callable(_current.records) else _current.records
    return default if said is None else said


# ---------------------------------------------------------------- summaries
def all_summary_ops() -> list[Any] | None:
    """The operations of all summaries that write by themselves.

    None where operations run as they are made.
    """
    return None if executing_eagerly() else get_collection(_SUMMARIES)


all_v2_summary_ops = all_summary_ops  # its name in tf.summary


def _recorded(
    name: str, tensor: Any, family: str | None, step: Any, write: Callable[..., Any]
) -> Any:
    """An operation that has `write` write, if it is time to."""
    writer = _current.writer
    if writer is None or writer._resource is None:
        return no_op()
    handle, value = writer._resource, convert_to_tensor(tensor)
    around = get_default_graph().get_name_scope()

    def record() -> Tensor:
        # The tag does not tell that it may stand in a branch.
        with (
            name_scope(f"{around}/" if around else ""),
            summary_scope(name, family, values=[value]) as (tag, scope),
        ):
            done = write(handle, _step(step), identity(value), tag, scope)
            with control_dependencies([done]):
                return constant(True)

    with device(_HOST):
        made = smart_cond(records(False), record, lambda: constant(False))
    add_to_collection(_SUMMARIES, made)
    return made


def _step(step: Any) -> Any:
    if step is None:
        return get_or_create_global_step()
    return step if isinstance(step, Tensor) else convert_to_tensor(step, dtypes.int64)


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a number.

    Args:
        name: the tag, completed by the current name scope.
        tensor: a real scalar.
        family: prefix of the tag.
        step: the step to record, the global step when None.

    Returns:
        An operation, or a boolean tensor: whether it has written.
    """

    def write(handle: Any, step: Any, value: Any, tag: str, scope: str) -> Any:
        return ops.write_scalar_summary_op(handle, step, tag, value, name=scope)

    return _recorded(name, tensor, family, step, write)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes the histogram of a tensor; see `scalar`."""

    def write(handle: Any, step: Any, value: Any, tag: str, scope: str) -> Any:
        return ops.write_histogram_summary_op(handle, step, tag, value, name=scope)

    return _recorded(name, tensor, family, step, write)


def image(
    name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: str | None = None,
    step: Any = None,
) -> Any:  # fmt: skip
    """Writes images, [batch, height, width, channels]; see `scalar`."""
    color = np.array([255, 0, 0, 255], np.uint8) if bad_color is None else bad_color

    def write(handle: Any, step: Any, value: Any, tag: str, scope: str) -> Any:
        return ops.write_image_summary_op(
            handle, step, tag, value, color, max_images=max_images, name=scope
        )

    return _recorded(name, tensor, family, step, write)


def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None,
    step: Any = None,
) -> Any:  # fmt: skip
    """Writes clips, [batch, frames] or [batch, frames, channels]; see `scalar`."""

    def write(handle: Any, step: Any, value: Any, tag: str, scope: str) -> Any:
        return ops.write_audio_summary_op(
            handle, step, tag, value, sample_rate, max_outputs=max_outputs, name=scope
        )

    return _recorded(name, tensor, family, step, write)


def generic(
    name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None
) -> Any:
    """Writes a tensor with a `SummaryMetadata` of a TensorBoard plugin; see `scalar`."""
    data = b"" if metadata is None else metadata
    if hasattr(data, "SerializeToString"):
        data = data.SerializeToString()

    def write(handle: Any, step: Any, value: Any, tag: str, scope: str) -> Any:
        return ops.write_summary_op(handle, step, value, tag, data, name=scope)

    return _recorded(name, tensor, family, step, write)


def graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes a graph, whether or not summaries are recorded.

    Args:
        param: a string tensor, a serialized GraphDef.
        step: the step to record, the global step when None.
        name: a name for the operation.

    Raises:
        TypeError: `param` is no tensor.
    """
    if not isinstance(param, Tensor):
        raise TypeError(
            f"graph() needs a tf.Tensor (e.g. tf.placeholder) in graph mode, but was: {type(param)}"
        )
    writer = _current.writer
    if writer is None or writer._resource is None:
        return no_op()
    with device(_HOST):
        return ops.write_graph_summary_op(writer._resource, _step(step), param, name=name)


_write_graph = graph  # where an argument is called so


def import_event(tensor: Any, name: str | None = None) -> Any:
    """Writes a serialized `Event` as it is, whether or not summaries are recorded.

    Raises:
        RuntimeError: there is no default writer.
    """
    if _current.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    return ops.import_event_op(_current.writer._resource, tensor, name=name)
