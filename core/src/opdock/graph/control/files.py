"""Whether a function makes a dataset of the files that its argument names."""

from __future__ import annotations

from opdock.graph.control.func_graph import FuncGraph

__all__ = ["reads_files"]


def reads_files(function: FuncGraph) -> bool:
    """Whether an op of a function, or of one that it names, reads files by its first parameter."""
    name = function.inputs[0] if function.inputs else None
    for op in function.get_operations():
        if op.spec.traits.files and op.inputs and op.inputs[0] is name:
            return True
        if any(reads_files(f) for f in op.attrs.values() if isinstance(f, FuncGraph)):
            return True
    return False
