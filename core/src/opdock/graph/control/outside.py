"""Whether a function has state that is not its own, and so is not saved with it."""

from __future__ import annotations

from opdock import dtypes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.operation import Operation

__all__ = ["state_outside"]


def state_outside(function: FuncGraph) -> str | None:
    """The type of an op with such state: of the function, or of one that it calls.

    Ops that draw random numbers have streams, which are saved. What only prints, makes a dataset or
    looks up what an initializer settled has nothing that could be missing.
    """
    for op in function.needed():
        inner = [f for f in op.attrs.values() if isinstance(f, FuncGraph)]
        for one in inner:
            found = state_outside(one)
            if found is not None:
                return found
        if not inner and _is_outside(op):
            return op.type
    return None


def _is_outside(op: Operation) -> bool:
    traits = op.spec.traits
    if traits.random or traits.settled:
        return False
    if not op.spec.stateful:
        return any(t.dtype._is_ref_dtype for t in op.inputs)
    touches = traits.foreign or traits.holds or traits.blocks
    handles = any(t.dtype.base_dtype is dtypes.resource for t in (*op.inputs, *op.outputs))
    return (touches or handles) and not _makes_dataset(op)


def _makes_dataset(op: Operation) -> bool:
    return op.spec.traits.effect is False and all(t.dtype is dtypes.variant for t in op.outputs)
