"""Datasets in models: what a function takes of one from outside is made anew where it is loaded."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.trackable_resources import CapturableResource

__all__ = ["VariantTracker", "keep_inputs"]


def keep_inputs(variant: Tensor) -> None:
    """Has what a dataset was just made of stay known where operations run as they are made."""
    op: Any = variant._op
    if op.graph.eager:
        op.tapes += 1  # As one that a tape keeps; the dataset holds these values anyway.


class VariantTracker(CapturableResource):
    """The variant of a dataset as a model has it: a resource that a function makes.

    Args:
        variant: the tensor.
    """

    def __init__(self, variant: Tensor) -> None:
        super().__init__(device="CPU")
        self._resource_handle = variant

    def _create_resource(self) -> Tensor:
        """Makes the dataset in the current graph of the nodes of which it is made.

        Raises:
            ValueError: it depends on a variable, a table or a placeholder, or on nodes that are
                not known any more.
        """
        return _copied(self._resource_handle, {})


def _copied(tensor: Tensor, made: dict[int, list[Tensor]]) -> Tensor:
    """A tensor in the current graph that is computed as one of another graph is.

    Args:
        tensor: that of the other graph.
        made: the results of operations that were copied already, by the numbers of the originals.
    """
    op: Any = tensor._op
    if id(op) not in made:
        value = None if tensor.dtype._is_handle else constant_value(tensor)
        if value is not None:
            return constant(value, tensor.dtype)
        inputs = list(op._inputs)
        wanted = len(op.spec.definition.inputs)
        if op.spec.traits.placeholder or _is_state(tensor) or (wanted and not inputs):
            raise ValueError(
                f"A dataset that a function captures depends on {op.name!r} (op {op.type}), which "
                "a SavedModel cannot hold as a part of it. Make the dataset of constants, and "
                "without variables and tables, or hand its elements to the function."
            )
        copies = [_copied(t, made) for t in inputs]
        graph = get_default_graph()
        name = graph.unique_name(op.name.rpartition("/")[2])
        types = [t.dtype for t in op.outputs]
        again = graph._create_op(op.spec, name, copies, dict(op.attrs), types)
        made[id(op)] = list(again.outputs)
    return made[id(op)][tensor._value_index]


def _is_state(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype is dtypes.resource or tensor.dtype._is_ref_dtype
