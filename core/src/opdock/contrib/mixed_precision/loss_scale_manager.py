"""What a loss is multiplied by: always the same, or more as long as gradients stay finite."""

from __future__ import annotations

import abc
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.arithmetic import maximum
from opdock.ops.control import cond, group, no_op
from opdock.ops.elementary import is_finite
from opdock.ops.select import where
from opdock.ops.state import assign, assign_add

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager(abc.ABC):
    """Says what a loss is multiplied by, and hears how that went."""

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale, a float32 scalar."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that takes in whether the gradients of a step were all finite."""


class FixedLossScaleManager(LossScaleManager):
    """Always the same scale.

    Args:
        loss_scale: the scale, 1 or more.

    Raises:
        ValueError: it is less.
    """

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = convert_to_tensor(loss_scale, dtypes.float32)

    def get_loss_scale(self) -> Any:
        """The scale."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Does nothing."""
        return no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A scale that grows after so many good steps, and shrinks after so many bad ones.

    Args:
        init_loss_scale: the first scale.
        incr_every_n_steps: after how many good steps in a row it grows.
        decr_every_n_nan_or_inf: after how many bad steps since it changed it shrinks.
        incr_ratio: what it is multiplied by when it grows.
        decr_ratio: what it is multiplied by when it shrinks, down to 1.
    """

    def __init__(
        self, init_loss_scale: float, incr_every_n_steps: int, decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2, decr_ratio: float = 0.8,
    ) -> None:  # fmt: skip
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
        first = convert_to_tensor(init_loss_scale, dtypes.float32)
        self._loss_scale: Any = Variable(first, trainable=False, name="loss_scale")

        def count(name: str) -> Any:
            return Variable(0, trainable=False, name=name, dtype=dtypes.int32)

        self._num_good_steps, self._num_bad_steps = count("good_steps"), count("bad_steps")

    def get_loss_scale(self) -> Any:
        """The scale, a variable."""
        return self._loss_scale

    def _changed(self, scale: Any) -> Any:
        counts = [assign(count, 0) for count in (self._num_good_steps, self._num_bad_steps)]
        return group(assign(self._loss_scale, scale), *counts)

    def _after_good(self) -> Any:
        def grow() -> Any:
            grown = self._loss_scale * self._incr_ratio
            return self._changed(where(is_finite(grown), grown, self._loss_scale + 0.0))

        enough = self._num_good_steps + 1 >= self._incr_every_n_steps
        return cond(enough, grow, lambda: group(assign_add(self._num_good_steps, 1)))

    def _after_bad(self) -> Any:
        def shrink() -> Any:
            return self._changed(maximum(1.0, self._loss_scale * self._decr_ratio))

        def count() -> Any:
            return group(assign_add(self._num_bad_steps, 1), assign(self._num_good_steps, 0))

        return cond(self._num_bad_steps + 1 >= self._decr_every_n_nan_or_inf, shrink, count)

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Counts the step, and changes the scale where it is time."""
        return cond(finite_grads, self._after_good, self._after_bad)
