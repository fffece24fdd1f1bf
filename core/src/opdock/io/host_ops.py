"""What the ops on files, checkpoints, summaries and encoded images do, for backends to call.

They are functions on host arrays. These ops do no device arithmetic, so every backend that serves
them shares this code. The checkpoint formats load when the first such op runs, and so do codecs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io import files, filesystems, protos
from opdock.io.image_format import JpegOptions, decode_bmp, decode_image, jpeg_shape
from opdock.io.jpeg_format import encode_jpeg
from opdock.io.png_format import encode_png
from opdock.io.summary_format import (
    audio_summary,
    histogram_summary,
    image_summary,
    merge_summaries,
    scalar_summary,
    tensor_summary,
)
from opdock.io.tensor_bytes import (
    decoded,
    tensor_from_bytes,
    tensor_to_bytes,
    variants_from_bytes,
)

if TYPE_CHECKING:
    from opdock.io.restoration import Restoration
    from opdock.io.saving import Saving

Array = np.ndarray[Any, Any]

# These load when the first op that needs them is prepared; parsers of Examples bring protobuf.
_LATER = {
    "EventSink": "opdock.io.event_sink",
    "ReaderState": "opdock.io.reader_state",
    "Records": "opdock.io.record_sources", "Source": "opdock.io.record_sources",
    "fixed_length": "opdock.io.record_sources", "identity": "opdock.io.record_sources",
    "lmdb_pairs": "opdock.io.record_sources",
    "text_lines": "opdock.io.record_sources", "tf_records": "opdock.io.record_sources",
    "whole_file": "opdock.io.record_sources",
    "decode_wav": "opdock.io.wav_format", "encode_wav": "opdock.io.wav_format",
    "remapped_matrix": "opdock.io.vocabularies",
    "vocabulary_lines": "opdock.io.vocabularies",
    "vocabulary_remapping": "opdock.io.vocabularies",
    "Dense": "opdock.io.examples", "Sparse": "opdock.io.examples",
    "parse_batch": "opdock.io.examples", "parse_one": "opdock.io.examples",
    "parse_sequence": "opdock.io.sequence_examples",
    "parse_sequences": "opdock.io.sequence_examples",
    "forest_message": "opdock.io.tree_ensembles",
    "tree_debug_output": "opdock.io.tree_ensembles", "tree_ensemble": "opdock.io.tree_ensembles",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "JpegOptions", "audio_summary", "begin_saving", "decode_bmp", "decode_image", "encode_jpeg",
    "encode_png", "histogram_summary", "image_summary", "jpeg_shape", "json_example",
    "matching_files", "merge_checkpoints", "merge_summaries", "open_restoration",
    "parse_tensor", "read_file", "restore_v2", "save_v1", "save_v2", "scalar_summary",
    "sharded_filename", "sharded_filespec", "tensor_from_bytes", "tensor_summary",
    "tensor_to_bytes", "write_file",
]  # fmt: skip


def scalar_text(value: Any, what: str) -> str:
    """A string tensor of one element as text.

    Raises:
        InvalidArgumentError: it has more or fewer elements.
    """
    array = np.asarray(value, object)
    if array.size != 1:
        raise errors.InvalidArgumentError(
            None, None, f"{what} must be a scalar, got shape {list(array.shape)}"
        )
    item = array.item()
    return item.decode() if isinstance(item, bytes) else str(item)


def _texts(value: Any) -> list[str]:
    return [
        v.decode() if isinstance(v, bytes) else str(v)
        for v in np.asarray(value, object).reshape(-1)
    ]


def _check_specs(op: str, names: Sequence[str], specs: Sequence[str], tensors: int) -> None:
    if not len(names) == len(specs) == tensors:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{op} got {len(names)} tensor names, {len(specs)} shape_and_slices and {tensors}"
            " tensors; the numbers must be equal",
        )


# ---------------------------------------------------------------- checkpoints
def save_v2(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, tensors: Sequence[Any],
    dtypes: Sequence[DType],
) -> None:  # fmt: skip
    """Writes a checkpoint bundle.

    Args:
        prefix: string scalar.
        tensor_names: string vector.
        shape_and_slices: string vector; "" for a whole tensor, else "full shape slice".
        tensors: the values.
        dtypes: their types.

    Raises:
        InvalidArgumentError: the numbers differ, a name repeats or a slice does not fit.
        NotFoundError: the directory does not exist.
    """
    saving = begin_saving(prefix, tensor_names, shape_and_slices, dtypes)
    for index, tensor in enumerate(tensors):
        saving.write(index, tensor)
    saving.finish()


def begin_saving(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[DType]
) -> Saving:
    """Begins what `save_v2` does at once, for whoever has the tensors one after the other."""
    from opdock.io.saving import Saving

    names, specs = _texts(tensor_names), _texts(shape_and_slices)
    _check_specs("SaveV2", names, specs, len(dtypes))
    return Saving(scalar_text(prefix, "prefix"), names, specs, dtypes)


def save_v1(
    filename: Any, tensor_names: Any, shapes_and_slices: Any, tensors: Sequence[Any],
    dtypes: Sequence[DType],
) -> None:  # fmt: skip
    """Writes a checkpoint of the first format; the arguments are those of `save_v2`."""
    from opdock.io.checkpoint_v1 import write_v1
    from opdock.io.tensor_slice import TensorSlice, parse_shape_and_slice

    names = _texts(tensor_names)
    specs = [""] * len(names) if shapes_and_slices is None else _texts(shapes_and_slices)
    _check_specs("SaveSlices", names, specs, len(tensors))
    pieces = []
    for name, spec, tensor, dtype in zip(names, specs, tensors, dtypes, strict=True):
        array = np.asarray(tensor)
        shape, part = array.shape, TensorSlice.full(array.ndim)
        if spec:
            shape, part = parse_shape_and_slice(spec)
        pieces.append((name, shape, part, array, dtype.base_dtype))
    write_v1(scalar_text(filename, "filename"), pieces)


def open_restoration(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[DType]
) -> Restoration:
    """Finds tensors or slices of tensors in a checkpoint of either format, to be read later.

    Raises:
        NotFoundError: no such checkpoint or tensor.
        InvalidArgumentError: a type or a shape is not the saved one.
        DataLossError: the checkpoint is damaged.
    """
    found = _restoration(prefix, tensor_names, shape_and_slices, dtypes)
    found.verify()
    return found


def restore_v2(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[DType]
) -> tuple[Array, ...]:
    """Reads what `open_restoration` finds, all of it; the errors are the same."""
    found = _restoration(prefix, tensor_names, shape_and_slices, dtypes)
    return tuple(found.read(i) for i in range(len(found)))


def _restoration(
    prefix: Any, tensor_names: Any, shape_and_slices: Any, dtypes: Sequence[DType]
) -> Restoration:
    from opdock.io.restoration import Restoration

    names, specs = _texts(tensor_names), _texts(shape_and_slices)
    _check_specs("RestoreV2", names, specs, len(dtypes))
    return Restoration(scalar_text(prefix, "prefix"), names, specs, dtypes)


def merge_checkpoints(prefixes: Any, destination: Any, delete_old_dirs: bool) -> None:
    """Makes one bundle of several and, if asked, removes the directories that they leave empty."""
    from contextlib import suppress

    from opdock.io.checkpoint_v2 import merge_bundles

    parts = _texts(prefixes)
    merged = scalar_text(destination, "destination_prefix")
    merge_bundles(parts, merged)
    if delete_old_dirs:
        for directory in {filesystems.parent(p) for p in parts} - {filesystems.parent(merged), ""}:
            with suppress(OSError):
                filesystems.of(directory).rmdir(directory)


def sharded_filename(basename: Any, shard: Any, num_shards: Any) -> bytes:
    """The name of one shard, "base-00001-of-00004"."""
    base = scalar_text(basename, "basename")
    return f"{base}-{int(shard):05d}-of-{int(num_shards):05d}".encode()


def sharded_filespec(basename: Any, num_shards: Any) -> bytes:
    """The pattern that matches all shards, "base-?????-of-00004"."""
    return f"{scalar_text(basename, 'basename')}-?????-of-{int(num_shards):05d}".encode()


# ---------------------------------------------------------------- files
def read_file(filename: Any) -> bytes:
    """The content of a file; NotFoundError when there is none."""
    return files.read_file(scalar_text(filename, "Input filename tensor"))


def write_file(filename: Any, contents: Any) -> None:
    """Writes a file, making its directories when they are missing."""
    path = scalar_text(filename, "Input filename tensor")
    data = np.asarray(contents, object)
    if data.size != 1:
        raise errors.InvalidArgumentError(
            None, None, f"Contents tensor must be a scalar, got shape {list(data.shape)}"
        )
    item = data.reshape(-1)[0]
    directory = filesystems.parent(path)
    with files.tf_errors(path):
        if directory:
            filesystems.of(path).makedirs(directory)
    files.write_file(path, item.encode() if isinstance(item, str) else bytes(item))


def matching_files(patterns: Any) -> Array:
    """The sorted names of the files that match any of the patterns."""
    found = sorted({m for p in _texts(patterns) for m in filesystems.of(p).glob(p)})
    out = np.empty(len(found), object)
    out[:] = [name.encode() for name in found]
    return out


# ---------------------------------------------------------------- tensors
def parse_tensor(serialized: bytes, dtype: DType) -> Array:
    """The tensor in a serialized TensorProto.

    Raises:
        InvalidArgumentError: it is none, or of another type than `dtype`.
    """
    from google.protobuf.message import DecodeError

    try:
        array = variants_from_bytes(serialized) if dtype is dtypes.variant else decoded(serialized)
    except (DecodeError, TypeError, ValueError) as e:
        shown = serialized[:1000].decode("utf-8", "replace")
        why = "" if isinstance(e, DecodeError) else f" ({e})"
        raise errors.InvalidArgumentError(
            None, None, f"Could not parse `serialized` as TensorProto: '{shown}'{why}"
        ) from None
    found = dtype if dtype is dtypes.variant else dtypes.as_dtype(array.dtype)
    if found is not dtype:
        kinds = dtypes.proto_name(found), dtypes.proto_name(dtype)
        raise errors.InvalidArgumentError(
            None, None, f"Type mismatch between parsed tensor ({kinds[0]}) and dtype ({kinds[1]})"
        )
    return array


def json_example(text: bytes) -> bytes:
    """A serialized Example of one in protobuf's JSON; InvalidArgumentError for another text."""
    from google.protobuf import json_format

    example = protos.Example()
    try:
        json_format.Parse(text, example)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as e:
        raise errors.InvalidArgumentError(None, None, f"Error while parsing JSON: {e}") from None
    data: bytes = example.SerializeToString(deterministic=True)
    return data
