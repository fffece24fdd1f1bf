"""How many floating-point operations the convolutions and products of a graph take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.importer import import_graph_def
from opdock.ops.identity import placeholder

__all__ = ["count_flops"]

_CONVOLUTIONS: Final = ("Conv2D", "DepthwiseConv2dNative", "QuantizedConv2D")
_PRODUCTS: Final = ("MatMul", "QuantizedMatMul")


def count_flops(graph: Graph, fed: Mapping[Tensor, tuple[int, ...]]) -> int:
    """Multiplications and additions of Conv2D, DepthwiseConv2dNative and MatMul, also quantized.

    Args:
        graph: what is run.
        fed: the shapes of what is fed, from which those of other tensors follow. Ops whose shape
            remains unknown are not counted.
    """
    with Graph().as_default() as shaped:
        inputs = {t.name: placeholder(t.dtype.base_dtype, shape) for t, shape in fed.items()}
        import_graph_def(graph.as_graph_def(), input_map=inputs, name="")
    return sum(2 * _multiplications(op) for op in shaped.get_operations())


def _multiplications(op: Operation) -> int:
    if op.type not in (*_CONVOLUTIONS, *_PRODUCTS):
        return 0
    known = [t.raw_shape for t in (op.outputs[0], *op.inputs[:2])]
    if any(shape is None or None in shape for shape in known):
        return 0
    out, left, weights = ([size or 0 for size in shape or ()] for shape in known)
    if op.type in _PRODUCTS:
        terms = left[0] if op.attrs["transpose_a"] else left[1]
    else:
        terms = weights[0] * weights[1] * (1 if op.type.startswith("Depth") else weights[2])
    return math.prod(out) * terms
