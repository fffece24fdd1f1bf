"""Gradient descent: plain, proximal, with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.registry import get
from opdock.train.optimizer import Optimizer


class GradientDescentOptimizer(Optimizer):
    """Gradient descent.

    Args:
        learning_rate: the step size.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "GradientDescent"

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None]

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        delta = IndexedSlices(
            grad.values * self._cast("learning_rate", var), grad.indices, grad.dense_shape
        )
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any) -> Any:
        return get("ResourceScatterAdd")(
            var.handle, indices, -grad * self._cast("learning_rate", var)
        )


class ProximalGradientDescentOptimizer(Optimizer):
    """Gradient descent with l1 and l2 by proximal steps.

    Args:
        learning_rate: the step size.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._args = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [
            self._cast("learning_rate", var),
            self._cast("l1", var),
            self._cast("l2", var),
            None,
        ]


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum, optionally Nesterov's.

    Args:
        learning_rate: the step size.
        momentum: how much of the last step is kept.
        use_locking, name: see `Optimizer`.
        use_nesterov: look ahead along the momentum.
    """

    _update_op = "Momentum"
    _slot_order = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._flags = {"use_nesterov": use_nesterov}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate, momentum=self._momentum)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None, self._cast("momentum", var)]
