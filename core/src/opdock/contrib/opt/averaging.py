"""Training with averages of the variables, which checkpoints then hold in the variables' place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable_lists import global_variables
from opdock.ops import control
from opdock.train.around import around_another
from opdock.train.moving_averages import ExponentialMovingAverage
from opdock.train.optimizer import Optimizer
from opdock.train.saveable import names_of
from opdock.train.saver import Saver

__all__ = ["MovingAverageOptimizer"]


@around_another
class MovingAverageOptimizer(Optimizer):
    """An optimizer that also keeps averages of the variables it updates.

    With `swapping_saver` the averages are saved under the variables' names, so that a program that
    restores the checkpoint finds them there.

    Args:
        opt: the optimizer that computes and applies gradients.
        average_decay, num_updates: see `tf.train.ExponentialMovingAverage`.
        sequential_update: whether averages are taken after the variables have moved.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(use_locking=False, name="MovingAverage")
        self._opt = opt
        self._ema = ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients as the optimizer within does, and moves the averages."""
        pairs = list(grads_and_vars)
        trained = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
        variables = [var for grad, var in pairs if grad is not None]
        with control_dependencies([trained] if self._sequential_update else []):
            averaged = self._ema.apply(variables)
        names = [(v.op.name, self._ema.average(v).op.name) for v in variables]
        self._swapped = {a: b for pair in names for a, b in (pair, pair[::-1])}
        return control.group(trained, averaged, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Saver:
        """A Saver that saves averages under the names of their variables, and the other way.

        Args:
            var_list: what to save, all global variables by default; with a variable, its average.
            name: of the Saver's ops.
            **kwargs: for `tf.train.Saver`.

        Raises:
            RuntimeError: no gradients have been applied yet.
            ValueError: a variable comes without its average, or the other way round.
        """
        if self._swapped is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        if var_list is None:
            var_list = global_variables()
        saved: Mapping[str, Any] = var_list if isinstance(var_list, dict) else names_of(var_list)
        by_name: dict[str, Any] = {}
        for key, value in saved.items():
            parts = _parts(value)
            by_name |= {key: value} if parts is None else {part.op.name: part for part in parts}
        swapped: dict[str, Any] = {}
        for key, value in saved.items():
            parts = _parts(value)
            swapped[key] = (
                self._other(by_name, key, value)
                if parts is None
                else [self._other(by_name, part.op.name, part) for part in parts]
            )
        return Saver(swapped, name=name, **kwargs)

    def _other(self, by_name: Mapping[str, Any], name: str, value: Any) -> Any:
        """What is saved in the place of a variable."""
        other = (self._swapped or {}).get(name)
        if other is None:
            return value
        if other not in by_name:
            raise ValueError(
                f"Variable to swap {other} is not part of variables to save. "
                "This breaks MovingAverageOptimizer."
            )
        return by_name[other]


def _parts(value: Any) -> list[Any] | None:
    """The parts of a partitioned variable; None for what is in one part."""
    found = getattr(value, "_variable_list", value if isinstance(value, list) else None)
    return None if found is None else list(found)
