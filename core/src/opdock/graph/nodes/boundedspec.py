"""`BoundedTensorSpec`: what is known of a tensor, and between which numbers its elements lie."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.typespec import TensorSpec

__all__ = ["BoundedTensorSpec"]


class BoundedTensorSpec(TensorSpec):
    """A spec of tensors with a least and a greatest number for each element, both inclusive.

    Args:
        shape: what `tf.TensorShape` takes.
        dtype: what `tf.as_dtype` takes.
        minimum: a number, or numbers that broadcast to the shape.
        maximum: likewise.
        name: the tensor's name, if it has one.

    Raises:
        ValueError: a bound is missing, or does not broadcast to the shape.
    """

    __slots__ = ("_maximum", "_minimum")

    def __init__(
        self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: str | None = None
    ) -> None:
        super().__init__(shape, dtype, name)
        if minimum is None or maximum is None:
            raise ValueError(
                f"minimum and maximum must be provided; but saw '{minimum}' and '{maximum}'"
            )
        self._minimum = self._bound("minimum", minimum)
        self._maximum = self._bound("maximum", maximum)

    def _bound(self, called: str, given: Any) -> np.ndarray[Any, Any]:
        try:
            shapes.broadcast(np.shape(given), self._shape.raw)
        except ValueError as e:
            raise ValueError(f"{called} is not compatible with shape. Message: {e!r}.") from None
        bound = np.array(given, self._dtype.as_numpy_dtype)
        bound.setflags(write=False)
        return bound

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> Self:
        """The spec with bounds of another one: its own, or those of its type."""
        dtype = dtypes.as_dtype(spec.dtype)
        minimum, maximum = getattr(spec, "minimum", dtype.min), getattr(spec, "maximum", dtype.max)
        return cls(spec.shape, dtype, minimum, maximum, name or spec.name)

    @property
    def minimum(self) -> np.ndarray[Any, Any]:
        """The least numbers."""
        return self._minimum

    @property
    def maximum(self) -> np.ndarray[Any, Any]:
        """The greatest numbers."""
        return self._maximum

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r}, "
            f"minimum={self._minimum!r}, maximum={self._maximum!r})"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoundedTensorSpec)
            and (self._shape, self._dtype) == (other._shape, other._dtype)
            and np.allclose(self._minimum, other._minimum)
            and np.allclose(self._maximum, other._maximum)
        )

    __hash__ = TensorSpec.__hash__

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._minimum, self._maximum, self._name
