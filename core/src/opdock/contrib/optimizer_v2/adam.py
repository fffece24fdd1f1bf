"""Adam, as an `OptimizerV2`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.contrib.optimizer_v2.one_op import AppliedOptimizer
from opdock.contrib.optimizer_v2.state import OptimizerState
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import colocate_with, control_dependencies
from opdock.ops import control
from opdock.ops import state as updates
from opdock.ops.cast import cast
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.ops.elementary import sqrt

__all__ = ["AdamOptimizer"]


class AdamOptimizer(AppliedOptimizer):
    """Adam (Kingma & Ba 2014), in the form whose epsilon is outside the corrected root.

    Where a gradient has some rows only, the moments of all rows decay, as if the rest were zero.

    Args:
        learning_rate: the step size; it and the next three are numbers, tensors, or functions.
        beta1, beta2: decay rates of the two moments.
        epsilon: keeps the division finite.
        use_locking, name: see `OptimizerV2`.
    """

    _update_op = "Adam"
    _slot_order = ("m", "v")
    _hyper_order = ("learning_rate", "beta1", "beta2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adam",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("beta1", beta1)
        self._set_hyper("beta2", beta2)
        self._set_hyper("epsilon", epsilon)

    def _get_beta_accumulators(self, state: OptimizerState | None = None) -> tuple[Any, Any]:
        """The variables with the powers of the decay rates."""
        find = self._get_non_slot_variable if state is None else state.get_non_slot
        return find("beta1_power"), find("beta2_power")

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        for name in ("beta1", "beta2"):
            state.create_non_slot(state.get_hyper(name), f"{name}_power")
        for v in var_list:
            state.zeros_slot(v, "m")
            state.zeros_slot(v, "v")

    def _powers(self, var: Any, state: OptimizerState) -> list[Any]:
        return [cast(p, var.dtype.base_dtype) for p in self._get_beta_accumulators(state)]

    def _inputs_before(self, var: Any, state: OptimizerState) -> list[Any]:
        return [*self._powers(var, state), *super()._inputs_before(var, state)]

    def _apply_sparse(self, grad: IndexedSlices, var: Any, state: OptimizerState) -> Any:
        return self._apply_sparse_shared(
            grad.values, var, grad.indices,
            lambda x, i, v: scatter_add(x, i, v, use_locking=self._use_locking), state,
        )  # fmt: skip

    def _resource_apply_sparse(
        self, grad: Any, var: Any, indices: Any, state: OptimizerState
    ) -> Any:
        return self._apply_sparse_shared(grad, var, indices, scatter_add, state)

    def _apply_sparse_shared(
        self, grad: Any, var: Any, indices: Any, scatter_add: Callable[..., Any],
        state: OptimizerState,
    ) -> Any:  # fmt: skip
        """The update of all rows; `scatter_add` is told a slot, rows and what is added to them."""
        power1, power2, rate, beta1, beta2, epsilon = self._inputs_before(var, state)
        moved = []
        for slot, decay, term in (("m", beta1, grad), ("v", beta2, grad * grad)):
            moment = state.get_slot(var, slot)
            decayed = updates.assign(moment, moment * decay, use_locking=self._use_locking)
            with control_dependencies([decayed]):
                moved.append(scatter_add(moment, indices, term * (1 - decay)))
        m, v = (convert_to_tensor(t) for t in moved)
        step = rate * sqrt(1 - power2) / (1 - power1) * m / (sqrt(v) + epsilon)
        return control.group(updates.assign_sub(var, step, use_locking=self._use_locking), *moved)

    def _finish(self, state: OptimizerState) -> Any:
        power1, power2 = self._get_beta_accumulators(state)
        with colocate_with(power1.op):
            return control.group(
                *(
                    updates.assign(power, power * state.get_hyper(name, power.dtype.base_dtype))
                    for power, name in ((power1, "beta1"), (power2, "beta2"))
                )
            )
