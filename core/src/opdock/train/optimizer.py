"""The base of all optimizers: gradients, slots, and the operation that applies the gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.autodiff.custom import used_variables
from opdock.autodiff.gradients import gradients
from opdock.autodiff.tape import GradientTape
from opdock.distribute.modes import has_strategy
from opdock.distribute.values import DistributedValues
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import IndexedSlices, internal_convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.frames import frames_known
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import (
    colocate_with,
    control_dependencies,
    executing_eagerly,
    name_scope,
)
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.ops import control
from opdock.train import slot_creator
from opdock.train.applied import AppliedUpdates
from opdock.train.replicated import (
    apply_on_replicas,
    container_of,
    distributed_apply,
    own_copy,
    scaled_loss,
)
from opdock.train.slot_creator import beside
from opdock.train.tracking.slots import TrackedSlots
from opdock.util import nest


class Optimizer(TrackedSlots, AppliedUpdates):
    """Base class. A subclass says how one gradient updates one variable.

    Args:
        use_locking: whether concurrent updates of a variable exclude each other.
        name: the default name of the operations.

    Raises:
        ValueError: the name is empty.
    """

    GATE_NONE: Final = 0
    GATE_OP: Final = 1
    GATE_GRAPH: Final = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        super().__init__()
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Any]] = {}
        self._non_slots: dict[tuple[str, Any], Any] = {}

    def get_name(self) -> str:
        """The optimizer's name."""
        return self._name

    # ------------------------------------------------------------ the three calls
    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """An operation that updates the variables so that `loss` falls.

        Args:
            loss: the tensor to minimize.
            global_step: a variable to increment afterwards.
            var_list: the variables; all trainable ones by default.
            gate_gradients: how far gradients wait for each other.
            aggregation_method: how gradients of one tensor are added.
            colocate_gradients_with_ops: put gradient ops beside their forward ops.
            name: the operation's name.
            grad_loss: the gradient of the loss itself.

        Raises:
            ValueError: no variable has a gradient.
        """
        # By name, since subclasses that override these take some of their arguments as **kwargs.
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if not any(g is not None for g, _ in pairs):
            names = [str(v) for _, v in pairs]
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {names} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of `loss` as (gradient or None, variable) pairs.

        Args:
            loss: the tensor to minimize, or a function that makes it: by default its variables are
                the trainable ones that the result depends on.
            var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss:
                see `minimize`; a function's gradients heed the first and the last only.

        Raises:
            ValueError: there is no variable, or `gate_gradients` is unknown.
            TypeError: `var_list` holds something that is no variable.
        """
        if executing_eagerly():
            return on_tape(loss, var_list, grad_loss, scaled_loss)
        if callable(loss):
            loss = scaled_loss(loss())
            if var_list is None:
                var_list = used_variables(get_default_graph(), [loss], [])
            with get_default_graph().control_dependencies([loss]):
                found = gradients(loss, _flat(var_list), grad_ys=grad_loss)
            return list(zip(found, _flat(var_list), strict=True))
        loss = scaled_loss(loss)
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH. Not {gate_gradients}"
            )
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        if var_list is None:
            var_list = trainable_variables() + get_default_graph().get_collection(
                GraphKeys.TRAINABLE_RESOURCE_VARIABLES
            )
        variables = _flat(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        for v in variables:
            if not isinstance(v, (Variable, Tensor)):
                raise TypeError(f"Argument is not a tf.Variable: {v}")
        found = gradients(
            loss, variables, grad_ys=grad_loss, aggregation_method=aggregation_method,
            gate_gradients=gate_gradients == self.GATE_OP,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )  # fmt: skip
        if gate_gradients == self.GATE_GRAPH:
            found = control.tuple(found)
        pairs = list(zip(found, variables, strict=True))
        self._assert_valid_dtypes(
            [v for g, v in pairs if g is not None and v.dtype.base_dtype is not dtypes.resource]
        )
        return pairs

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Any:
        """An operation that applies gradients as `compute_gradients` gives them.

        Raises:
            ValueError: there is no pair, or none has a gradient.
            TypeError: a gradient or variable is not one.
        """
        if has_strategy():
            return apply_on_replicas(self, grads_and_vars, global_step, name)
        pairs = [(g, v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        converted = []
        for grad, var in pairs:
            if grad is not None:
                try:
                    grad = internal_convert_to_tensor_or_indexed_slices(grad)
                except TypeError:
                    raise TypeError(
                        "Gradient must be convertible to a Tensor or IndexedSlices, or None: "
                        f"{grad}"
                    ) from None
            converted.append((grad, var))
        variables = [v for g, v in converted if g is not None]
        if not variables:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in converted]}."
            )
        with frames_known(sys._getframe()):
            return self._apply_pairs(converted, variables, global_step, name)

    def _distributed_apply(
        self, distribution: Any, grads_and_vars: Any, global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """`apply_gradients` across replicas; subclasses that wrap an optimizer call it."""
        return distributed_apply(self, distribution, grads_and_vars, global_step, name)

    def _apply_pairs(
        self, converted: list[tuple[Any, Any]], variables: list[Any], global_step: Any,
        name: str | None,
    ) -> Any:  # fmt: skip
        self._make_slots(variables)
        updates = []
        with name_scope(name, self._name, _tensors(converted)) as scope:
            self._prepare()
            for grad, var in converted:
                if grad is None:
                    continue
                with name_scope("update_" + var.op.name), colocate_with(var.op):
                    updates.append(self._update(grad, var))
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                with (
                    control_dependencies([self._finish(updates, "update")]),
                    colocate_with(global_step.op),
                ):
                    done = _increment(global_step, scope)
            if isinstance(done, Tensor):
                done = done.op
            if executing_eagerly():
                return done
            train_ops = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
            if done not in train_ops:
                train_ops.append(done)
            return done

    def _make_slots(self, variables: Sequence[Any]) -> None:
        """Makes the slots of variables, those that are not there yet, under no control."""
        with control_dependencies(None):
            self._create_slots(variables)

    def _update(self, grad: Any, var: Any) -> Any:
        if isinstance(var, Tensor) and not var.dtype._is_ref_dtype:
            raise NotImplementedError("Trying to update a Tensor ", var)
        resource = not var.dtype._is_ref_dtype
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError(
                    f"Cannot use a constraint function on a sparse variable: {var.name}"
                )
            if resource:
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            return self._apply_sparse_duplicate_indices(grad, var)
        op = self._resource_apply_dense(grad, var) if resource else self._apply_dense(grad, var)
        if var.constraint is not None:
            with control_dependencies([op]):
                return var.assign(var.constraint(var.read_value()))
        return op

    # ------------------------------------------------------------ slots
    def get_slot(self, var: Any, name: str) -> Any:
        """The slot `name` of a variable, or None."""
        found = self._slots.get(name, {}).get(_key(var))
        # Of a copy of a variable, the copy beside it.
        return found if container_of(var) is var else own_copy(found, var.device)

    def get_slot_names(self) -> list[str]:
        """The names of the slots."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """All variables that the optimizer made in the current graph."""
        program = _program_graph()._program_key
        made = [v for _, v in sorted(self._non_slots.items(), key=lambda i: i[0][0])]
        for _, slots in sorted(self._slots.items()):
            made += slots.values()
        found = [v for v in made if v.graph._program_key is program]
        return sorted(found, key=lambda v: str(v.name))

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        return self._slot(slot_name, var, lambda: slot_creator.create_slot(var, val, op_name))

    def _made_slot(self, variable: Any, slot_name: str, value: Any) -> Any:
        return self._get_or_make_slot(
            variable, convert_to_tensor(value), slot_name, self.get_name()
        )

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        def make() -> Any:
            return slot_creator.create_slot_with_initializer(
                var, initializer, shape, dtype, op_name
            )

        return self._slot(slot_name, var, make)

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._slot(slot_name, var, lambda: slot_creator.create_zeros_slot(var, op_name))

    def _slot(self, slot_name: str, var: Any, make: Callable[[], Any]) -> Any:
        slots = self._slot_dict(slot_name)
        if _key(var) not in slots:
            slots[_key(var)] = make()
            self._restore_slot_variable(slot_name, var, slots[_key(var)])
        return slots[_key(var)]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        key = (name, colocate_with.graph._program_key)
        found = self._non_slots.get(key)
        if found is None:
            with beside(colocate_with):
                found = Variable(
                    initial_value, name=name, trainable=False,
                    use_resource=not colocate_with.dtype._is_ref_dtype,
                )  # fmt: skip
            self._non_slots[key] = found
            self._handle_deferred_dependencies(name, found)
        return found

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        program = (graph or _program_graph())._program_key
        return own_copy(self._non_slots.get((name, program)))

    # ------------------------------------------------------------ what subclasses say
    def _valid_dtypes(self) -> set[dtypes.DType]:
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        for t in tensors:
            if t.dtype.base_dtype not in self._valid_dtypes():
                valid = [str(d) for d in self._valid_dtypes()]
                raise ValueError(f"Invalid type {t.dtype!r} for {t.name}, expected: {valid}.")

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of the variables."""

    def _prepare(self) -> None:
        """Makes tensors that all updates share."""

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        values, indices = deduplicate(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any) -> Any:
        values, unique = deduplicate(grad, indices)
        return self._resource_apply_sparse(values, var, unique)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        return control.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


