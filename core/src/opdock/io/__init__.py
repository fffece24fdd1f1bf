"""Files and wire formats: TF's protobufs, checkpoints, record files. Also the names of `tf.io`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

# Public name -> module, as text: the ops of tf.io stand above this layer.
_WHERE: Final[dict[str, str]] = {
    "TFRecordCompressionType": "opdock.io.tfrecord",
    "TFRecordOptions": "opdock.io.tfrecord",
    "TFRecordWriter": "opdock.io.tfrecord",
    "decode_proto": "opdock.ops.proto",
    "encode_proto": "opdock.ops.proto",
    "parse_sequence_example": "opdock.ops.composed.example_features",
    "serialize_tensor": "opdock.ops.encoding",
    "tf_record_iterator": "opdock.io.tfrecord",
    "write_graph": "opdock.train.graph_io",
}
# Names that tf.io shares with tf, and with tf.image, as far as these have them.
_SHARED: Final[dict[str, frozenset[str]]] = {
    "opdock": frozenset((
        "FixedLenFeature", "FixedLenSequenceFeature", "PaddingFIFOQueue", "PriorityQueue",
        "QueueBase", "RandomShuffleQueue", "SparseFeature", "VarLenFeature", "decode_base64",
        "decode_compressed", "decode_csv", "decode_json_example", "decode_raw",
        "deserialize_many_sparse", "encode_base64", "matching_files", "parse_example",
        "parse_single_example", "parse_single_sequence_example", "parse_tensor", "read_file",
        "serialize_many_sparse", "serialize_sparse", "write_file",
    )),
    "opdock.api.image": frozenset((
        "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg",
        "decode_png", "encode_jpeg", "extract_jpeg_shape", "is_jpeg",
    )),
    "opdock.train": frozenset(("match_filenames_once",)),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name) or next((m for m, names in _SHARED.items() if name in names), None)
    if name == "gfile":
        return import_module("opdock.api.io_gfile")
    value = None if where is None else getattr(import_module(where), name, None)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *frozenset().union(*_SHARED.values()), "gfile"})
