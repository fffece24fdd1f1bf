"""Arrays in memory as the input of estimators: placeholders, and what is fed to them each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import opdock as tf
from opdock import errors

__all__ = ["ArrayInput"]


class ArrayInput:
    """Features and labels in memory, batch by batch.

    Args:
        x: an array [examples, ...], or arrays by key.
        y: the labels, likewise; None where there are none.
        batch_size: how many examples a step has; all by default.
        shuffle: whether each epoch is in an order of its own.
        epochs: how many there are; None is without end.

    Raises:
        ValueError: arrays have different numbers of examples.
    """

    def __init__(
        self, x: Any, y: Any, batch_size: int | None = None, shuffle: bool = False,
        epochs: int | None = 1,
    ) -> None:  # fmt: skip
        self._features = _arrays(x, flat=False)
        self._labels = None if y is None else _arrays(y, flat=True)
        sizes = {len(a) for a in (*_each(self._features), *_each(self._labels))}
        if len(sizes) != 1:
            raise ValueError(f"All of x and y must have as many examples, got {sorted(sizes)}.")
        (self._size,) = sizes
        self._batch_size = min(batch_size or self._size, self._size)
        self._shuffle = shuffle
        self._epochs = epochs
        self._random = np.random.RandomState(42)
        self._placeholders: list[tuple[Any, Any]] = []
        self._batches = self._indices()

    def input_fn(self) -> tuple[Any, Any]:
        """The placeholders of features and labels in the default graph."""
        self._placeholders = []
        return self._placed(self._features, "input"), self._placed(self._labels, "output")

    def feed_fn(self) -> dict[Any, Any]:
        """What is fed in the next step; OutOfRangeError after the last."""
        chosen = next(self._batches, None)
        if chosen is None:
            raise errors.OutOfRangeError(None, None, "All epochs of the arrays have been fed.")
        return {placeholder: array[chosen] for placeholder, array in self._placeholders}

    def _placed(self, arrays: Any, name: str) -> Any:
        if isinstance(arrays, Mapping):
            return {k: self._placed(a, f"{name}_{k}") for k, a in arrays.items()}
        if arrays is None:
            return None
        placeholder = tf.placeholder(arrays.dtype, [None, *arrays.shape[1:]], name=name)
        self._placeholders.append((placeholder, arrays))
        return placeholder

    def _indices(self) -> Iterator[Any]:
        done = 0
        while self._epochs is None or done < self._epochs:
            order = self._random.permutation(self._size) if self._shuffle else np.arange(self._size)
            for start in range(0, self._size, self._batch_size):
                yield order[start : start + self._batch_size]
            done += 1


def _each(arrays: Any) -> list[Any]:
    if arrays is None:
        return []
    return list(arrays.values()) if isinstance(arrays, Mapping) else [arrays]


def _arrays(given: Any, *, flat: bool) -> Any:
    """Arrays as they are fed: doubles as floats, features with a dimension beside the examples'."""
    if isinstance(given, Mapping):
        return {k: _arrays(v, flat=flat) for k, v in given.items()}
    if isinstance(given, Iterator):
        given = list(given)
    array = np.asarray(given)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return array if flat or array.ndim > 1 else array.reshape(-1, 1)


def inputs_of(
    x: Any, y: Any, input_fn: Callable[[], Any] | None, batch_size: int | None,
    shuffle: bool = False, epochs: int | None = 1,
) -> tuple[Callable[[], Any], Callable[[], Any] | None]:  # fmt: skip
    """A function that builds inputs, and one for what is fed to them, if anything is.

    Raises:
        ValueError: both arrays and a function, or neither; or tensors.
    """
    check_inputs(x, y, input_fn, batch_size)
    if input_fn is not None:
        return input_fn, None
    arrays = ArrayInput(x, y, batch_size, shuffle, epochs)
    return arrays.input_fn, arrays.feed_fn


def check_inputs(x: Any, y: Any, input_fn: Any, batch_size: int | None) -> None:
    """Raises ValueError unless there are either arrays or a function."""
    if input_fn is None:
        if x is None:
            raise ValueError("Either x or input_fn must be provided.")
        if any(isinstance(v, tf.Tensor | tf.SparseTensor | tf.Variable) for v in (x, y)):
            raise ValueError("Inputs cannot be tensors. Please provide input_fn.")
    elif x is not None or y is not None:
        raise ValueError("Can not provide both input_fn and x or y.")
    elif batch_size is not None:
        raise ValueError("Can not provide both input_fn and batch_size.")
