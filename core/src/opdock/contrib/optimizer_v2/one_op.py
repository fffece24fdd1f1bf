"""Optimizers whose update of a variable is one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.contrib.optimizer_v2.base import OptimizerV2
from opdock.contrib.optimizer_v2.state import OptimizerState
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.variables import initializers
from opdock.ops.array import shape
from opdock.ops.fill import fill, ones_like

__all__ = [
    "AdadeltaOptimizer", "AdagradOptimizer", "AppliedOptimizer", "GradientDescentOptimizer",
    "MomentumOptimizer", "RMSPropOptimizer",
]  # fmt: skip


class AppliedOptimizer(OptimizerV2):
    """The update of a variable as one Apply op.

    Attributes:
        _update_op: the name in the ops' table ("Momentum" for ApplyMomentum).
        _slot_order: the names of its slots in the op's order.
        _hyper_order: the hyper-parameters that the op takes before the gradient.
    """

    _hyper_order: tuple[str, ...] = ("learning_rate",)

    def _inputs_before(self, var: Any, state: OptimizerState) -> list[Any]:
        return [state.get_hyper(name, var.dtype.base_dtype) for name in self._hyper_order]

    def _inputs_after(self, var: Any, state: OptimizerState) -> list[Any]:
        return []

    def _apply_dense(self, grad: Any, var: Any, state: OptimizerState) -> Any:
        return self._applied("Apply", [grad], var, state).op

    def _resource_apply_dense(self, grad: Any, var: Any, state: OptimizerState) -> Any:
        return self._applied("ResourceApply", [grad], var, state)

    def _apply_sparse(self, grad: IndexedSlices, var: Any, state: OptimizerState) -> Any:
        return self._applied("SparseApply", [grad.values, grad.indices], var, state).op

    def _resource_apply_sparse(
        self, grad: Any, var: Any, indices: Any, state: OptimizerState
    ) -> Any:
        return self._applied("ResourceSparseApply", [grad, indices], var, state)

    def _applied(self, prefix: str, grads: list[Any], var: Any, state: OptimizerState) -> Any:
        holders = [var, *(state.get_slot(var, name) for name in self._slot_order)]
        if prefix.startswith("Resource"):
            holders = [v.handle for v in holders]
        before, after = self._inputs_before(var, state), self._inputs_after(var, state)
        return get(prefix + self._update_op)(
            *holders, *before, *grads, *after, use_locking=self._use_locking, **self._flags
        )


class GradientDescentOptimizer(AppliedOptimizer):
    """Gradient descent.

    Args:
        learning_rate: the step size: a number, a tensor, or a function.
        use_locking, name: see `OptimizerV2`.
    """

    _update_op = "GradientDescent"

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Any, state: OptimizerState
    ) -> Any:
        step = grad.values * state.get_hyper("learning_rate", var.dtype.base_dtype)
        delta = IndexedSlices(step, grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, var: Any, indices: Any, state: OptimizerState
    ) -> Any:
        step = grad * state.get_hyper("learning_rate", grad.dtype.base_dtype)
        return get("ResourceScatterAdd")(var.handle, indices, -step)


class MomentumOptimizer(AppliedOptimizer):
    """Gradient descent with momentum, optionally Nesterov's.

    Args:
        learning_rate: the step size; it and the momentum are numbers, tensors, or functions.
        momentum: how much of the last step is kept.
        use_locking, name: see `OptimizerV2`.
        use_nesterov: look ahead along the momentum.
    """

    _update_op = "Momentum"
    _slot_order = ("momentum",)

    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False,
        name: str = "Momentum", use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("momentum", momentum)
        self._flags = {"use_nesterov": use_nesterov}

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        for v in var_list:
            state.zeros_slot(v, "momentum")

    def _inputs_after(self, var: Any, state: OptimizerState) -> list[Any]:
        return [state.get_hyper("momentum", var.dtype.base_dtype)]


class AdagradOptimizer(AppliedOptimizer):
    """AdaGrad (Duchi et al. 2011).

    Args:
        learning_rate: the step size: a number, a tensor, or a function.
        initial_accumulator_value: the start of the accumulators, above 0.
        use_locking, name: see `OptimizerV2`.

    Raises:
        ValueError: the initial value is not positive.
    """

    _update_op = "Adagrad"
    _slot_order = ("accumulator",)

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1,
        use_locking: bool = False, name: str = "Adagrad",
    ) -> None:  # fmt: skip
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)
        self._initial_accumulator_value = initial_accumulator_value

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        value = self._initial_accumulator_value
        for v in var_list:
            dtype = v.dtype.base_dtype
            if v.get_shape().is_fully_defined():
                made = initializers.constant_initializer(value, dtype=dtype)
                state.create_slot_with_initializer(v, made, v.get_shape(), dtype, "accumulator")
            else:
                filled = fill(shape(v), convert_to_tensor(value, dtype))
                state.create_slot(v, filled, "accumulator")


class AdadeltaOptimizer(AppliedOptimizer):
    """AdaDelta (Zeiler 2012).

    Args:
        learning_rate: the step size, 1.0 in the paper's form; it and the next two are numbers,
            tensors, or functions.
        rho: the decay rate.
        epsilon: keeps the divisions finite.
        use_locking, name: see `OptimizerV2`.
    """

    _update_op = "Adadelta"
    _slot_order = ("accum", "accum_update")
    _hyper_order = ("learning_rate", "rho", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8,
        use_locking: bool = False, name: str = "Adadelta",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("rho", rho)
        self._set_hyper("epsilon", epsilon)

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        for v in var_list:
            state.zeros_slot(v, "accum")
            state.zeros_slot(v, "accum_update")


class RMSPropOptimizer(AppliedOptimizer):
    """RMSProp (Tieleman & Hinton 2012), whose average of squares begins with epsilon.

    Args:
        learning_rate: the step size; it and the next three are numbers, tensors, or functions.
        decay: the decay rate of the squared gradients.
        momentum: how much of the last step is kept.
        epsilon: the first value of that average, so that nothing is divided by zero.
        use_locking, name: see `OptimizerV2`.
        centered: divide by the variance instead of the second moment.
    """

    def __init__(
        self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0, epsilon: Any = 1e-10,
        use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("decay", decay)
        self._set_hyper("momentum", momentum)
        self._set_hyper("epsilon", epsilon)
        self._centered = centered
        self._update_op = "CenteredRMSProp" if centered else "RMSProp"
        self._slot_order = ("mg", "rms", "momentum") if centered else ("rms", "momentum")

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        for v in var_list:
            dtype = v.dtype.base_dtype
            first = state.get_hyper("epsilon", dtype) * ones_like(v)
            state.create_slot(v, first, "rms")
            if self._centered:
                state.zeros_slot(v, "mg")
            state.zeros_slot(v, "momentum")

    def _inputs_before(self, var: Any, state: OptimizerState) -> list[Any]:
        dtype = var.dtype.base_dtype
        names = ("learning_rate", "decay", "momentum")
        # The average holds epsilon already, and nothing is added to it when it divides.
        none_added = convert_to_tensor(0.0, dtype)
        return [*(state.get_hyper(name, dtype) for name in names), none_added]
