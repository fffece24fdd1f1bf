"""Side effects that are hooked into a tensor after its consumers were built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, device, name_scope
from opdock.util import nest

__all__ = ["is_subscribed", "subscribe"]

_SCOPE = "/subscription/"

# What waited for an op before any of its outputs was subscribed to: it waits for all their copies.
_Waiting = dict[Operation, list[Operation]]
_Effect = Callable[[Tensor], Any]


def subscribe(tensors: Any, side_effects: Any) -> Any:
    """Has side effects run wherever tensors are used from here on, by their old consumers too.

    Args:
        tensors: a tensor, a variable, or lists, tuples, named tuples and dicts of them.
        side_effects: a function of the tensor that gives a list of operations or tensors, or a
            list of such functions.

    Returns:
        Copies of the tensors that come after the side effects, in the same structure. A tensor
        that was subscribed to before keeps its copy, which then waits for the new ones as well.

    Raises:
        TypeError: there is something else among the tensors.
    """
    functions = list(side_effects) if hasattr(side_effects, "__iter__") else [side_effects]
    waiting: _Waiting = {}
    return nest.map_structure(lambda t: _subscribed(_tensor(t), functions, waiting), tensors)


def _tensor(value: Any) -> Tensor:
    from opdock.graph.variables.variable import Variable

    if isinstance(value, Variable):
        value = value.value()
    if not isinstance(value, Tensor):
        raise TypeError(
            f"subscribe: {value!r} has invalid type {type(value)}; a Tensor or a Variable is meant."
        )
    return value


def _subscribed(tensor: Tensor, side_effects: Sequence[_Effect], waiting: _Waiting) -> Tensor:
    if not tensor.dtype.is_numpy_compatible:
        return tensor
    with tensor.graph.as_default(), device(tensor.device):
        copy = tensor if is_subscribed(tensor) else _copy_of(tensor)
        if copy is None:
            return _hook(tensor, side_effects, waiting)
        effects = _effects(copy.op.inputs[0], side_effects)
        copy.op._add_control_inputs([getattr(effect, "op", effect) for effect in effects])
        return copy


def is_subscribed(tensor: Tensor) -> bool:
    """Whether a tensor is a copy that `subscribe` gave."""
    if tensor.op.type != "Identity":
        return False
    source = tensor.op.inputs[0].op.name
    return tensor.op.name.startswith(f"{source}{_SCOPE}Identity")


def _copy_of(tensor: Tensor) -> Tensor | None:
    for consumer in tensor.consumers():
        if consumer.type == "Identity" and is_subscribed(consumer.outputs[0]):
            return consumer.outputs[0]
    return None


def _effects(tensor: Tensor, side_effects: Sequence[_Effect]) -> list[Any]:
    with name_scope(f"{tensor.op.name}{_SCOPE}"):
        return [effect for function in side_effects for effect in function(tensor)]


def _hook(tensor: Tensor, side_effects: Sequence[_Effect], waiting: _Waiting) -> Tensor:
    """A copy behind the side effects, which all that read the tensor or waited for its op get."""
    from opdock.ops.identity import identity

    readers: list[tuple[Operation, int]] = [
        (reader, index)
        for reader in dict.fromkeys(tensor.consumers())
        for index, value in enumerate(reader.inputs)
        if value is tensor
    ]
    behind = waiting.setdefault(tensor.op, list(tensor.op._control_outputs))
    effects = _effects(tensor, side_effects)
    with name_scope(f"{tensor.op.name}{_SCOPE}"), control_dependencies(effects):
        copy = identity(tensor)
    for reader, index in readers:
        reader._update_input(index, copy)
    for op in behind:
        # Of an op with several outputs each copy is waited for, and the op itself by none.
        others = [before for before in op.control_inputs if before is not tensor.op]
        op._remove_all_control_inputs()
        op._add_control_inputs([*others, copy.op])
    return copy
