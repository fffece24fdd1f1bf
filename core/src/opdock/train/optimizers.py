"""The optimizers of `tf.train`, on the update ops of `ops.training`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph import initializers
from opdock.graph.composite import IndexedSlices
from opdock.graph.constant import constant
from opdock.graph.convert import convert_to_tensor
from opdock.graph.registry import get
from opdock.graph.scopes import colocate_with, control_dependencies
from opdock.ops import control, state
from opdock.train.optimizer import Optimizer


class _Applied(Optimizer):
    """An optimizer whose update is one Apply op.

    Attributes:
        _update_op: the name in the ops' table ("Momentum" for ApplyMomentum).
        _slot_names: its slots in the op's order, as (slot name).
    """

    _update_op = ""
    _slot_order: tuple[str, ...] = ()
    _flags: dict[str, Any]

    def __init__(self, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._flags = {}
        self._tensors: dict[str, Any] = {}

    def _hyper(self, **values: Any) -> None:
        """Makes one tensor per hyper-parameter, shared by all updates."""
        self._tensors = {
            k: convert_to_tensor(self._call_if_callable(v), name=k) for k, v in values.items()
        }

    def _inputs(self, var: Any) -> list[Any]:
        """The op's inputs between the state and the end; `None` stands for the gradient."""
        raise NotImplementedError

    def _cast(self, name: str, var: Any) -> Any:
        tensor = self._tensors[name]
        wanted = var.dtype.base_dtype
        return tensor if tensor.dtype.base_dtype is wanted else get("Cast")(tensor, DstT=wanted)

    def _holders(self, var: Any, resource: bool) -> list[Any]:
        slots = [self.get_slot(var, n) for n in self._slot_order]
        return [v.handle if resource else v for v in (var, *slots)]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call("Apply", grad, var, None, False)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._call("ResourceApply", grad, var, None, True)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._call("SparseApply", grad.values, var, grad.indices, False)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._call("ResourceSparseApply", grad, var, indices, True)

    def _call(self, prefix: str, grad: Any, var: Any, indices: Any, resource: bool) -> Any:
        inputs: list[Any] = []
        for value in self._inputs(var):
            if value is None:
                inputs.append(grad)
                if indices is not None:
                    inputs.append(indices)
            else:
                inputs.append(value)
        done = get(prefix + self._update_op)(
            *self._holders(var, resource), *inputs, use_locking=self._use_locking, **self._flags
        )
        return done if resource else done.op


class GradientDescentOptimizer(_Applied):
    """Gradient descent.

    Args:
        learning_rate: the step size.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "GradientDescent"

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None]

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        delta = IndexedSlices(
            grad.values * self._cast("learning_rate", var), grad.indices, grad.dense_shape
        )
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any) -> Any:
        return get("ResourceScatterAdd")(
            var.handle, indices, -grad * self._cast("learning_rate", var)
        )


class ProximalGradientDescentOptimizer(_Applied):
    """Gradient descent with l1 and l2 by proximal steps.

    Args:
        learning_rate: the step size.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "ProximalGradientDescent"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._args = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [
            self._cast("learning_rate", var),
            self._cast("l1", var),
            self._cast("l2", var),
            None,
        ]


class MomentumOptimizer(_Applied):
    """Gradient descent with momentum, optionally Nesterov's.

    Args:
        learning_rate: the step size.
        momentum: how much of the last step is kept.
        use_locking, name: see `Optimizer`.
        use_nesterov: look ahead along the momentum.
    """

    _update_op = "Momentum"
    _slot_order = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._flags = {"use_nesterov": use_nesterov}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "momentum", self._name)

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate, momentum=self._momentum)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None, self._cast("momentum", var)]


def _accumulator(optimizer: Optimizer, var: Any, value: float, slot: str) -> None:
    dtype = var.dtype.base_dtype
    if var.get_shape().is_fully_defined():
        init = initializers.constant_initializer(value, dtype=dtype)
        optimizer._get_or_make_slot_with_initializer(
            var, init, var.get_shape(), dtype, slot, optimizer._name
        )
        return
    filled = get("Fill")(get("Shape")(var), convert_to_tensor(value, dtype))
    optimizer._get_or_make_slot(var, filled, slot, optimizer._name)


class AdagradOptimizer(_Applied):
    """AdaGrad (Duchi et al. 2011).

    Args:
        learning_rate: the step size.
        initial_accumulator_value: the start of the accumulators, above 0.
        use_locking, name: see `Optimizer`.

    Raises:
        ValueError: the initial value is not positive.
    """

    _update_op = "Adagrad"
    _slot_order = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            _accumulator(self, v, self._initial, "accumulator")

    def _prepare(self) -> None:
        self._hyper(learning_rate=self._learning_rate)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast("learning_rate", var), None]


class ProximalAdagradOptimizer(_Applied):
    """AdaGrad with l1 and l2 by proximal steps; see `AdagradOptimizer`."""

    _update_op = "ProximalAdagrad"
    _slot_order = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._initial = initial_accumulator_value
        self._args = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            _accumulator(self, v, self._initial, "accumulator")

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [
            self._cast("learning_rate", var),
            self._cast("l1", var),
            self._cast("l2", var),
            None,
        ]


