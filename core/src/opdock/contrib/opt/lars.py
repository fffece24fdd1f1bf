"""LARS: a step size for each layer, and AdaGrad that can leave its slots alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.ops.composed.matrix_norm import norm
from opdock.ops.select import where
from opdock.train.adagrad import AdagradOptimizer
from opdock.train.optimizer import Optimizer

__all__ = ["LARSOptimizer", "RegAdagradOptimizer"]


class LARSOptimizer(Optimizer):
    """Momentum whose step is scaled, variable by variable, by the ratio of norms (You 2017).

    Gradients that have some rows only are applied with plain momentum.

    Args:
        learning_rate: the step size.
        momentum: how much of the last step is kept.
        weight_decay: the factor of the variable that is added to its gradient.
        eeta: the ratio of the norms of a step and its variable.
        epsilon: added to the norm of the gradient.
        name: see `Optimizer`.
        skip_list: words; a variable with one of them in its name is not scaled.
        use_nesterov: look ahead along the momentum.

    Raises:
        ValueError: momentum or weight decay is negative.
    """

    _update_op = "Momentum"
    _slot_order = ("momentum",)

    def __init__(
        self, learning_rate: Any, momentum: Any = 0.9, weight_decay: Any = 0.0001,
        eeta: float = 0.001, epsilon: float = 0.0, name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None, use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(use_locking=False, name=name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skip_list = tuple(skip_list or ())
        self._flags = {"use_nesterov": use_nesterov}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate, momentum=self._momentum)

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """The step size of a variable, and its gradient with the decay of the variable."""
        rate = self._cast("learning_rate", var)
        if any(word in var.name for word in self._skip_list):
            return rate, grad
        size, slope = norm(convert_to_tensor(var), ord=2), norm(grad, ord=2)
        trusted = self._eeta * size / (slope + self._weight_decay * size + self._epsilon)
        one = convert_to_tensor(1.0, size.dtype)
        ratio = where(size > 0, where(slope > 0, trusted, one), one)
        return rate * ratio, grad + self._weight_decay * var

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None, self._cast("momentum", var)]

    def _scaled(self, grad: Any, var: Any, resource: bool) -> Any:
        rate, grad = self.compute_lr(grad, var)
        one = convert_to_tensor(1.0, var.dtype.base_dtype)
        done = get("ResourceApplyMomentum" if resource else "ApplyMomentum")(
            *self._holders(var, resource), one, grad * rate, self._cast("momentum", var),
            use_locking=False, **self._flags,
        )  # fmt: skip
        return done if resource else done.op

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._scaled(grad, var, False)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._scaled(grad, var, True)


class RegAdagradOptimizer(AdagradOptimizer):
    """AdaGrad for which a step, such as that of a regularizer, may leave the slots as they are.

    Args:
        learning_rate: the step size.
        initial_accumulator_value: the start of the accumulators, above 0.
        use_locking, name: see `Optimizer`.

    Raises:
        ValueError: the initial value is not positive.
    """

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1,
        use_locking: bool = False, name: str = "RegAdagrad",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._flags = {"update_slots": True}

    @contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """Steps that are made in this context read the slots and do not change them."""
        before = self._flags
        self._flags = {"update_slots": False}
        try:
            yield
        finally:
            self._flags = before
