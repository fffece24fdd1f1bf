"""The AdaGrad family: AdaGrad, its proximal form, dual averaging, and FTRL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.variables import initializers
from opdock.train.optimizer import Optimizer


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


class AdagradOptimizer(Optimizer):
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


class ProximalAdagradOptimizer(Optimizer):
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
        self._learning_rate = learning_rate
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


class AdagradDAOptimizer(Optimizer):
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
        self._learning_rate = learning_rate
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


class FtrlOptimizer(Optimizer):
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
        self._learning_rate = learning_rate
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
