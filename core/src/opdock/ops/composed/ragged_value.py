"""`RaggedTensorValue`: what a ragged tensor is when it is fetched, and what it may be fed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

__all__: list[str] = []


class RaggedTensorValue:
    """The value of a ragged tensor: NumPy arrays of values and of row splits."""

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not (
            isinstance(row_splits, (np.ndarray, np.generic))
            and row_splits.dtype in (np.int32, np.int64)
            and row_splits.ndim == 1
        ):
            raise TypeError("row_splits must be a 1D int32 or int64 numpy array")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be a numpy array or a RaggedTensorValue")
        if isinstance(values, RaggedTensorValue) and row_splits.dtype != values.row_splits.dtype:
            raise ValueError("row_splits and values.row_splits must have the same dtype")
        self._values: Any = values
        self._row_splits: Any = row_splits

    row_splits = property(lambda self: self._row_splits, doc="Where each row begins and ends.")
    values = property(lambda self: self._values, doc="The rows one after the other.")
    dtype = property(lambda self: self._values.dtype, doc="The NumPy type of the values.")

    @property
    def flat_values(self) -> Any:
        """The values of the innermost ragged dimension."""
        values = self._values
        return values.flat_values if isinstance(values, RaggedTensorValue) else values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged dimensions, outermost first."""
        values = self._values
        inner = values.nested_row_splits if isinstance(values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes of the dimensions, None for ragged ones."""
        return (self._row_splits.shape[0] - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """The value as nested lists."""
        values = self._values
        flat = values.to_list() if isinstance(values, RaggedTensorValue) else values.tolist()
        splits = self._row_splits.tolist()
        return [flat[start:end] for start, end in itertools.pairwise(splits)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"
