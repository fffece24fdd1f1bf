"""Loss scales: what a loss is multiplied by, so that gradients do not vanish in float16."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from opdock import dtypes
from opdock.distribute.modes import strategy_in_scope
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.variables.trackable import Trackable, TrackableReference
from opdock.graph.variables.variable import Variable
from opdock.ops.arithmetic import maximum
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.control import cond, group, no_op
from opdock.ops.elementary import is_finite
from opdock.ops.reduce import reduce_all
from opdock.util import nest

__all__ = ["DynamicLossScale", "FixedLossScale", "LossScale", "get"]


class LossScale(Trackable, ABC):
    """A factor for the loss. Called, it gives the factor as a float32 scalar.

    Checkpoints of objects keep its variables, those of the graph that is built.
    """

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Any], Any] = {}

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        program = get_default_graph()._program_key
        own = [
            TrackableReference(n, v) for (n, where), v in self._weights.items() if where is program
        ]
        return super()._checkpoint_dependencies + sorted(own, key=lambda reference: reference.name)

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Trackable | None:
        found = super()._lookup_dependency(name)
        key = name, get_default_graph()._program_key
        return self._weights.get(key) if found is None else found

    @abstractmethod
    def __call__(self) -> Any:
        """The factor as it is now, a float32 scalar."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Operation, Any]:
        """Adapts the factor to gradients.

        Args:
            grads: the gradients, divided by the factor already, in any structure; None is allowed.

        Returns:
            An operation that changes the factor, and whether these gradients are fit to be applied:
            a bool or a boolean scalar.
        """

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """One made of what `get_config` gave."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Any:
        """A variable of the factor; RuntimeError if the graph has it already."""
        key = name, get_default_graph()._program_key
        if key in self._weights:
            raise RuntimeError(f"Duplicate variables detected. {key}")
        made = Variable(initial_value, name=name, dtype=dtype, trainable=False, use_resource=True)
        self._weights[key] = made
        self._handle_deferred_dependencies(name, made)
        return made


class FixedLossScale(LossScale):
    """A factor that stays.

    Args:
        loss_scale_value: the factor, at least 1.

    Raises:
        ValueError: it is smaller, or no number.
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Any:
        """The factor."""
        return convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Operation, Any]:
        """Nothing to do, and True."""
        return no_op(), True

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one."""
        return {"loss_scale_value": self._loss_scale_value}


class DynamicLossScale(LossScale):
    """A factor that grows while gradients are finite, and shrinks when they are not.

    Args:
        initial_loss_scale: the factor at the start.
        increment_period: after so many finite steps in a row the factor grows.
        multiplier: by how much it grows and shrinks.
    """

    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = self._add_weight(
            "current_loss_scale", self._initial_loss_scale, dtypes.float32
        )
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    @property
    def initial_loss_scale(self) -> float:
        """The factor at the start."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After so many finite steps in a row the factor grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """By how much the factor grows and shrinks."""
        return self._multiplier

    def __call__(self) -> Any:
        """The factor as it is now."""
        return convert_to_tensor(self._current_loss_scale)

    def update(self, grads: Any) -> tuple[Operation, Any]:
        """Counts a finite step, or lets the factor shrink; see `LossScale.update`."""
        strategy = strategy_in_scope()
        if strategy is None:
            finite = _all_finite(grads)
        else:  # across replicas: each has its own gradients, and one factor is for all
            each = strategy.extended.call_for_each_replica(
                lambda own: cast(_all_finite(own), dtypes.float32), args=(grads,)
            )
            finite = equal(strategy.reduce("sum", each), strategy.num_replicas_in_sync)
        done = cond(finite, self._count_good_step, self._shrink)
        return done, finite

    def _count_good_step(self) -> Any:
        return cond(
            self._num_good_steps + 1 >= self._increment_period,
            self._grow,
            lambda: group(self._num_good_steps.assign_add(1)),
        )

    def _grow(self) -> Operation:
        larger = self._current_loss_scale * self._multiplier
        # The factor itself must not become infinite.
        grown = cond(
            is_finite(larger), lambda: group(self._current_loss_scale.assign(larger)), no_op
        )
        return group(grown, self._num_good_steps.assign(0))

    def _shrink(self) -> Operation:
        smaller = maximum(self._current_loss_scale / self._multiplier, 1)
        return group(self._num_good_steps.assign(0), self._current_loss_scale.assign(smaller))

    def __repr__(self) -> str:
        now = ""
        if executing_eagerly():
            steps: Any = convert_to_tensor(self._num_good_steps)
            now = f"current_loss_scale={float(self())}, num_good_steps={int(steps)}, "
        return (
            f"DynamicLossScale({now}initial_loss_scale={self.initial_loss_scale}, "
            f"increment_period={self.increment_period}, multiplier={self.multiplier})"
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one."""
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }


def _all_finite(grads: Any) -> Any:
    """Whether all elements of gradients are finite."""
    return reduce_all([reduce_all(is_finite(g)) for g in nest.flatten(grads) if g is not None])


def get(identifier: Any) -> LossScale | None:
    """A loss scale of a number, of "dynamic", of itself, or None of None.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if isinstance(identifier, str) and identifier == "dynamic":
        return DynamicLossScale()
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")
