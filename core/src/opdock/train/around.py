"""Optimizers around another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from opdock.train.optimizer import Optimizer

__all__ = ["around_another"]

O = TypeVar("O", bound=Optimizer)
_ASKED: Final = (
    "compute_gradients", "get_slot", "get_slot_names", "variables",
)  # fmt: skip


def around_another(kind: type[O]) -> type[O]:
    """Has a class of optimizers ask the optimizer within, `_opt`, for gradients, slots, variables.

    What the class defines itself stays. TF's optimizers descend directly from `Optimizer`, and
    programs look at that: so this is no class in between.
    """
    for name in _ASKED:
        if name not in vars(kind):
            setattr(kind, name, _asking(name))
    return kind


def _asking(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._opt, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`{name}` of the optimizer within; see `Optimizer`."
    return method
