"""Which inputs of a node mostly stay the same: constants, variables, what no turn changes.

A kernel does not see the graph; the pass notes on the node what it may rely on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opdock.plugin import GraphView, NodeSig, NodeView

__all__ = ["ATTR", "kept_of", "note_kept_inputs", "stays"]

ATTR: Final = "_opdock_cpu_kept"
"""The attribute that names the inputs whose arrays are replaced, never changed in place."""

_THROUGH: Final = frozenset({"Identity", "StopGradient", "PreventGradient"})
_SOURCES: Final = frozenset({"Const", "VariableV2", "Variable", "ReadVariableOp"})
_CONSUMERS: Final = frozenset({
    "Conv2D", "Conv3D", "Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
    "MatMul", "QuantizedConv2D", "QuantizedMatMul",
})  # fmt: skip


def kept_of(attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """The inputs that a node's attributes name."""
    return tuple(attrs.get(ATTR) or ())


def stays(sig: NodeSig, *inputs: int) -> bool:
    """Whether these inputs are constants, values of variables or the same in all turns."""
    kept = kept_of(sig.attrs)
    return all(i in kept or sig.const(i) is not None for i in inputs)


def note_kept_inputs(graph: GraphView) -> None:
    """Notes on convolutions and the like which of their inputs mostly stay the same."""
    for node in graph:
        if node.op in _CONSUMERS and node.backend == "cpu":
            kept = tuple(i for i, v in enumerate(node.inputs) if _is_kept(v.node))
            if kept:
                graph.annotate(node, **{ATTR: kept})


def _is_kept(node: NodeView) -> bool:
    while node.op in _THROUGH:
        node = node.inputs[0].node
    return node.op in _SOURCES or node.stays
