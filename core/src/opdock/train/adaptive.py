"""AdaDelta, RMSProp and Adam: steps scaled by running moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with, control_dependencies
from opdock.graph.variables import initializers
from opdock.ops import control, state
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.train.optimizer import Optimizer


class AdadeltaOptimizer(Optimizer):
    """AdaDelta (Zeiler 2012).

    Args:
        learning_rate: the step size; 1.0 is the paper's form.
        rho: the decay rate.
        epsilon: keeps the divisions finite.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "Adadelta"
    _slot_order = ("accum", "accum_update")
    _tensor_names: ClassVar[dict[str, str]] = {
        "learning_rate": "_lr_t", "rho": "_rho_t", "epsilon": "_epsilon_t",
    }  # fmt: skip

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._args = {"learning_rate": learning_rate, "rho": rho, "epsilon": epsilon}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast(n, var) for n in ("learning_rate", "rho", "epsilon")] + [None]


class RMSPropOptimizer(Optimizer):
    """RMSProp (Tieleman & Hinton 2012).

    Args:
        learning_rate: the step size.
        decay: the decay rate of the squared gradients.
        momentum: how much of the last step is kept.
        epsilon: keeps the division finite.
        use_locking, name: see `Optimizer`.
        centered: divide by the variance instead of the second moment.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._args = {
            "learning_rate": learning_rate,
            "decay": decay,
            "momentum": momentum,
            "epsilon": epsilon,
        }
        self._centered = centered
        self._update_op = "CenteredRMSProp" if centered else "RMSProp"
        self._slot_order = ("mg", "rms", "momentum") if centered else ("rms", "momentum")

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            ones = initializers.ones_initializer(v.dtype.base_dtype)
            self._get_or_make_slot_with_initializer(
                v, ones, v.get_shape(), v.dtype.base_dtype, "rms", self._name
            )
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast(n, var) for n in ("learning_rate", "decay", "momentum", "epsilon")] + [
            None
        ]


class AdamOptimizer(Optimizer):
    """Adam (Kingma & Ba 2014), in the form whose epsilon is outside the corrected root.

    Args:
        learning_rate: the step size.
        beta1, beta2: decay rates of the two moments.
        epsilon: keeps the division finite.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "Adam"
    _slot_order = ("m", "v")
    _tensor_names: ClassVar[dict[str, str]] = {
        "learning_rate": "_lr_t", "beta1": "_beta1_t", "beta2": "_beta2_t", "epsilon": "_epsilon_t",
    }  # fmt: skip

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._get_non_slot_variable("beta1_power"), self._get_non_slot_variable(
            "beta2_power"
        )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # The same variable in every process, whatever the order of the list.
        first = min(var_list, key=lambda v: str(v.name))
        for key, value in (("beta1", self._beta1), ("beta2", self._beta2)):
            self._create_non_slot_variable(self._call_if_callable(value), f"{key}_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._hyper(
            learning_rate=self._lr, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon
        )

    def _powers(self, var: Any) -> list[Any]:
        """The powers of the decay rates, in the variable's type."""
        wanted = var.dtype.base_dtype
        read = [convert_to_tensor(value) for value in self._get_beta_accumulators()]
        return [r if r.dtype.base_dtype is wanted else get("Cast")(r, DstT=wanted) for r in read]

    def _inputs(self, var: Any) -> list[Any]:
        powers = self._powers(var)
        return (
            powers
            + [self._cast(n, var) for n in ("learning_rate", "beta1", "beta2", "epsilon")]
            + [None]
        )

    def _corrected_rate(self, var: Any) -> Any:
        """The step size with the corrections of both moments."""
        beta1_power, beta2_power = self._powers(var)
        root = get("Sqrt")(1 - beta2_power)
        return self._cast("learning_rate", var) * root / (1 - beta1_power)

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        """Adam on rows: the moments of all rows decay, as if the other gradients were zero."""
        beta1, beta2, epsilon = (self._cast(n, var) for n in ("beta1", "beta2", "epsilon"))
        rate = self._corrected_rate(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_decayed = state.assign(m, m * beta1, use_locking=self._use_locking)
        with control_dependencies([m_decayed]):
            m_new = scatter_add(m, indices, grad * (1 - beta1))
        v_decayed = state.assign(v, v * beta2, use_locking=self._use_locking)
        with control_dependencies([v_decayed]):
            v_new = scatter_add(v, indices, grad * grad * (1 - beta2))
        step = rate * m_new / (get("Sqrt")(convert_to_tensor(v_new)) + epsilon)
        moved = state.assign_sub(var, step, use_locking=self._use_locking)
        return control.group(moved, m_new, v_new)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        def add(ref: Any, indices: Any, values: Any) -> Any:
            return scatter_add(ref, indices, values, use_locking=self._use_locking)

        return self._apply_sparse_shared(grad.values, var, grad.indices, add)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._apply_sparse_shared(grad, var, indices, self._resource_scatter_add)

    def _resource_scatter_add(self, x: Any, i: Any, v: Any) -> Any:
        return scatter_add(x, i, v)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            power1, power2 = self._get_beta_accumulators()
            with colocate_with(power1.op):
                updates = [
                    state.assign(
                        power1, power1 * self._tensors["beta1"], use_locking=self._use_locking
                    ),
                    state.assign(
                        power2, power2 * self._tensors["beta2"], use_locking=self._use_locking
                    ),
                ]
        return control.group(*update_ops, *updates, name=name_scope)
