"""Files and wire formats: TF's protobufs, checkpoints, record files. Also the names of `tf.io`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public name -> module, as text: the ops of tf.io stand above this layer.
_WHERE: dict[str, str] = {
    "read_file": "opdock.ops.io",
    "write_file": "opdock.ops.io",
    "matching_files": "opdock.ops.io",
    "write_graph": "opdock.train.graph_io",
    "TFRecordWriter": "opdock.io.tfrecord",
    "TFRecordOptions": "opdock.io.tfrecord",
    "TFRecordCompressionType": "opdock.io.tfrecord",
    "tf_record_iterator": "opdock.io.tfrecord",
}


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