def deduplicate(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Sums the values of equal indices, so that each index occurs once."""
    unique = get("Unique")(indices)
    count = get("StridedSlice")(get("Shape")(unique[0]), [0], [1], [1], shrink_axis_mask=1)
    return get("UnsortedSegmentSum")(values, unique[1], count), unique[0]


def on_tape(
    loss: Any, var_list: Any, grad_loss: Any, scaled: Callable[[Any], Any]
) -> list[tuple[Any, Any]]:
    """The gradients of what a function makes while operations run as they are made.

    Args:
        loss, var_list, grad_loss: see `Optimizer.minimize`.
        scaled: gives what the function makes the factor that it gets for replicas.
    """
    if not callable(loss):
        raise RuntimeError(
            "`loss` passed to Optimizer.compute_gradients should be a function when eager "
            "execution is enabled."
        )
    with GradientTape() as tape:
        if var_list is not None:
            tape.watch(_flat(var_list))
        value = scaled(loss())
    variables = list(tape.watched_variables()) if var_list is None else _flat(var_list)
    return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))


def _increment(global_step: Any, scope: str) -> Any:
    one = convert_to_tensor(1, global_step.dtype.base_dtype)
    if global_step.dtype._is_ref_dtype:
        return get("AssignAdd")(global_step, one, name=scope)
    return get("AssignAddVariableOp")(global_step.handle, one, dtype=global_step.dtype, name=scope)


def _program_graph() -> Any:
    """The graph that variables live in: not that of a branch or loop."""
    graph: Any = get_default_graph()
    while getattr(graph, "outer", None) is not None:
        graph = graph.outer
    return graph


def _key(var: Any) -> Any:
    var = container_of(var)
    return (var.primary if isinstance(var, DistributedValues) else var).op


def _flat(var_list: Any) -> list[Any]:
    out: list[Any] = []
    for v in nest.flatten(var_list):
        parts = getattr(v, "_variable_list", None)
        out.extend(parts if parts is not None else [v])
    return out


def _tensors(pairs: list[tuple[Any, Any]]) -> list[Any]:
    return [g for g, _ in pairs if isinstance(g, Tensor)]


__all__ = ["Optimizer", "deduplicate", "on_tape"]
