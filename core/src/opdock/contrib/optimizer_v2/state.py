"""What the methods of an `OptimizerV2` are told: its variables and hyper-parameters in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, init_scope
from opdock.graph.variables.trackable import Trackable
from opdock.ops import control
from opdock.ops.cast import cast
from opdock.train.optimizer import Optimizer

if TYPE_CHECKING:
    from opdock.contrib.optimizer_v2.base import OptimizerV2

__all__ = ["OptimizerState"]


class OptimizerState(Optimizer):
    """One step of an `OptimizerV2`, which says what to do and is told this.

    It is an optimizer of `tf.train`'s kind, so that what is around an update (slots, replicas,
    constraints, the global step) is the same for both kinds. Its variables are its owner's, and
    hyper-parameters that are functions have been called for this step.

    Args:
        owner: the optimizer whose step it is.
        hyper: the hyper-parameters by name, as the program gave them.
    """

    def __init__(self, owner: OptimizerV2, hyper: dict[str, Any]) -> None:
        super().__init__(owner._use_locking, owner.get_name())
        self._owner = owner
        self._slots, self._non_slots = owner._slots, owner._non_slots
        self._var_list: Sequence[Any] = ()
        with init_scope():
            found = {
                name: convert_to_tensor(value, name=name)
                for name, value in sorted(hyper.items())
                if not callable(value)
            }
        for name, value in sorted(hyper.items()):
            if callable(value):
                found[name] = convert_to_tensor(value(), name=name)
        self._values: dict[tuple[str, Any], Any] = {(n, None): v for n, v in found.items()}

    # ------------------------------------------------------------ what subclasses ask
    def get_hyper(self, name: str, dtype: dtypes.DType | None = None) -> Any:
        """A hyper-parameter as a tensor.

        Args:
            name: its name, as it was given to `_set_hyper`.
            dtype: the type that it is cast to.
        """
        if (name, dtype) not in self._values:
            self._values[name, dtype] = cast(self._values[name, None], dtype)
        return self._values[name, dtype]

    def create_slot(
        self, var: Any, val: Any, slot_name: str, optional_op_name: str | None = None
    ) -> Any:
        """The slot of a variable, made with an initial value if it is not there yet."""
        return self._get_or_make_slot(var, val, slot_name, optional_op_name or self._name)

    def create_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str,
        optional_op_name: str | None = None,
    ) -> Any:  # fmt: skip
        """The slot of a variable, made by an initializer if it is not there yet."""
        return self._get_or_make_slot_with_initializer(
            var, initializer, shape, dtype, slot_name, optional_op_name or self._name
        )

    def zeros_slot(self, var: Any, slot_name: str, optional_op_name: str | None = None) -> Any:
        """The slot of a variable, made of zeros if it is not there yet."""
        return self._zeros_slot(var, slot_name, optional_op_name or self._name)

    def create_non_slot(self, initial_value: Any, name: str, colocate_with: Any = None) -> Any:
        """A variable of the optimizer itself, made if it is not there yet.

        Args:
            initial_value: its first value, or a function of it.
            name: its name.
            colocate_with: the variable beside which it stands; the first one, by name, that is
                updated, when None.
        """
        if colocate_with is None:
            colocate_with = min(self._var_list, key=lambda v: str(v.name))
        return self._create_non_slot_variable(initial_value, name, colocate_with)

    def get_non_slot(self, name: str) -> Any:
        """A variable of the optimizer itself, or None."""
        return self._get_non_slot_variable(name)

    # ------------------------------------------------------------ what the owner says
    def _valid_dtypes(self) -> set[dtypes.DType]:
        valid: set[dtypes.DType] = self._owner._valid_dtypes()
        return valid

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        self._var_list = var_list
        self._owner._create_vars(var_list, self)

    def _prepare(self) -> None:
        self._owner._prepare(self)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._owner._apply_dense(grad, var, self)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return self._owner._resource_apply_dense(grad, var, self)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._owner._apply_sparse_duplicate_indices(grad, var, self)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._owner._resource_apply_sparse_duplicate_indices(grad, var, indices, self)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            last = self._owner._finish(self)
        return control.group(*update_ops, *([] if last is None else [last]), name=name_scope)

    # ------------------------------------------------------------ what checkpoints say to the owner
    def _restore_slot_variable(self, slot_name: str, variable: Any, slot_variable: Any) -> None:
        self._owner._restore_slot_variable(slot_name, variable, slot_variable)

    def _handle_deferred_dependencies(self, name: str, trackable: Trackable) -> None:
        self._owner._handle_deferred_dependencies(name, trackable)
