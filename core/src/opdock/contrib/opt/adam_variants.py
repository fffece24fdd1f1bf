"""AdaMax, Nadam, and Adam that leaves alone the rows that no gradient touches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops import control, state
from opdock.ops.composed.variable_scatter import scatter_update
from opdock.train.adaptive import AdamOptimizer

__all__ = [
    "AdaMaxOptimizer", "AdamGSOptimizer", "LazyAdamGSOptimizer", "LazyAdamOptimizer",
    "NadamOptimizer",
]  # fmt: skip


def _rows(slot: Any, indices: Any) -> Any:
    return get("GatherV2")(convert_to_tensor(slot), indices, 0)


class AdaMaxOptimizer(AdamOptimizer):
    """AdaMax: Adam with the largest gradient in place of the second moment (Kingma & Ba 2014).

    Where a gradient has some rows only, the other rows and their moments stay as they are.

    Args:
        learning_rate: the step size.
        beta1, beta2: decay rates of the first moment and of the largest gradient.
        epsilon: keeps the division finite.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "AdaMax"

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-8, use_locking: bool = False, name: str = "AdaMax",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power")

    def _powers(self, var: Any) -> list[Any]:
        power = convert_to_tensor(self._get_beta_accumulators())
        wanted = var.dtype.base_dtype
        return [power if power.dtype.base_dtype is wanted else get("Cast")(power, DstT=wanted)]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # The same variable in every process, whatever the order of the list.
        first = min(var_list, key=lambda v: str(v.name))
        power = self._call_if_callable(self._beta1)
        self._create_non_slot_variable(power, "beta1_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        names = ("learning_rate", "beta1", "beta2", "epsilon")
        rate, beta1, beta2, epsilon = (self._cast(n, var) for n in names)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = _rows(m, indices) * beta1 + grad * (1 - beta1)
        v_rows = get("Maximum")(_rows(v, indices) * beta2, get("Abs")(grad))
        m_set = scatter_update(m, indices, m_rows, use_locking=self._use_locking)
        v_set = scatter_update(v, indices, v_rows, use_locking=self._use_locking)
        step = -rate / (1 - self._powers(var)[0]) * (m_rows / (v_rows + epsilon))
        return control.group(scatter_add(var, indices, step), m_set, v_set)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            moved = state.assign(
                power, power * self._tensors["beta1"], use_locking=self._use_locking
            )
        return control.group(*update_ops, moved, name=name_scope)


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum (Dozat 2015); arguments as of `AdamOptimizer`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flags = {"use_nesterov": True}

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        beta1, beta2, epsilon = (self._cast(n, var) for n in ("beta1", "beta2", "epsilon"))
        rate = self._corrected_rate(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        with control_dependencies([state.assign(m, m * beta1, use_locking=self._use_locking)]):
            m_new = scatter_add(m, indices, grad * (1 - beta1))
        ahead = grad * (1 - beta1) + beta1 * _rows(m_new, indices)
        with control_dependencies([state.assign(v, v * beta2, use_locking=self._use_locking)]):
            v_new = scatter_add(v, indices, grad * grad * (1 - beta2))
        step = -rate * ahead / (get("Sqrt")(_rows(v_new, indices)) + epsilon)
        return control.group(scatter_add(var, indices, step), m_new, v_new)


class LazyAdamOptimizer(AdamOptimizer):
    """Adam whose moments decay only in the rows that a step's gradient has.

    For embeddings this costs what the batch costs, not what the table does. Arguments as of
    `AdamOptimizer`.
    """

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        beta1, beta2, epsilon = (self._cast(n, var) for n in ("beta1", "beta2", "epsilon"))
        rate = self._corrected_rate(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * _rows(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * _rows(v, indices) + (1 - beta2) * grad * grad
        m_set = scatter_update(m, indices, m_rows, use_locking=self._use_locking)
        v_set = scatter_update(v, indices, v_rows, use_locking=self._use_locking)
        step = -rate * m_rows / (get("Sqrt")(v_rows) + epsilon)
        return control.group(scatter_add(var, indices, step), m_set, v_set)


class AdamGSOptimizer(AdamOptimizer):
    """Adam that takes its number of steps from a global step.

    Args:
        global_step: the variable that counts steps, or a number.
        learning_rate, beta1, beta2, epsilon, use_locking, name: as of `AdamOptimizer`.
    """

    def __init__(
        self, global_step: Any = 0, learning_rate: Any = 0.001, beta1: Any = 0.9,
        beta2: Any = 0.999, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adam",
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step
        self._global_step_on_worker: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        step = get("Identity")(convert_to_tensor(self._global_step))
        self._global_step_on_worker = get("Cast")(step + 1, DstT=dtypes.float32)

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        step = self._global_step_on_worker
        return (
            get("Pow")(self._tensors["beta1"], step),
            get("Pow")(self._tensors["beta2"], step),
        )

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        return control.group(*update_ops, name=name_scope)


class LazyAdamGSOptimizer(LazyAdamOptimizer, AdamGSOptimizer):
    """`AdamGSOptimizer` whose moments decay only in the rows that a step's gradient has."""
