"""An optimizer around another one that scales the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from opdock.distribute.modes import strategy_in_scope
from opdock.graph.nodes.composite import IndexedSlices
from opdock.ops.control import cond, group, no_op
from opdock.train.experimental import loss_scale as scales
from opdock.train.optimizer import Optimizer
from opdock.train.replicated import apply_on_replicas

__all__ = ["MixedPrecisionLossScaleOptimizer"]


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Multiplies the loss by a factor before it is differentiated, and divides the gradients by it.

    With a dynamic factor, gradients that are not finite are not applied.

    Args:
        opt: the optimizer inside.
        loss_scale: a number, "dynamic", or a `LossScale`.

    Raises:
        ValueError: `opt` is no optimizer, or `loss_scale` something else.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(opt._use_locking, opt.get_name())
        self._optimizer = opt
        self._loss_scale: Any = scales.get(loss_scale)
        self._track_trackable(opt, "base_optimizer")
        if self._loss_scale is not None:
            self._track_trackable(self._loss_scale, "loss_scale")

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of `loss`, by way of the scaled loss; see `Optimizer`."""
        pairs = self._optimizer.compute_gradients(
            self._scaled(loss), var_list, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, grad_loss,
        )  # fmt: skip
        factor = 1 / self._loss_scale()
        return [(None if g is None else _times(g, factor), v) for g, v in pairs]

    def _scaled(self, loss: Any) -> Any:
        factor = self._loss_scale()
        return (lambda: loss() * factor) if callable(loss) else loss * factor

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """Applies the gradients, if they are fit for it, and adapts the factor; see `Optimizer`."""
        pairs = list(grads_and_vars)
        if strategy_in_scope() is None:
            return self._apply_if_fit(
                pairs, name, lambda name: self._optimizer.apply_gradients(pairs, global_step, name)
            )
        return apply_on_replicas(self, pairs, global_step, name)

    def _distributed_apply(
        self, distribution: Any, grads_and_vars: Any, global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        pairs = list(grads_and_vars)
        apply = self._optimizer._distributed_apply
        return self._apply_if_fit(
            pairs, name, lambda name: apply(distribution, pairs, global_step, name)
        )

    def _apply_if_fit(
        self, pairs: list[tuple[Any, Any]], name: str | None, apply: Callable[[str | None], Any]
    ) -> Any:
        update, fit = self._loss_scale.update([g for g, _ in pairs])
        if fit is True:
            return apply(name)
        name = name or self.get_name()
        # Variables are the graph's, not the branch's: they are made before it.
        self._optimizer._make_slots([v for g, v in pairs if g is not None])
        return group(cond(fit, lambda: apply(f"{name}-wrapped"), no_op), update, name=name)


def _times(grad: Any, factor: Any) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor
