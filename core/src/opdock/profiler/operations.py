"""The nodes of a graph as a profile counts them, those of branches and loops included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opdock import shapes
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation
from opdock.shapes import Shape, TensorShape

__all__ = ["MeasuredGraph", "measured_shapes", "operations", "sources"]


def operations(graph: Graph) -> Iterator[Operation]:
    """All operations, and where one has functions for branches or a body, those of the functions.

    What stands for an argument of a function is none: TensorFlow's first control flow, by whose
    graphs programs know what to expect, has no such nodes.
    """
    for op in graph.get_operations():
        yield op
        for inner in _functions(op):
            yield from (each for each in operations(inner) if not each.spec.traits.placeholder)


def _functions(op: Operation) -> list[Any]:
    found = (op.attrs.get(name) for name in op.spec.traits.control.functions)
    return [each for each in found if isinstance(each, Graph)]


def sources(op: Operation) -> list[tuple[str, int]]:
    """What an operation is made from, by node and number: inputs, and results of its functions.

    Nodes that it only waits for are among them, as the first output of each.
    """
    tensors = [*op.inputs, *(out for inner in _functions(op) for out in inner.outputs)]
    return [(t.op.name, t.value_index) for t in tensors] + [
        (waited.name, 0) for waited in op.control_inputs
    ]


def measured_shapes(graph: Graph, run_meta: Any) -> dict[str, Shape]:
    """The shapes that outputs had in a step, by the tensors' names, where not all was known."""
    found: dict[str, Shape] = {}
    by_name = {op.name: op for op in operations(graph)}
    for device in run_meta.step_stats.dev_stats:
        for record in device.node_stats:
            op = by_name.get(record.node_name)
            if op is None or len(op.outputs) != len(record.output):
                continue
            for tensor, output in zip(op.outputs, record.output, strict=True):
                measured = tuple(dim.size for dim in output.tensor_description.shape.dim)
                known = tensor.raw_shape
                if not shapes.is_fully_defined(known) and shapes.is_compatible(known, measured):
                    found[tensor.name] = measured
    return found


class _MeasuredTensor:
    """A tensor whose static shape is what a step has shown."""

    def __init__(self, tensor: Any, shape: Shape) -> None:
        self._tensor, self._measured = tensor, shape

    def get_shape(self) -> TensorShape:
        """The shape in that step."""
        return TensorShape(self._measured)

    shape = property(get_shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


class MeasuredGraph:
    """A graph for those who count, with the shapes of a step where it does not know them itself.

    The user's graph is left alone: its next step may have other shapes.
    """

    def __init__(self, graph: Graph, measured: Mapping[str, Shape]) -> None:
        self._graph, self._shapes = graph, measured

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor of that name."""
        tensor = self._graph.get_tensor_by_name(name)
        shape = self._shapes.get(name)
        return tensor if shape is None else _MeasuredTensor(tensor, shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)
