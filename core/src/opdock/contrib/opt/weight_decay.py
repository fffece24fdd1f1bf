"""Weight decay beside the gradient's step rather than in the loss (Loshchilov & Hutter 2017)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops import control, state
from opdock.ops.composed.variable_scatter import scatter_sub
from opdock.train.adaptive import AdamOptimizer
from opdock.train.gradient_descent import MomentumOptimizer
from opdock.train.optimizer import Optimizer

__all__ = [
    "AdamWOptimizer", "DecoupledWeightDecayExtension", "MomentumWOptimizer",
    "extend_with_decoupled_weight_decay",
]  # fmt: skip


class DecoupledWeightDecayExtension(Optimizer):
    """The first of two bases of an optimizer class: variables decay before each step.

    It fits optimizers whose step does not depend on the variable itself.

    Args:
        weight_decay: the share of a variable that a step takes away; a number, a tensor or a
            function that gives one.
        *args, **kwargs: the arguments of the other base.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decayed: frozenset[Any] | None = None
        self._weight_decay = weight_decay
        self._weight_decay_tensor: Any = None
        super().__init__(*args, **kwargs)

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP, aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False, name: str | None = None, grad_loss: Any = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """As `Optimizer.minimize`; `decay_var_list` are the variables that decay, all by default.

        Raises:
            ValueError: no variable has a gradient.
        """
        self._choose(decay_var_list)
        return super().minimize(
            loss, global_step, var_list, gate_gradients, aggregation_method,
            colocate_gradients_with_ops, name, grad_loss,
        )  # fmt: skip

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Any:  # fmt: skip
        """As `Optimizer.apply_gradients`; see `minimize`."""
        if decay_var_list is not None:
            self._choose(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _choose(self, variables: Iterable[Any] | None) -> None:
        """Says which variables decay; all, where there is none to choose."""
        self._decayed = frozenset(v.op for v in variables or ()) or None

    def _prepare(self) -> None:
        decay = self._call_if_callable(self._weight_decay)
        self._weight_decay_tensor = convert_to_tensor(decay, name="weight_decay")
        super()._prepare()

    def _share(self, var: Any) -> Any:
        tensor, wanted = self._weight_decay_tensor, var.dtype.base_dtype
        return tensor if tensor.dtype.base_dtype is wanted else get("Cast")(tensor, DstT=wanted)

    def _decays(self, var: Any) -> bool:
        return self._decayed is None or var.op in self._decayed

    def _decay_weights_op(self, var: Any) -> Any:
        if not self._decays(var):
            return control.no_op()
        return state.assign_sub(var, self._share(var) * var, use_locking=self._use_locking)

    def _decay_weights_sparse_op(self, var: Any, indices: Any) -> Any:
        if not self._decays(var):
            return control.no_op()
        rows = get("GatherV2")(convert_to_tensor(var), indices, 0)
        return scatter_sub(var, indices, self._share(var) * rows, self._use_locking)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with control_dependencies([self._decay_weights_op(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with control_dependencies([self._decay_weights_op(var)]):
            return super()._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with control_dependencies([self._decay_weights_sparse_op(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with control_dependencies([self._decay_weights_sparse_op(var, indices)]):
            return super()._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:
    """The class of an optimizer with weight decay, which is its first argument.

    `minimize` and `apply_gradients` take `decay_var_list`, the variables that decay.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore[valid-type, misc]
        """An optimizer with weight decay."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(weight_decay, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum with weight decay.

    Args:
        weight_decay: the share of a variable that a step takes away.
        learning_rate, momentum, use_locking, name, use_nesterov: as of `MomentumOptimizer`.
    """

    def __init__(
        self, weight_decay: Any, learning_rate: Any, momentum: Any, use_locking: bool = False,
        name: str = "MomentumW", use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, momentum=momentum, use_locking=use_locking,
            name=name, use_nesterov=use_nesterov,
        )  # fmt: skip


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with weight decay.

    Args:
        weight_decay: the share of a variable that a step takes away.
        learning_rate, beta1, beta2, epsilon, use_locking, name: as of `AdamOptimizer`.
    """

    def __init__(
        self, weight_decay: Any, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-8, use_locking: bool = False, name: str = "AdamW",
    ) -> None:  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
            use_locking=use_locking, name=name,
        )  # fmt: skip
