"""The accumulators behind TF's handles: sums of gradients, of whole tensors or of slices."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import DType, checks, errors

__all__ = ["Accumulator", "Dense", "Slices"]

Array = npt.NDArray[Any]
Shape = tuple[int | None, ...] | None
Wait = Callable[[threading.Condition, Callable[[], bool], Callable[[], None]], None]
_log = logging.getLogger("tensorflow")


class Accumulator:
    """Gradients since the last taking, and the step that they must be of.

    Args:
        dtype: of the gradients.
        shape: of the gradients, as far as it is known.
        mean: whether taking divides by their number.
    """

    def __init__(self, dtype: DType, shape: Shape, mean: bool) -> None:
        self.dtype, self.shape, self.mean = dtype, shape, mean
        self._changed = threading.Condition()
        self._count = 0
        self._step = 0
        self._line: deque[object] = deque()

    def __len__(self) -> int:
        return self._count

    def set_step(self, step: int) -> None:
        """Moves the accumulator to a step."""
        with self._changed:
            if step < self._step:
                _log.warning(
                    "Attempt to set current_global_step_ to smaller value: current_global_step_ = "
                    "%d >= %d = new_global_step.", self._step, step,
                )  # fmt: skip
            self._step = step

    def apply(self, step: int, *gradient: Any) -> None:
        """Adds a gradient that was computed for a step, unless that is over.

        Raises:
            InvalidArgumentError: its shape does not fit.
        """
        with self._changed:
            if step < self._step:
                return
            self._check(*gradient)
            self._add(*gradient)
            self._count += 1
            self._changed.notify_all()

    def take(self, required: int, wait: Wait) -> Any:
        """The sum or the mean of all gradients, once there are enough; those who ask first get it.

        Raises:
            InvalidArgumentError: `required` is not positive.
            CancelledError: the session was closed, or the step's time is over.
        """
        if required <= 0:
            raise checks.invalid(f"Argument num_required must be positive, but was {required}")
        ticket = object()
        with self._changed:
            self._line.append(ticket)

            def leave() -> None:
                self._line.remove(ticket)
                self._changed.notify_all()

            try:
                wait(
                    self._changed,
                    lambda: self._line[0] is ticket and self._count >= required,
                    leave,
                )
            except errors.CancelledError:
                said = "TakeGrad operation was cancelled"
                raise errors.CancelledError(None, None, said) from None
            leave()
            self._step += 1
            result = self._result()
            self._count = 0
            return result

    # ------------------------------------------------------------ of the kinds
    def _check(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _add(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _result(self) -> Any:
        raise NotImplementedError


def _divided(total: Array, count: Any) -> Array:
    """By a number of the total's type; whole numbers lose what is behind the point."""
    if total.dtype.kind in "iu":
        return np.asarray(np.trunc(total / count), total.dtype)
    return np.asarray(total / np.asarray(count).astype(total.dtype))


def _text(shape: Any) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


class Dense(Accumulator):
    """Of whole tensors."""

    _total: Array

    def _check(self, gradient: Array) -> None:
        if self._count and self._total.shape != gradient.shape:
            raise checks.invalid(
                f"Shape mismatch: expected {_text(self._total.shape)}, got {_text(gradient.shape)}"
            )
        known = self.shape
        fits = known is None or (
            len(known) == gradient.ndim
            and all(d in (None, n) for d, n in zip(known, gradient.shape, strict=True))
        )
        if not fits:
            raise checks.invalid(
                f"Shape mismatch: expected {_text(known)}, got {_text(gradient.shape)}"
            )

    def _add(self, gradient: Array) -> None:
        self._total = self._total + gradient if self._count else gradient.copy()

    def _result(self) -> Array:
        return _divided(self._total, self._count) if self.mean else self._total


class Slices(Accumulator):
    """Of slices along the first dimension; each is divided by how often it came."""

    _rows: list[int]
    _values: list[Array]
    _counts: list[int]
    _inner: tuple[int, ...]

    def _check(self, rows: Array, values: Array, shape: Array | None) -> None:
        if rows.ndim != 1:
            raise checks.invalid(
                f"Input indices should be vector but received shape: {_text(rows.shape)}"
            )
        if values.ndim == 0:
            raise checks.invalid("Values cannot be 0-dimensional.")
        if len(values) != len(rows):
            raise checks.invalid(f"Expected {len(rows)} non-empty input values, got {len(values)}")
        known = self.shape or ()
        if shape is not None:
            self._check_shape(known, shape)
        if known and known[0] is not None:
            for i, row in enumerate(rows):
                if row >= known[0]:
                    raise checks.invalid(
                        f"Shape mismatch: index of slice {i} exceeded limits of shape; index is "
                        f"{row} exceeded {known[0]}"
                    )
        self._check_values(known, values)

    def _check_shape(self, known: tuple[int | None, ...], shape: Array) -> None:
        if len(known) > shape.size:
            raise checks.invalid(
                f"Shape mismatch: expected shape rank at least {len(known)}, got {shape.size}"
            )
        for i, (wanted, given) in enumerate(zip(known, shape, strict=False)):
            if wanted is not None and wanted != given:
                raise checks.invalid(
                    f"Shape mismatch: expected shape dim {i} to be {wanted}, got {given}"
                )

    def _check_values(self, known: tuple[int | None, ...], values: Array) -> None:
        if self._count:
            known = (None, *self._inner)
            if len(known) != values.ndim:
                raise checks.invalid(
                    f"Shape mismatch: expected values rank {len(known)}, got {values.ndim}"
                )
        elif len(known) > values.ndim:
            raise checks.invalid(
                f"Shape mismatch: expected values rank at least {len(known)}, got {values.ndim}"
            )
        for i in range(1, len(known)):
            if known[i] is not None and known[i] != values.shape[i]:
                raise checks.invalid(
                    f"Shape mismatch: expected values dim {i} to be {known[i]}, "
                    f"got {values.shape[i]}"
                )

    def _add(self, rows: Array, values: Array, shape: Array | None) -> None:
        own = [(int(row), np.array(value), 1) for row, value in zip(rows, values, strict=True)]
        if self._count:
            before = list(zip(self._rows, self._values, self._counts, strict=True))
            own = _merged(before, own)
        self._inner = values.shape[1:]
        self._rows = [row for row, _, _ in own]
        self._values = [value for _, value, _ in own]
        self._counts = [count for _, _, count in own]

    def _result(self) -> tuple[Array, Array, Array]:
        values = np.reshape(self._values, (len(self._rows), *self._inner)).astype(self.dtype.np)
        if self.mean:
            counts = np.reshape(self._counts, (-1, *(1,) * len(self._inner)))
            values = _divided(values, counts)
        first = -1 if not self.shape or self.shape[0] is None else self.shape[0]
        return np.array(self._rows, np.int64), values, np.array([first, *self._inner], np.int64)


_Row = tuple[int, Array, int]


def _merged(a: list[_Row], b: list[_Row]) -> list[_Row]:
    """Two ascending lists of slices as one, in which slices of both are added."""
    out: list[_Row] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][0] == b[j][0]:
            out.append((a[i][0], a[i][1] + b[j][1], a[i][2] + 1))
            i, j = i + 1, j + 1
        elif a[i][0] < b[j][0]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]
