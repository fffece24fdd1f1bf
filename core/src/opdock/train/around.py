"""An optimizer around another one."""

from __future__ import annotations

from typing import Any

from opdock.train.optimizer import Optimizer

__all__ = ["OptimizerAround"]


class OptimizerAround(Optimizer):
    """An optimizer that has another one compute gradients and keep slots.

    Args:
        opt: the optimizer within.
        use_locking, name: see `Optimizer`.
    """

    def __init__(self, opt: Any, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients as the optimizer within computes them; see `Optimizer`."""
        found: list[tuple[Any, Any]] = self._opt.compute_gradients(*args, **kwargs)
        return found

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer within."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The names of the slots of the optimizer within."""
        found: list[str] = self._opt.get_slot_names(*args, **kwargs)
        return found

    def variables(self) -> list[Any]:
        """The variables of the optimizer within."""
        found: list[Any] = self._opt.variables()
        return found
