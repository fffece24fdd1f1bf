"""Reading a checkpoint of either format by its prefix; TF's `NewCheckpointReader`."""

from __future__ import annotations

import os
from typing import Any

from opdock.dtypes import DType
from opdock.io import filesystems, protos
from opdock.io.checkpoint_v1 import V1Reader
from opdock.io.checkpoint_v2 import BundleReader
from opdock.io.files import local_path
from opdock.util.interrupts import finalizer

__all__ = ["CheckpointReader", "NewCheckpointReader", "open_checkpoint"]


def open_checkpoint(prefix: str | bytes | os.PathLike[str]) -> BundleReader | V1Reader:
    """The reader of a checkpoint: V2 when `prefix.index` exists, else V1.

    Raises:
        NotFoundError: there is no such checkpoint.
        DataLossError: it is damaged.
    """
    path = local_path(prefix)
    if filesystems.exists(f"{path}.index"):
        return BundleReader(path)
    old = filesystems.isfile(path) or any(c in path for c in "*?[")
    return V1Reader(path) if old else BundleReader(path)


class CheckpointReader:
    """Looks into a checkpoint.

    Args:
        filepattern: the checkpoint's prefix, e.g. "/tmp/model.ckpt-100".

    Raises:
        NotFoundError: there is no such checkpoint.
        DataLossError: it is damaged.
    """

    def __init__(self, filepattern: str | bytes | os.PathLike[str]) -> None:
        self._reader = open_checkpoint(filepattern)

    @finalizer
    def __del__(self) -> None:
        # TF's reader has no close, so programs drop it.
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shape, as a list, of every tensor by name."""
        return {name: list(self._reader.shape(name)) for name in self._reader.names()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Type of every tensor by name."""
        return {name: self._reader.dtype(name) for name in self._reader.names()}

    def _shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of one tensor, which `get_variable_to_shape_map` has beside those of others."""
        return self._reader.shape(name)

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint has a tensor of this name."""
        return tensor_str in self._reader

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor as an array (a NumPy scalar or bytes for rank 0).

        Raises:
            NotFoundError: no such tensor.
            DataLossError: the data is damaged.
        """
        array = self._reader.get(tensor_str)
        return array[()] if array.ndim == 0 else array

    def debug_string(self) -> bytes:
        """One line a tensor: name, type and shape."""
        lines = (
            f"{n} ({protos.DataType.Name(self._reader.dtype(n).as_datatype_enum)})"
            f" {_dims(self._reader.shape(n))}\n"
            for n in self._reader.names()
        )
        return "".join(lines).encode()


def _dims(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


def NewCheckpointReader(filepattern: str) -> CheckpointReader:
    """Opens a checkpoint for reading.

    Args:
        filepattern: the checkpoint's prefix.

    Returns:
        A `CheckpointReader`.
    """
    return CheckpointReader(filepattern)
