"""What an optimizer does where a strategy is in scope: one update of what all replicas found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opdock.distribute.modes import strategy_in_scope
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.values import DistributedValues
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import internal_convert_to_tensor_or_indexed_slices
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, init_scope, name_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opdock.train.optimizer import Optimizer

__all__ = ["apply_on_replicas", "container_of", "own_copy", "scaled_loss"]


def container_of(variable: Any) -> Any:
    """The variable with a copy on each device of which a variable is a copy, or itself."""
    reference = getattr(variable, "_distributed_container", None)
    return variable if reference is None else reference()


def own_copy(variable: Any, device: str | None = None) -> Any:
    """The copy on a device, or that of the update that is being built; or the variable itself."""
    return variable.get(device) if isinstance(variable, DistributedValues) else variable


def scaled_loss(loss: Any) -> Any:
    """A replica's part of a loss that is the mean over what all replicas read."""
    strategy = strategy_in_scope()
    if strategy is None or strategy.num_replicas_in_sync == 1:
        return loss
    from opdock.distribute.context import get_loss_reduction

    if get_loss_reduction() is ReduceOp.SUM:
        return loss
    return loss * (1.0 / strategy.num_replicas_in_sync)


def apply_on_replicas(
    optimizer: Optimizer, grads_and_vars: Any, global_step: Any, name: str | None
) -> Any:
    """The operation that applies the sum of what all replicas found; each replica calls this.

    Raises:
        RuntimeError: the program is across replicas.
        ValueError: there is no pair, or none has a gradient.
    """
    from opdock.distribute.context import get_replica_context

    replica = get_replica_context()
    if replica is None:
        raise RuntimeError(
            "Use `_distributed_apply()` instead of `apply_gradients()` in a cross-replica context."
        )
    given = [(g, v) for g, v in grads_and_vars]
    if not given:
        raise ValueError("No variables provided.")
    pairs = [(g, v) for g, v in given if g is not None]
    if not pairs:
        raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in given]}.")
    return replica.merge_call(optimizer._distributed_apply, args=(pairs, global_step, name))


def distributed_apply(
    optimizer: Optimizer, strategy: Any, pairs: Sequence[tuple[Any, Any]], global_step: Any,
    name: str | None,
) -> Any:  # fmt: skip
    """The operation that applies gradients of all replicas, which are added first.

    Args:
        optimizer: the optimizer.
        strategy: the strategy, across whose replicas the program is.
        pairs: gradients, as values of replicas, and variables.
        global_step: a variable to increment afterwards.
        name: the operation's name.
    """
    extended = strategy.extended
    sums = extended.batch_reduce_to(ReduceOp.SUM, pairs)
    variables = [v for _, v in pairs]
    with init_scope():
        optimizer._create_slots(variables)

    def update(variable: Any, grad: Any) -> Any:
        grad = internal_convert_to_tensor_or_indexed_slices(grad)
        with name_scope(f"update_{variable.op.name}"):
            return optimizer._update(grad, variable)

    with name_scope(name, optimizer._name) as scope:
        optimizer._prepare()
        updates = [
            op
            for grad, variable in zip(sums, variables, strict=True)
            for op in extended.update(variable, update, args=(grad,), group=False)
        ]
        finished = extended.update_non_slot(
            extended.non_slot_devices(variables), lambda: optimizer._finish(updates, "update"),
            group=False,
        )  # fmt: skip
        if global_step is None:
            done = strategy.group(finished, name=scope)
        else:
            with control_dependencies(list(finished)):
                done = extended.update(
                    global_step, lambda step, **kw: step.assign_add(1, read_value=False, **kw),
                    kwargs={"name": scope},
                )  # fmt: skip
        done = own_copy(done)
        if isinstance(done, Tensor):
            done = done.op
        train_ops = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
        if done not in train_ops:
            train_ops.append(done)
        return done
