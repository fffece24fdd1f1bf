"""What a save writes: tensors and slices of tensors one by one, seen when all of them are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.dtypes import DType
from opdock.io.checkpoint_v2 import BundleWriter
from opdock.io.tensor_slice import parse_shape_and_slice

__all__ = ["Saving"]


class Saving:
    """A checkpoint that is being written. If something of it fails, nothing of it remains.

    Args:
        prefix: of the checkpoint.
        names: of the tensors.
        specs: "" for a whole tensor, else "full shape slice".
        dtypes: their types.

    Raises:
        NotFoundError: the directory does not exist.
    """

    def __init__(
        self, prefix: str, names: Sequence[str], specs: Sequence[str], dtypes: Sequence[DType]
    ) -> None:
        self._writer = BundleWriter(prefix)
        self._wanted = list(zip(names, specs, dtypes, strict=True))

    def write(self, index: int, tensor: Any) -> None:
        """Adds the tensor or slice that is number `index`.

        Raises:
            InvalidArgumentError: its name is another's as well, or it does not fit its slice.
        """
        name, spec, dtype = self._wanted[index]
        try:
            if spec:
                shape, part = parse_shape_and_slice(spec)
                self._writer.add_slice(name, shape, part, tensor, dtype)
            else:
                self._writer.add(name, tensor, dtype)
        except BaseException:
            self.abandoned()
            raise

    def finish(self) -> None:
        """Makes it the checkpoint of its name."""
        self._writer.finish()

    def abandoned(self) -> None:
        """Removes what was written: the step that has it fails between two tensors, say."""
        self._writer.abandon()
