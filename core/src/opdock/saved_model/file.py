"""The `SavedModel` message in a file, and the meta graph of given tags in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from opdock.io import filesystems, protos
from opdock.io.files import as_path, read_file
from opdock.saved_model import constants

__all__ = ["maybe_saved_model_directory", "meta_graph_of", "parse_saved_model", "tag_sets"]

# Messages packed into an Any carry the name of their type. TensorBoard's classes of TF's messages
# have another package than TF's own, which files must name.
_OURS, _FILES = "type.googleapis.com/tensorboard.", "type.googleapis.com/tensorflow."


def _files_of(export_dir: Any) -> tuple[str, str]:
    directory = as_path(export_dir)
    return (
        os.path.join(directory, constants.SAVED_MODEL_FILENAME_PB),
        os.path.join(directory, constants.SAVED_MODEL_FILENAME_PBTXT),
    )


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a directory has the file of a SavedModel.

    Args:
        export_dir: the directory.

    Returns:
        False if it certainly holds none; whether one can be loaded is not looked into.
    """
    return any(filesystems.of(path).exists(path) for path in _files_of(export_dir))


def parse_saved_model(export_dir: Any) -> Any:
    """Reads the `SavedModel` message of a directory, binary or text.

    Raises:
        IOError: there is none, or it cannot be parsed.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    binary, text = _files_of(export_dir)
    model = protos.SavedModel()
    try:
        if filesystems.of(binary).exists(binary):
            path = binary
            model.ParseFromString(read_file(binary))
        elif filesystems.of(text).exists(text):
            path = text
            text_format.Merge(_renamed(read_file(text).decode("utf-8"), _FILES, _OURS), model)
        else:
            raise OSError(
                f"SavedModel file does not exist at: {as_path(export_dir)}/"
                f"{{{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}}}"
            )
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as e:
        raise OSError(f"Cannot parse file {path}: {e}.") from None
    _rename_packed(model, _FILES, _OURS)
    return model


def to_bytes(model: Any) -> bytes:
    """A `SavedModel` as it is written to a binary file."""
    copy = protos.SavedModel()
    copy.CopyFrom(model)
    _rename_packed(copy, _OURS, _FILES)
    data: bytes = copy.SerializeToString()
    return data


def to_text(model: Any) -> bytes:
    """A `SavedModel` as it is written to a text file."""
    from google.protobuf import text_format

    return _renamed(text_format.MessageToString(model), _OURS, _FILES).encode()


def _renamed(text: str, old: str, new: str) -> str:
    # Text spells a packed message out, behind its type in brackets.
    return text.replace(f"[{old}", f"[{new}")


def _rename_packed(model: Any, old: str, new: str) -> None:
    for meta in model.meta_graphs:
        for collection in meta.collection_def.values():
            for packed in collection.any_list.value:
                if packed.type_url.startswith(old):
                    packed.type_url = new + packed.type_url[len(old) :]


def tag_sets(model: Any) -> list[list[str]]:
    """The tags of each meta graph."""
    return [list(meta.meta_info_def.tags) for meta in model.meta_graphs]


def meta_graph_of(model: Any, tags: Iterable[str]) -> Any | None:
    """The meta graph of a `SavedModel` that has exactly these tags, or None."""
    wanted = set(tags)
    return next((m for m in model.meta_graphs if set(m.meta_info_def.tags) == wanted), None)
