"""Whether an operation or a function does something that outlasts it."""

from __future__ import annotations

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.operation import Operation

__all__ = ["acts", "does_something"]


def acts(op: Operation) -> bool:
    """Whether an operation has an effect: on the world, or on a variable.

    Branches and loops have those of the functions that they may run.
    """
    inside = op.spec.traits.control.functions
    if inside:
        return any(does_something(op.attrs[name]) for name in inside)
    refs = {a.name for a in op.spec.definition.inputs if a.is_ref} if op.spec.takes_refs else set()
    return op.spec.has_effect or not refs.issubset(op.spec.traits.reads)


def does_something(function: FuncGraph) -> bool:
    """Whether an operation that a function runs has an effect."""
    return any(map(acts, function.needed()))
