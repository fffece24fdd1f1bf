"""Datasets of names of files."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import shape, size
from opdock.ops.check import Assert
from opdock.ops.compare import greater
from opdock.ops.identity import identity
from opdock.ops.io import matching_files
from opdock.ops.strings import reduce_join, string_join

__all__ = ["list_files"]


def list_files(dataset: Any, file_pattern: Any, shuffle: bool | None, seed: Any) -> Any:
    """See `tf.data.Dataset.list_files`; `dataset` is the class."""
    with name_scope("list_files"):
        pattern = convert_to_tensor(file_pattern, dtype=dtypes.string, name="file_pattern")
        files = matching_files(pattern)
        found = greater(size(files), 0, name="match_not_empty")
        shown = reduce_join(pattern, separator=", ")
        message = string_join(["No files matched pattern: ", shown], name="message")
        with control_dependencies([Assert(found, [message], 1, name="assert_not_empty")]):
            files = identity(files)
        names = dataset.from_tensor_slices(files)
        if shuffle is None or shuffle:
            # The buffer holds them all; TF wants one place even if there are none.
            names = names.shuffle(maximum(shape(files, out_type=dtypes.int64)[0], 1), seed=seed)
        return names