class AdagradDAOptimizer(_Applied):
    """AdaGrad dual averaging (Duchi et al. 2011), for sparse linear models.

    Args:
        learning_rate: the step size.
        global_step: the step counter that the regularization grows with.
        initial_gradient_squared_accumulator_value: above 0.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "AdagradDA"
    _slot_order = ("gradient_accumulator", "gradient_squared_accumulator")

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._initial = initial_gradient_squared_accumulator_value
        self._global_step = global_step
        self._args = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "gradient_accumulator", self._name)
            _accumulator(self, v, self._initial, "gradient_squared_accumulator")

    def _prepare(self) -> None:
        self._hyper(**self._args)
        step = get("Identity")(convert_to_tensor(self._global_step))
        if step.dtype is not dtypes.int64:
            step = get("Cast")(step, DstT=dtypes.int64)
        # Steps count from one: the regularization of the first update is not nothing.
        self._step = step + 1

    def _inputs(self, var: Any) -> list[Any]:
        step = self._step
        return [
            None,
            self._cast("learning_rate", var),
            self._cast("l1", var),
            self._cast("l2", var),
            step,
        ]


class AdadeltaOptimizer(_Applied):
    """AdaDelta (Zeiler 2012).

    Args:
        learning_rate: the step size; 1.0 is the paper's form.
        rho: the decay rate.
        epsilon: keeps the divisions finite.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "Adadelta"
    _slot_order = ("accum", "accum_update")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._args = {"learning_rate": learning_rate, "rho": rho, "epsilon": epsilon}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        return [self._cast(n, var) for n in ("learning_rate", "rho", "epsilon")] + [None]


class RMSPropOptimizer(_Applied):
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


class FtrlOptimizer(_Applied):
    """FTRL-proximal (McMahan et al. 2013).

    Args:
        learning_rate: the step size.
        learning_rate_power: at most 0.
        initial_accumulator_value: at least 0.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        use_locking, name: see `Optimizer`.
        accum_name, linear_name: names of the slots.
        l2_shrinkage_regularization_strength: an l2 that acts on the loss only.

    Raises:
        ValueError: an argument is out of range.
    """

    _slot_order = ("accum", "linear")

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        checks = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for key, value in checks.items():
            if value < 0.0:
                raise ValueError(f"{key} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power} needs to be negative or zero"
            )
        self._initial = initial_accumulator_value
        self._accum_name, self._linear_name = accum_name, linear_name
        self._shrinks = l2_shrinkage_regularization_strength > 0
        self._update_op = "FtrlV2" if self._shrinks else "Ftrl"
        self._args = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
            "l2_shrinkage": l2_shrinkage_regularization_strength,
            "learning_rate_power": learning_rate_power,
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for v in var_list:
            value = constant(self._initial, v.dtype.base_dtype, v.get_shape())
            self._get_or_make_slot(v, value, "accum", self._accum_name or self._name)
            self._zeros_slot(v, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _inputs(self, var: Any) -> list[Any]:
        names = [
            "learning_rate",
            "l1",
            "l2",
            *(["l2_shrinkage"] if self._shrinks else []),
            "learning_rate_power",
        ]
        return [None, *[self._cast(n, var) for n in names]]


class AdamOptimizer(_Applied):
    """Adam (Kingma & Ba 2014), in the form whose epsilon is outside the corrected root.

    Args:
        learning_rate: the step size.
        beta1, beta2: decay rates of the two moments.
        epsilon: keeps the division finite.
        use_locking, name: see `Optimizer`.
    """

    _update_op = "Adam"
    _slot_order = ("m", "v")

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
        self._args = {
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
        }

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._get_non_slot_variable("beta1_power"), self._get_non_slot_variable(
            "beta2_power"
        )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # The same variable in every process, whatever the order of the list.
        first = min(var_list, key=lambda v: str(v.name))
        for key in ("beta1", "beta2"):
            value = self._call_if_callable(self._args[key])
            self._create_non_slot_variable(value, f"{key}_power", first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._hyper(**self._args)

    def _power(self, key: str, var: Any) -> Any:
        value = self._get_non_slot_variable(key)
        wanted = var.dtype.base_dtype
        read = convert_to_tensor(value)
        return read if read.dtype.base_dtype is wanted else get("Cast")(read, DstT=wanted)

    def _inputs(self, var: Any) -> list[Any]:
        powers = [self._power("beta1_power", var), self._power("beta2_power", var)]
        return (
            powers
            + [self._cast(n, var) for n in ("learning_rate", "beta1", "beta2", "epsilon")]
            + [None]
        )

    def _sparse(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        """Adam on rows: the moments of all rows decay, as if the other gradients were zero."""
        beta1, beta2, epsilon = (self._cast(n, var) for n in ("beta1", "beta2", "epsilon"))
        root = get("Sqrt")(1 - self._power("beta2_power", var))
        rate = self._cast("learning_rate", var) * root / (1 - self._power("beta1_power", var))
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
            return state.scatter_add(ref, indices, values, use_locking=self._use_locking)

        return self._sparse(grad.values, var, grad.indices, add)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._sparse(grad, var, indices, state.scatter_add)

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
