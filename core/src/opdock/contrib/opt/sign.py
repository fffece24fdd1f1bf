"""AddSign and PowerSign: steps that depend on whether a gradient agrees with its average."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops import control, state
from opdock.ops.composed.variable_scatter import scatter_add, scatter_sub
from opdock.train.optimizer import Optimizer

__all__ = ["AddSignOptimizer", "PowerSignOptimizer"]


class _SignOptimizer(Optimizer):
    """A running average of the gradient, and a step for which its sign counts.

    Subclasses name the hyper-parameter that is theirs, and say what a gradient's factor is.
    """

    _slot_order = ("m",)
    _own = ""

    def __init__(
        self, learning_rate: Any, own: Any, beta: Any, sign_decay_fn: Callable[[Any], Any] | None,
        use_locking: bool, name: str,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._values = {"learning_rate": learning_rate, self._own: own, "beta": beta}
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay: Any = 1.0

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """As `Optimizer.apply_gradients`; the part of the sign is that of the global step."""
        if self._sign_decay_fn is not None:
            self._sign_decay = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _prepare(self) -> None:
        self._hyper(**self._values, sign_decay=self._sign_decay)

    def _inputs(self, var: Any) -> list[Any]:
        names = ("learning_rate", self._own, "sign_decay", "beta")
        return [*(self._cast(name, var) for name in names), None]

    def _factor(self, own: Any, agreed: Any) -> Any:
        raise NotImplementedError

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._rows(grad, var, indices)

    def _rows(self, grad: Any, var: Any, indices: Any) -> Any:
        beta, locked = self._cast("beta", var), self._use_locking
        m = self.get_slot(var, "m")
        with control_dependencies([state.assign(m, m * beta, use_locking=locked)]):
            moved = scatter_add(m, indices, grad * (1 - beta), use_locking=locked)
        with control_dependencies([moved]):
            average = get("GatherV2")(convert_to_tensor(m), indices, 0)
        agreed = get("Sign")(average) * get("Sign")(grad)
        factor = self._factor(self._cast(self._own, var), self._cast("sign_decay", var) * agreed)
        step = self._cast("learning_rate", var) * factor * grad
        return control.group(scatter_sub(var, indices, step, use_locking=locked), moved)


class AddSignOptimizer(_SignOptimizer):
    """Steps longer where gradient and average agree in sign (Bello et al. 2017).

    A gradient counts `alpha + sign_decay * sign(gradient) * sign(average)` times.

    Args:
        learning_rate: the step size.
        alpha: see above.
        beta: how much of the average is kept.
        sign_decay_fn: `sign_decay` as a function of the global step, such as those that
            `tf.contrib.opt.get_linear_decay_fn` and its like make; 1 by default.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "AddSign"
    _own = "alpha"

    def __init__(
        self, learning_rate: Any = 0.1, alpha: Any = 1.0, beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None, use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)

    def _factor(self, own: Any, agreed: Any) -> Any:
        return own + agreed


class PowerSignOptimizer(_SignOptimizer):
    """AddSign with a power: `base ** (sign_decay * sign(gradient) * sign(average))` times.

    Args:
        learning_rate: the step size.
        base: see above; above 0.
        beta: how much of the average is kept.
        sign_decay_fn: as of `AddSignOptimizer`.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "PowerSign"
    _own = "logbase"

    def __init__(
        self, learning_rate: Any = 0.1, base: float = math.e, beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None, use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, math.log(base), beta, sign_decay_fn, use_locking, name)

    def _factor(self, own: Any, agreed: Any) -> Any:
        return get("Exp")(own * agreed)
