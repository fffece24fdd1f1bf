"""GGT: full-matrix AdaGrad over a window of the last gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops import control, state
from opdock.ops.arithmetic import floormod, minimum
from opdock.ops.arithmetic import pow as power
from opdock.ops.array import expand_dims, reshape
from opdock.ops.cast import cast
from opdock.ops.composed.eye import eye
from opdock.ops.composed.variable_scatter import scatter_update
from opdock.ops.decompositions import svd
from opdock.ops.elementary import sqrt
from opdock.ops.fill import zeros
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_min
from opdock.train.optimizer import Optimizer

__all__ = ["GGTOptimizer"]


class GGTOptimizer(Optimizer):
    """Full-matrix AdaGrad over a window of averaged gradients (Agarwal et al. 2018).

    All variables are one vector, of one dtype. With M the last `window` averages as columns, over
    the root of their number, a step is `(M M^T)^(-1/2)` of the average, computed from the small
    matrix `M^T M`.

    Args:
        learning_rate: the step size.
        beta1: how much of the average is kept.
        use_locking, name: see `Optimizer`.
        window: the number of averages that count.
        eps: the least root of a singular value with which the rest of the space is scaled.
        svd_eps: added to the diagonal of the small matrix.
        sigma_eps: added to the roots of its singular values.

    Raises:
        NotImplementedError: a gradient has some rows only.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, use_locking: bool = False,
        name: str = "GGT", window: int = 10, eps: float = 1e-4, svd_eps: float = 1e-6,
        sigma_eps: float = 1e-2,
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._window = learning_rate, beta1, window
        self._eps, self._svd_eps, self._sigma_eps = eps, svd_eps, sigma_eps
        self._places: dict[Any, tuple[int, int]] = {}
        self._applied: list[tuple[Any, Any]] = []

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        start = 0
        for var in sorted(var_list, key=lambda v: str(v.name)):
            size = var.shape.num_elements()
            self._places[var.op] = (start, start + size)
            start += size
        first, dtype = var_list[0], var_list[0].dtype.base_dtype
        for name, value in (
            ("global_step", convert_to_tensor(0.0, dtype)),
            ("grad_buffer", zeros([self._window, start], dtype)),
            ("moment1", zeros([start], dtype)),
            ("flat_grad", zeros([start], dtype)),
        ):
            self._create_non_slot_variable(value, name, first)

    def _get_global_step(self) -> Any:
        return self._get_non_slot_variable("global_step")

    def _get_moment1(self) -> Any:
        return self._get_non_slot_variable("moment1")

    def _get_grad_buffer(self) -> Any:
        return self._get_non_slot_variable("grad_buffer")

    def _get_flat_grad(self) -> Any:
        return self._get_non_slot_variable("flat_grad")

    def _prepare(self) -> None:
        self._applied = []
        self._hyper(learning_rate=self._learning_rate, beta1=self._beta1)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        self._applied.append((grad, var))
        rows = list(range(*self._places[var.op]))
        return scatter_update(self._get_flat_grad(), rows, reshape(grad, [-1]))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        first = self._applied[0][1]
        with control_dependencies(update_ops):
            flat = convert_to_tensor(self._get_flat_grad())
            count = convert_to_tensor(state.assign_add(self._get_global_step(), 1.0))
        beta, old = self._cast("beta1", first), self._get_moment1()
        average = convert_to_tensor(state.assign(old, beta * old + (1.0 - beta) * flat))
        place = floormod(cast(count - 1.0, dtypes.int32), self._window)
        last = convert_to_tensor(scatter_update(self._get_grad_buffer(), place, average))
        step = self._step(last, count, expand_dims(average, -1))
        rate = self._cast("learning_rate", first)
        moved = []
        for _, var in self._applied:
            start, end = self._places[var.op]
            part = reshape(step[start:end], var.shape.as_list())
            moved.append(state.assign_sub(var, rate * part, use_locking=self._use_locking))
        return control.group(*moved, name=name_scope)

    def _step(self, last: Any, count: Any, average: Any) -> Any:
        """The averages' inverse root times the last one, a column."""
        window = convert_to_tensor(self._window, last.dtype)
        m = transpose(last / sqrt(minimum(count, window)))
        small = matmul(m, m, transpose_a=True)
        values, u, _ = svd(small + self._svd_eps * eye(self._window, dtype=last.dtype))
        roots = sqrt(values)
        least = reduce_min(roots)
        within = matmul(u, matmul(m, average, transpose_a=True), transpose_a=True)

        def weighted(weights: Any) -> Any:
            return matmul(m, matmul(u, expand_dims(weights, -1) * within))

        head = weighted(1.0 / power(roots + self._sigma_eps, 3))
        tail = (average - weighted(1.0 / values)) / least
        return control.cond(least > self._eps, lambda: head + tail, lambda: head)
