"""Looking into SavedModels without loading them."""

from __future__ import annotations

from typing import Any

from opdock.io.files import as_path
from opdock.saved_model.file import (
    maybe_saved_model_directory,
    meta_graph_of,
    parse_saved_model,
    tag_sets,
)

__all__ = ["get_meta_graph_def", "get_saved_model_tag_sets", "read_saved_model"]


def read_saved_model(saved_model_dir: Any) -> Any:
    """The `SavedModel` message of a directory; IOError when there is none."""
    if not maybe_saved_model_directory(saved_model_dir):
        raise OSError(f"SavedModel file does not exist at: {as_path(saved_model_dir)}")
    return parse_saved_model(saved_model_dir)


def get_saved_model_tag_sets(saved_model_dir: Any) -> list[list[str]]:
    """The tags of each meta graph of a SavedModel."""
    return tag_sets(read_saved_model(saved_model_dir))


def get_meta_graph_def(saved_model_dir: Any, tag_set: str) -> Any:
    """The meta graph of a SavedModel that has exactly these tags.

    Args:
        saved_model_dir: the model's directory.
        tag_set: the tags, with commas between them.

    Raises:
        RuntimeError: there is none.
    """
    model = read_saved_model(saved_model_dir)
    found = meta_graph_of(model, tag_set.split(","))
    if found is None:
        known = "; ".join(",".join(sorted(tags)) for tags in tag_sets(model))
        raise RuntimeError(
            f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel, "
            f"which has {known or 'none'}"
        )
    return found
