"""The base of optimizers that are told their state, and that keep none for a step themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opdock import dtypes
from opdock.autodiff.custom import used_variables
from opdock.autodiff.gradients import gradients
from opdock.contrib.optimizer_v2.state import OptimizerState
from opdock.distribute.context import get_strategy
from opdock.distribute.modes import has_strategy
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import executing_eagerly, name_scope
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.ops import control
from opdock.train.optimizer import Optimizer, deduplicate, on_tape
from opdock.train.replicated import apply_on_replicas, distributed_apply
from opdock.util import nest

__all__ = ["OptimizerV2"]


class _Told:
    """The methods that differ from those of `tf.train`'s optimizers, in what they are told.

    A subclass of `OptimizerV2` overrides those that are about updates; `state` is the
    `OptimizerState` of the step.
    """

    if TYPE_CHECKING:

        def apply_gradients(
            self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
        ) -> Any:
            """See `OptimizerV2`."""

        def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None: ...

    def _create_vars(self, var_list: Sequence[Any], state: OptimizerState) -> None:
        """Makes the slots of variables, and the optimizer's own variables."""

    def _prepare(self, state: OptimizerState) -> None:
        """Makes what all updates of a step share, beyond the hyper-parameters."""

    def _apply_dense(self, grad: Any, var: Any, state: OptimizerState) -> Any:
        """The operation that updates a reference variable."""
        raise NotImplementedError

    def _resource_apply_dense(self, grad: Any, var: Any, state: OptimizerState) -> Any:
        """The operation that updates a resource variable."""
        raise NotImplementedError

    def _apply_sparse(self, grad: IndexedSlices, var: Any, state: OptimizerState) -> Any:
        """The operation that updates rows of a reference variable, each named once."""
        raise NotImplementedError

    def _resource_apply_sparse(
        self, grad: Any, var: Any, indices: Any, state: OptimizerState
    ) -> Any:
        """The operation that updates rows of a resource variable, each named once."""
        raise NotImplementedError

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Any, state: OptimizerState
    ) -> Any:
        """As `_apply_sparse`, where rows may be named more than once."""
        values, indices = deduplicate(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var, state)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, var: Any, indices: Any, state: OptimizerState
    ) -> Any:
        """As `_resource_apply_sparse`, where rows may be named more than once."""
        values, unique = deduplicate(grad, indices)
        return self._resource_apply_sparse(values, var, unique, state)

    def _finish(self, state: OptimizerState) -> Any:
        """An operation after all updates, or None."""
        return None

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP, aggregation_method: int | None = None,
        name: str | None = None, grad_loss: Any = None, stop_gradients: Any = None,
        scale_loss_by_num_replicas: bool = False,
    ) -> Any:  # fmt: skip
        """An operation that updates the variables so that `loss` falls.

        Args:
            loss: the tensor to minimize, or a function that makes it.
            global_step: a variable to increment afterwards.
            var_list: the variables; all trainable ones by default.
            gate_gradients: how far gradients wait for each other.
            aggregation_method: how gradients of one tensor are added.
            name: the operation's name.
            grad_loss: the gradient of the loss itself.
            stop_gradients: tensors through which no gradient goes.
            scale_loss_by_num_replicas: whether the loss is divided by the number of replicas.

        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = self.compute_gradients(
            loss, var_list=var_list, gate_gradients=gate_gradients,
            aggregation_method=aggregation_method, grad_loss=grad_loss,
            stop_gradients=stop_gradients, scale_loss_by_num_replicas=scale_loss_by_num_replicas,
        )  # fmt: skip
        if not any(g is not None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable: nothing that has a gradient leads from "
                f"the variables {[str(v) for _, v in pairs]} to the loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None, grad_loss: Any = None, stop_gradients: Any = None,
        scale_loss_by_num_replicas: bool = False,
    ) -> list[tuple[Any, Any]]:  # fmt: skip
        """The gradients of `loss` as (gradient or None, variable) pairs.

        Args:
            loss: the tensor to minimize, or a function that makes it: by default its variables are
                the trainable ones that the result depends on.
            var_list, gate_gradients, aggregation_method, grad_loss, stop_gradients,
                scale_loss_by_num_replicas: see `minimize`.

        Raises:
            ValueError: there is no variable, or `gate_gradients` is unknown.
            TypeError: `var_list` holds something that is no variable.
        """
        gates = (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH)
        if gate_gradients not in gates:
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH. Not {gate_gradients}"
            )

        def scaled(value: Any) -> Any:
            replicas = get_strategy().num_replicas_in_sync if scale_loss_by_num_replicas else 1
            return value * (1.0 / replicas) if replicas > 1 else value

        if executing_eagerly():
            return on_tape(loss, var_list, grad_loss, scaled)
        made = callable(loss)
        loss = scaled(loss() if made else loss)
        graph = get_default_graph()
        if var_list is not None:
            variables = nest.flatten(var_list)
        elif made:
            variables = used_variables(graph, [loss], [])
        else:
            resources = graph.get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
            variables = trainable_variables() + resources
        if not variables:
            raise ValueError("No variables to optimize.")
        for v in variables:
            if not isinstance(v, (Variable, Tensor)):
                raise TypeError(f"Argument is not a tf.Variable: {v}")
        self._assert_valid_dtypes([loss] if grad_loss is None else [loss, grad_loss])
        found = gradients(
            loss, variables, grad_ys=grad_loss, aggregation_method=aggregation_method,
            gate_gradients=gate_gradients == Optimizer.GATE_OP, stop_gradients=stop_gradients,
        )  # fmt: skip
        if gate_gradients == Optimizer.GATE_GRAPH:
            found = control.tuple(found)
        pairs = list(zip(found, variables, strict=True))
        self._assert_valid_dtypes(
            [v for g, v in pairs if g is not None and v.dtype.base_dtype is not dtypes.resource]
        )
        return pairs


# An Optimizer when it runs, but none to type checkers: TF's methods take the state as well.
_Optimizer: Any = Optimizer


class OptimizerV2(_Told, _Optimizer):  # type: ignore[misc] # see above
    """Base class. A subclass says how one gradient updates one variable, told the state for it.

    An optimizer holds no tensor of a graph, so it may serve several. Its subclasses name their
    hyper-parameters by `_set_hyper`: numbers, tensors, or functions that are called once for each
    call of `apply_gradients`. They make their variables in `_create_vars`.

    Args:
        use_locking: whether concurrent updates of a variable exclude each other.
        name: the default name of the operations.

    Raises:
        ValueError: the name is empty.
        RuntimeError: the class overrides `_create_slots`, which nobody would call.
    """

    def __init__(self, use_locking: bool, name: str) -> None:
        if type(self)._create_slots is not OptimizerV2._create_slots:
            raise RuntimeError(
                "Override _create_vars instead of _create_slots when descending from OptimizerV2 "
                f"(class {type(self).__name__})"
            )
        super().__init__(use_locking, name)
        self._given: dict[str, Any] = {}

    def _set_hyper(self, name: str, value: Any) -> None:
        """Gives a hyper-parameter its value: a number, a tensor, or a function of no arguments."""
        self._given[name] = value

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """An operation that applies gradients as `compute_gradients` gives them.

        Raises:
            ValueError: there is no pair, or none has a gradient.
            TypeError: a gradient or variable is not one.
        """
        if has_strategy():
            return apply_on_replicas(self, grads_and_vars, global_step, name)
        with name_scope(name, self._name) as scope:
            state = OptimizerState(self, self._given)
        return state.apply_gradients(grads_and_vars, global_step=global_step, name=scope)

    def _distributed_apply(
        self, distribution: Any, grads_and_vars: Any, global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        with name_scope(name, self._name) as scope:
            state = OptimizerState(self, self._given)
        return distributed_apply(state, distribution, grads_and_vars, global_step, scope)
