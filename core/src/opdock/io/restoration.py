"""What a restore asks of a checkpoint: found to be there, then read one by one.

A tensor is read when it is asked for, so a restore of a large model holds one of them at a time.
Whoever assigns the first before the last is read calls `verify` first, so that a checkpoint that is
damaged changes no variable.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.dtypes import DType
from opdock.io.checkpoint_reader import open_checkpoint
from opdock.io.tensor_slice import parse_shape_and_slice
from opdock.util.interrupts import finalizer

if TYPE_CHECKING:
    from opdock.io.bundle_format import Array
    from opdock.io.tensor_slice import TensorSlice

__all__ = ["Restoration"]


class Restoration:
    """Tensors and slices of tensors of a checkpoint of either format.

    The files stay open until the object is gone: a checkpoint that is replaced or removed
    meanwhile is read to its end.

    Args:
        prefix: of the checkpoint.
        names: of the tensors.
        specs: "" for a whole tensor, else "full shape slice".
        dtypes: the types that they must have.

    Raises:
        NotFoundError: no such checkpoint or tensor.
        InvalidArgumentError: a type or a shape is not the saved one.
        DataLossError: the index of the checkpoint is damaged.
    """

    def __init__(
        self, prefix: str, names: Sequence[str], specs: Sequence[str], dtypes: Sequence[DType]
    ) -> None:
        self._reader: Any = open_checkpoint(prefix)
        weakref.finalize(self, finalizer(self._reader.close))
        self._wanted: list[tuple[str, TensorSlice | None]] = []
        for name, spec, dtype in zip(names, specs, dtypes, strict=True):
            self._wanted.append((name, self._checked(name, spec, dtype)))

    def _checked(self, name: str, spec: str, dtype: DType) -> TensorSlice | None:
        reader = self._reader
        if name not in reader:
            raise reader.missing(name)
        saved = reader.dtype(name)
        if saved.base_dtype is not dtype.base_dtype:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"tensor_name = {name}; expected dtype {dtype.base_dtype.name} does not equal"
                f" original dtype {saved.name}",
            )
        if not spec:
            return None
        shape, part = parse_shape_and_slice(spec)
        if shape != reader.shape(name):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"tensor_name = {name}; shape in shape_and_slice spec {list(shape)} does not"
                f" match the shape stored in checkpoint: {list(reader.shape(name))}",
            )
        return part

    def verify(self) -> None:
        """Reads all that will be read, a little at a time, to find out whether it is whole.

        Raises:
            DataLossError: the checkpoint is damaged.
        """
        self._reader.verify(dict.fromkeys(name for name, _ in self._wanted))

    def __len__(self) -> int:
        return len(self._wanted)

    def read(self, index: int) -> Array:
        """The tensor or slice that was asked for as number `index`."""
        name, part = self._wanted[index]
        found: Array = (
            self._reader.get(name) if part is None else self._reader.get_slice(name, part)
        )
        return found
