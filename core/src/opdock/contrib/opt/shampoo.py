"""Shampoo: AdaGrad with a matrix for each dimension of a variable."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.contrib.opt.matrix_functions import matrix_inverse_pth_root, matrix_square_root
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops import state
from opdock.ops.arithmetic import maximum, mod
from opdock.ops.arithmetic import pow as power
from opdock.ops.array import expand_dims
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.eye import eye
from opdock.ops.composed.tensordot import tensordot
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.ops.control import cond
from opdock.ops.decompositions import svd
from opdock.ops.fill import zeros, zeros_like
from opdock.ops.gather import gather
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.scatter import scatter_nd
from opdock.ops.select import where
from opdock.train.optimizer import Optimizer

_log = logging.getLogger("tensorflow")

__all__ = ["ShampooOptimizer"]


class ShampooOptimizer(Optimizer):
    """AdaGrad with one preconditioner for each dimension of a variable (Gupta et al. 2018).

    For each dimension it adds up products of the gradient with itself over all others, and
    multiplies the gradient by each of these sums to the power of -alpha / rank. Numbers marked *
    may be functions of the step, a float tensor.

    Args:
        global_step: the variable that counts steps, or a number.
        max_matrix_size: the largest dimension that has a matrix; others have a vector, as in
            AdaGrad.
        gbar_decay, gbar_weight: * what is kept of the running gradient, and what a gradient adds.
        mat_gbar_decay, mat_gbar_weight: * likewise, of the sums of products.
        learning_rate: * the step size.
        svd_interval: * after how many steps the powers are computed anew.
        precond_update_interval: * after how many steps products are added.
        epsilon: added to the diagonals.
        alpha: * the total power.
        use_iterative_root: compute powers by iterations of products in place of an SVD.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self, global_step: Any = 0, max_matrix_size: int = 768, gbar_decay: Any = 0.0,
        gbar_weight: Any = 1.0, mat_gbar_decay: Any = 1.0, mat_gbar_weight: Any = 1.0,
        learning_rate: Any = 1.0, svd_interval: Any = 1, precond_update_interval: Any = 1,
        epsilon: float = 1e-4, alpha: Any = 0.5, use_iterative_root: bool = False,
        use_locking: bool = False, name: str = "Shampoo",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._global_step = cast(convert_to_tensor(global_step), dtypes.float32)
        self._largest, self._epsilon = max_matrix_size, epsilon
        self._gbar_decay, self._gbar_weight = gbar_decay, gbar_weight
        self._mat_decay, self._mat_weight = mat_gbar_decay, mat_gbar_weight
        self._learning_rate, self._alpha = learning_rate, alpha
        self._svd_interval, self._sum_interval = svd_interval, precond_update_interval
        self._iterative = use_iterative_root

    def _now(self, value: Any) -> Any:
        """A number at the step that is being made."""
        return value(self._global_step + 1) if callable(value) else value

    def _every(self, interval: Any) -> Any:
        return mod(self._global_step + 1, cast(convert_to_tensor(interval), dtypes.float32)) < 1

    # ------------------------------------------------------------ slots
    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            with colocate_with(v.op):
                self._zeros_slot(v, "gbar", self._name)
                for i, size in enumerate(v.shape.as_list()):
                    self._create_sums(v, i, size)

    def _create_sums(self, var: Any, i: int, size: int) -> None:
        if size > self._largest:
            self._get_or_make_slot(var, zeros([size]), f"Gbar_{i}", self._name)
            return
        if callable(self._svd_interval) or self._svd_interval > 1:
            self._get_or_make_slot(var, eye(size), f"H_{i}", self._name)
        self._get_or_make_slot(var, zeros_like(eye(size)), f"Gbar_{i}", self._name)

    def _average(self, slot: Any, decay: Any, new: Any) -> Any:
        """A slot after `slot * decay + new`, or `new` alone where nothing is kept."""
        if not callable(decay) and decay == 0.0:
            return new
        if not callable(decay) and decay == 1.0:
            return state.assign_add(slot, new)
        return state.assign_add(slot, (self._now(decay) - 1) * slot + new)

    # ------------------------------------------------------------ steps
    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._step(grad, var, None)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._step(grad, var, None)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._rows(grad, var, indices)

    def _rows(self, grad: Any, var: Any, indices: Any) -> Any:
        momentum = callable(self._gbar_decay) or self._gbar_decay != 0.0
        if var.shape.as_list()[0] <= self._largest or momentum:
            whole = shape_of(convert_to_tensor(var), out_type=indices.dtype)
            return self._step(scatter_nd(expand_dims(indices, 1), grad, whole), var, None)
        return self._step(grad, var, indices)

    def _step(self, grad: Any, var: Any, indices: Any) -> Any:
        moved = grad
        if indices is None:
            new = self._now(self._gbar_weight) * grad
            moved = self._average(self.get_slot(var, "gbar"), self._gbar_decay, new)
        sizes = var.shape.as_list()
        exponent = -self._now(self._alpha) / len(sizes)
        for i, size in enumerate(sizes):
            if size <= self._largest:
                matrix = self._power_of_matrix(var, grad, i, exponent)
                moved = tensordot(moved, matrix, axes=([0], [0]), name=f"precond_{i}")
            else:
                factors = self._power_of_vector(var, grad, i, exponent, indices)
                moved = transpose(moved, [*range(1, len(sizes)), 0]) * factors
        step = self._now(self._learning_rate) * moved
        if indices is not None:
            return scatter_add(var, indices, -step)
        return state.assign_sub(var, step)

    def _power_of_matrix(self, var: Any, grad: Any, i: int, exponent: Any) -> Any:
        """The preconditioner of a dimension, computed now or the last one."""
        sums, sizes = self.get_slot(var, f"Gbar_{i}"), var.shape.as_list()
        others = [k for k in range(len(sizes)) if k != i]
        interval = self._now(self._sum_interval)

        def added() -> Any:
            outer = tensordot(grad, grad, axes=(others, others), name=f"grad_outer_{i}")
            weight = self._now(self._mat_weight) * interval
            return convert_to_tensor(self._average(sums, self._mat_decay, weight * outer))

        mean = cond(self._every(interval), added, lambda: convert_to_tensor(sums)) / float(sizes[i])
        if not callable(self._svd_interval) and self._svd_interval == 1:
            return self._power(mean, sizes[i], exponent)
        kept = self.get_slot(var, f"H_{i}")
        return cond(
            self._every(self._now(self._svd_interval)),
            lambda: convert_to_tensor(state.assign(kept, self._power(mean, sizes[i], exponent))),
            lambda: convert_to_tensor(kept),
        )

    def _power(self, matrix: Any, size: int, exponent: Any) -> Any:
        with name_scope("matrix_iterative_power"):
            if self._iterative:
                root = matrix_square_root(matrix, size, 100, self._epsilon)
                return matrix_inverse_pth_root(root, size, 2 * exponent, 100, 1e-6, 0.0)
            if size == 1:
                return power(matrix + self._epsilon, exponent)
            values, u, v = svd(matrix + self._epsilon * eye(size), full_matrices=True)
            # What rounding makes of the damped matrix's least value may be below the damping.
            return matmul(v * power(maximum(values, self._epsilon), exponent), transpose(u))

    def _power_of_vector(self, var: Any, grad: Any, i: int, exponent: Any, indices: Any) -> Any:
        """A factor for each place of a dimension that is too long for a matrix."""
        sums, sizes = self.get_slot(var, f"Gbar_{i}"), var.shape.as_list()
        others = [k for k in range(len(sizes)) if k != i]
        squares = grad * grad
        if others:
            count = 1.0 if indices is not None else float(sizes[i])
            squares = reduce_sum(squares, axis=others) / count
        new = self._now(self._mat_weight) * squares
        if i == 0 and indices is not None:
            if callable(self._mat_decay) or self._mat_decay != 1.0:
                raise NotImplementedError(
                    f"mat_gbar_decay must be 1.0 for gradients of some rows of {var.name}, which "
                    f"has more than {self._largest} of them"
                )
            total = gather(scatter_add(sums, indices, new), indices)
        else:
            total = convert_to_tensor(self._average(sums, self._mat_decay, new))
        return where(total > 0, power(total, exponent), zeros_like(total))
