"""Readers, in the host's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, dtypes, errors, host_ops
from opdock_cpu.kernels.queues import queue_of
from opdock_cpu.queues import Queue, Wait
from opdock_cpu.readers import Reader, Record

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


# ---------------------------------------------------------------- readers
def _shared(
    sig: NodeSig, source: Callable[[], host_ops.Source], whole: bool = False
) -> Callable[[], Reader]:
    """The reader of a node: its own, or the one that it shares by name."""
    kind, resources = sig.op.removesuffix("V2"), sig.resources
    container, name = sig.attrs["container"], sig.attrs["shared_name"] or sig.name
    assert resources is not None

    def run() -> Reader:
        found: Reader = resources.get_or_create(
            "reader", container, name, lambda: Reader(kind, container, name, source(), whole)
        )
        return found

    return run


@table.binder("IdentityReader", "IdentityReaderV2", keeps=())
def identity_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives what it takes from the queue."""
    return _shared(sig, lambda: host_ops.identity, whole=True)


@table.binder("WholeFileReader", "WholeFileReaderV2", keeps=())
def whole_file_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives whole files."""
    return _shared(sig, lambda: host_ops.whole_file, whole=True)


def _not_negative(sig: NodeSig, *names: str) -> list[int]:
    """Attributes that are numbers of something."""
    values = [int(sig.attrs[name]) for name in names]
    for name, value in zip(names, values, strict=True):
        if value < 0:
            raise errors.InvalidArgumentError(
                None, None, f"{name} must be >= 0 not {value} in {sig.op} '{sig.name}'"
            )
    return values


@table.binder("TextLineReader", "TextLineReaderV2", keeps=())
def text_line_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives lines."""
    (skip,) = _not_negative(sig, "skip_header_lines")
    return _shared(sig, lambda: host_ops.text_lines(skip))


@table.binder("FixedLengthRecordReader", "FixedLengthRecordReaderV2", keeps=())
def fixed_length_record_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives pieces of one length."""
    sizes = _not_negative(sig, "header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
    if not sizes[1] + sizes[2]:
        raise errors.InvalidArgumentError(
            None, None, f"record_bytes must be > 0 in {sig.op} '{sig.name}': no file has an end"
        )
    encoding = sig.attrs.get("encoding", "")
    return _shared(sig, lambda: host_ops.fixed_length(*sizes, encoding))


@table.binder("TFRecordReader", "TFRecordReaderV2", keeps=())
def tf_record_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives the records of TFRecord files."""
    compression = sig.attrs["compression_type"]
    return _shared(sig, lambda: host_ops.tf_records(compression))


@table.binder("LMDBReader", keeps=())
def lmdb_reader(sig: NodeSig) -> Callable[[], Reader]:
    """Gives the pairs of LMDB databases."""
    return _shared(sig, lambda: host_ops.lmdb_pairs)


# ---------------------------------------------------------------- use
def _use(sig: NodeSig, work: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that does something with the reader behind its first argument."""
    assert sig.resources is not None
    wait = sig.resources.wait

    def run(handle: Any, *arguments: Any) -> Any:
        reader = handle.item() if isinstance(handle, np.ndarray) else handle
        if not isinstance(reader, Reader):
            raise errors.InvalidArgumentError(
                None, None, f"{sig.op} '{sig.name}': the handle is not one of a reader"
            )
        return work(reader, wait, *arguments)

    return run


def _work_from(queue: Queue, wait: Wait) -> Callable[[], bytes]:
    """Takes units of work from a queue of strings."""
    if queue.types != (dtypes.string,):
        what = "single component" if len(queue.types) != 1 else "single string component"
        raise errors.InvalidArgumentError(
            None, None, f"Expected queue with {what}: {queue.kind} '{queue.name}' has "
            + ", ".join(t.name for t in queue.types),
        )  # fmt: skip

    def take() -> bytes:
        (work,) = queue.dequeue(wait)
        if work.size != 1:
            raise errors.InvalidArgumentError(
                None, None,
                f"Expected to dequeue a one-element string tensor, got shape {list(work.shape)}",
            )  # fmt: skip
        found = work.reshape(-1)[0]
        return found.encode() if isinstance(found, str) else bytes(found)

    return take


def _scalar(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


@table.binder("ReaderRead", "ReaderReadV2")
def read(sig: NodeSig) -> Callable[..., Any]:
    """The next record."""

    def work(reader: Reader, wait: Wait, queue: Any) -> tuple[Array, Array]:
        ((key, value),) = reader.give(_work_from(queue_of(queue, sig), wait), wait)
        return _scalar(key), _scalar(value)

    return _use(sig, work)


@table.binder("ReaderReadUpTo", "ReaderReadUpToV2")
def read_up_to(sig: NodeSig) -> Callable[..., Any]:
    """The next records of a file."""

    def work(reader: Reader, wait: Wait, queue: Any, limit: Any) -> tuple[Array, Array]:
        found = reader.give(_work_from(queue_of(queue, sig), wait), wait, int(limit))
        return _column(found, 0), _column(found, 1)

    return _use(sig, work)


def _column(records: list[Record], index: int) -> Array:
    out = np.empty(len(records), object)
    out[:] = [record[index] for record in records]
    return out


@table.binder("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2")
def num_records_produced(sig: NodeSig) -> Callable[..., Any]:
    """How many records there were."""
    return _use(sig, lambda reader, wait: np.asarray(reader.state.produced, np.int64))


@table.binder("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2")
def num_work_units_completed(sig: NodeSig) -> Callable[..., Any]:
    """How many units of work are over."""
    return _use(sig, lambda reader, wait: np.asarray(reader.state.finished, np.int64))


@table.binder("ReaderSerializeState", "ReaderSerializeStateV2")
def serialize_state(sig: NodeSig) -> Callable[..., Any]:
    """The state as a string."""
    return _use(sig, lambda reader, wait: _scalar(reader.save(wait)))


@table.binder("ReaderRestoreState", "ReaderRestoreStateV2")
def restore_state(sig: NodeSig) -> Callable[..., Any]:
    """Takes on a state."""

    def work(reader: Reader, wait: Wait, state: Array) -> tuple[()]:
        reader.restore(bytes(np.asarray(state, object).item()), wait)
        return ()

    return _use(sig, work)


@table.binder("ReaderReset", "ReaderResetV2")
def reset(sig: NodeSig) -> Callable[..., Any]:
    """Begins anew."""

    def work(reader: Reader, wait: Wait) -> tuple[()]:
        reader.reset(wait)
        return ()

    return _use(sig, work)
