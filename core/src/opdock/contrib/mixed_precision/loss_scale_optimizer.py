"""An optimizer around another that scales the loss, and leaves out steps of no numbers."""

from __future__ import annotations

from typing import Any

from opdock.contrib.mixed_precision.loss_scale_manager import LossScaleManager
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.ops.cast import cast
from opdock.ops.control import cond, group, no_op
from opdock.ops.elementary import is_finite, reciprocal
from opdock.ops.reduce import reduce_all
from opdock.train.optimizer import Optimizer

__all__ = ["LossScaleOptimizer"]


class LossScaleOptimizer(Optimizer):
    """Takes gradients of a scaled loss, whose scale they are freed from before they are applied.

    Args:
        opt: the optimizer that applies them.
        loss_scale_manager: says what the loss is multiplied by.
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(False, type(self).__name__)
        self._opt, self._loss_scale_manager = opt, loss_scale_manager

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:  # fmt: skip
        """Pairs of gradient and variable; see `Optimizer.compute_gradients`."""
        scale = self._loss_scale_manager.get_loss_scale()

        def scaled() -> Any:
            value = loss() if callable(loss) else loss
            return value * cast(scale, value.dtype.base_dtype)

        # What is a function is called where the optimizer watches.
        later = callable(loss) and executing_eagerly()
        found = self._opt.compute_gradients(
            scaled if later else scaled(), var_list, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, grad_loss,
        )  # fmt: skip
        inverse = reciprocal(scale)
        return [(None if g is None else g * cast(inverse, g.dtype.base_dtype), v) for g, v in found]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Applies gradients if all are finite, and tells what says the scale."""
        pairs = list(grads_and_vars)
        finite = reduce_all([reduce_all(is_finite(g)) for g, _ in pairs if g is not None])
        step = cond(finite, lambda: self._opt.apply_gradients(pairs, global_step, name), no_op)
        return group(step, self._loss_scale_manager.update_loss_scale(finite))
