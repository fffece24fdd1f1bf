"""Who takes what in a graph, and how that is changed."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable
from opdock.ops.identity import identity
from opdock.ops.state import assign_add
from opdock.ops.switch import merge_op, switch_op

__all__ = [
    "Consumers", "batch_norm_groups", "chosen", "context_of", "endpoint_activation",
    "quantization_step", "reroute",
]  # fmt: skip

SKIPPED_PREFIXES: Final = (
    "gradients/", "RMSProp/", "Adagrad/", "Const_", "HistogramSummary", "ScalarSummary",
)  # fmt: skip
"""Names of ops that go back through the graph, or tell of it."""

_STEP: Final = "fake_quantization_step"
_BATCH_NORM: Final = re.compile(r"^(.*)BatchNorm/batchnorm")


class Consumers:
    """Which ops took each tensor of a graph when this was made.

    Args:
        graph: the graph; what is inserted later does not show.
    """

    def __init__(self, graph: Graph) -> None:
        self._found: dict[Tensor, dict[Operation, None]] = {}
        for op in graph.get_operations():
            if not op.name.startswith(SKIPPED_PREFIXES):
                for tensor in op.inputs:
                    self._found.setdefault(tensor, {})[op] = None

    def __call__(self, op: Operation) -> set[Operation]:
        """The ops that took a result of `op`."""
        return {user for tensor in op.outputs for user in self._found.get(tensor, ())}


def reroute(new: Tensor, old: Tensor, can_modify: Collection[Operation] | None = None) -> int:
    """Has those that take `old` take `new`; how many inputs changed.

    Args:
        new: what is taken from now on.
        old: what was taken.
        can_modify: the ops that may change; all without it.
    """
    changed = 0
    for user in list(dict.fromkeys(old.consumers())):
        if can_modify is not None and user not in can_modify:
            continue
        for index, tensor in enumerate(list(user.inputs)):
            if tensor is old:
                user._update_input(index, new)
                changed += 1
    return changed


def chosen(condition: Any, then: Tensor, otherwise: Tensor, name: str) -> Tensor:
    """One of two tensors, chosen in each step by the nodes that TensorFlow has there.

    What reads rewritten graphs, converters for one, looks for a Merge behind what is rounded, which
    no functional branch has.

    Args:
        condition: a bool scalar.
        then: what is taken where it holds.
        otherwise: what is taken else.
        name: the scope of the nodes.
    """
    with get_default_graph().name_scope(name):
        decided = identity(condition, name="pred_id")
        kept = switch_op(then, decided, name="Switch_1")[1]
        left = switch_op(otherwise, decided, name="Switch_2")[0]
        found: Tensor = merge_op([left, kept], name="Merge")[0]
    return found


def context_of(name: str) -> str:
    """The scope that a name stands in, "" if none."""
    return name.rpartition("/")[0]


def batch_norm_groups(graph: Graph) -> list[str]:
    """The scopes of batch normalizations that are made of several ops, each once."""
    found = (_BATCH_NORM.search(op.name) for op in graph.get_operations())
    scopes = dict.fromkeys(match.group(1) for match in found if match)
    return [scope for scope in scopes if not scope.startswith(SKIPPED_PREFIXES)]


def endpoint_activation(graph: Graph, prefix: str) -> Operation | None:
    """The activation that ends a layer, by its name."""
    for suffix in ("Relu6", "Relu", "Identity"):
        try:
            return graph.get_operation_by_name(prefix + suffix)
        except KeyError:
            continue
    return None


def quantization_step() -> Tensor:
    """How many steps the default graph has run since it was rewritten; one more in each."""
    graph = get_default_graph()
    try:
        found: Tensor = graph.get_tensor_by_name(f"{_STEP}/Identity:0")
        return found
    except KeyError:
        with graph.name_scope(None):
            step: Any = get_variable(
                _STEP, shape=[], dtype=dtypes.int64, initializer=zeros_initializer(),
                trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES],
            )  # fmt: skip
            with graph.name_scope(step.op.name + "/"):
                return identity(assign_add(step, 1))
