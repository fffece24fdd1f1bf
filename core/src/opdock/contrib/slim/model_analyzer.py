"""How large the operations and variables of a graph are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from opdock.graph.nodes.graph import Graph

__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]

_LINE = "---------"


def tensor_description(var: Any) -> str:
    """The type and the shape of a tensor or variable, as "(float32 3x4)"."""
    return f"({var.dtype.name} {'x'.join(str(size) for size in var.get_shape())})"


def _tell(shown: bool, *parts: Any) -> None:
    if shown:
        sys.stdout.write(" ".join(str(part) for part in parts) + "\n")


def analyze_ops(graph: Graph, print_info: bool = False) -> int:
    """How many elements all operations' outputs have, as far as their shapes are known.

    Args:
        graph: the graph.
        print_info: whether each operation is printed.
    """
    for line in (_LINE, "Operations: name -> (type shapes) [size]", _LINE):
        _tell(print_info, line)
    total = 0
    for op in graph.get_operations():
        sizes = [output.get_shape().num_elements() or 0 for output in op.outputs]
        shapes = [tensor_description(output) for output in op.outputs if output.get_shape()]
        _tell(print_info, op.name, "\t->", ", ".join(shapes), f"[{sum(sizes)}]")
        total += sum(sizes)
    return total


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """How many elements and bytes variables have.

    Args:
        variables: the variables.
        print_info: whether each variable is printed.
    """
    for line in (_LINE, "Variables: name (type shape) [size]", _LINE):
        _tell(print_info, line)
    elements = size = 0
    for var in variables:
        own = var.get_shape().num_elements() or 0
        told = f"[{own}, bytes: {own * var.dtype.size}]"
        _tell(print_info, var.name, tensor_description(var), told)
        elements += own
        size += own * var.dtype.size
    _tell(print_info, f"Total size of variables: {elements}")
    _tell(print_info, f"Total bytes of variables: {size}")
    return elements, size
