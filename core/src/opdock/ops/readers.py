"""Readers: records out of files whose names come from a queue. The classes are in `composed/`.

A reader is a resource of the host, known by its container and name. The ops whose names end with
V2 take a handle, the older ones a reference; both are the reader to a kernel. Whoever reads may
have to wait for the name of the next file.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar
from opdock.ops.support.handles import HANDLES, check_handle, handle_shape
from opdock.shapes import Shape

__all__: list[str] = []

_SHARED = 'container: string = "", shared_name: string = ""'


# ---------------------------------------------------------------- readers
for _name, _attrs in {
    "WholeFileReader": _SHARED,
    "TextLineReader": f"skip_header_lines: int = 0, {_SHARED}",
    "FixedLengthRecordReader": "header_bytes: int = 0, record_bytes: int, footer_bytes: int = 0, "
    f"hop_bytes: int = 0, {_SHARED}",
    "TFRecordReader": f'{_SHARED}, compression_type: string = ""',
    "IdentityReader": _SHARED,
    "LMDBReader": _SHARED,
}.items():
    for _suffix, _handle in HANDLES if _name != "LMDBReader" else HANDLES[:1]:
        _more = ', encoding: string = ""' if _name + _suffix == "FixedLengthRecordReaderV2" else ""
        _op = define_op(
            f"{_name}{_suffix}", f"-> reader_handle: {_handle}", _attrs + _more, stateful=True
        )
        # A kernel finds the reader, or makes it: that is no effect, and nothing holds a variable.
        _op.declare(Traits(effect=False, merge=False, fold=False)).not_differentiable()
        _op.shape(handle_shape)


# ---------------------------------------------------------------- what is done with them
def _scalars_shape(sig: ShapeSig) -> list[Shape]:
    for i in range(2 if sig.op.startswith("ReaderRead") else 1):
        check_handle(sig, i)
    return scalar(sig)


def _read_up_to_shape(sig: ShapeSig) -> list[Shape]:
    check_handle(sig, 0)
    check_handle(sig, 1)
    shapes.with_rank(sig.shapes[2], 0)
    return [(None,)] * sig.n_outputs


def _restore_shape(sig: ShapeSig) -> list[Shape]:
    check_handle(sig)
    shapes.with_rank(sig.shapes[1], 0)
    return no_outputs(sig)


_READS = Traits(cost=Cost.WAIT, blocks=True, effect=True)
_ASKS = Traits(reads=("reader_handle",), fold=False, merge=False)
_CHANGES = Traits(effect=True)
for _name, _signature, _traits, _shape in (
    ("ReaderRead", ", queue_handle: {} -> key: string, value: string", _READS, _scalars_shape),
    ("ReaderReadUpTo", ", queue_handle: {}, num_records: int64 -> keys: string, values: string",
     _READS, _read_up_to_shape),
    ("ReaderNumRecordsProduced", " -> records_produced: int64", _ASKS, _scalars_shape),
    ("ReaderNumWorkUnitsCompleted", " -> units_completed: int64", _ASKS, _scalars_shape),
    ("ReaderSerializeState", " -> state: string", _ASKS, _scalars_shape),
    ("ReaderRestoreState", ", state: string ->", _CHANGES, _restore_shape),
    ("ReaderReset", " ->", _CHANGES, _scalars_shape),
):  # fmt: skip
    for _suffix, _handle in HANDLES:
        # As in TF, an op on a handle has state by that alone.
        _op = define_op(
            f"{_name}{_suffix}", f"reader_handle: {_handle}" + _signature.format(_handle),
            stateful=_suffix == "V2",
        )  # fmt: skip
        _op.declare(_traits).not_differentiable()
        _op.shape(_shape)
