"""Parts of a model's graph as functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from opdock import shapes
from opdock.graph.control.function_op import DefinedGraph, behind, copy_operations
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["Part", "PartFunction"]

_numbers: Final[Iterator[int]] = itertools.count()


class Part:
    """What is between some tensors of a graph and others, as the body of a function.

    Args:
        graph: that graph.
        program: the graph in which the function is called.
        stands: variables of the program by the handles for which they stand.
        name: a part of the function's name.
        given, ends: the tensors; ends may be operations too.

    Raises:
        ValueError: the ends depend on a placeholder that is not given.
    """

    def __init__(
        self, graph: Graph, program: Graph, stands: Mapping[Tensor, ResourceVariable], name: str,
        given: Sequence[Any], ends: Any,
    ) -> None:  # fmt: skip
        self._graph, self._program, self._name = graph, program, name
        self._given = nest.flatten(list(given), expand_composites=True)
        self._ends = nest.flatten(ends, expand_composites=True)
        open_ends = [getattr(e, "op", e) for e in self._ends if e not in self._given]
        self._needed = behind(open_ends, set(self._given))
        for op in self._needed:
            if op.spec.traits.placeholder and op.outputs[0] not in self._given:
                raise ValueError(f"Unable to lift tensor: it depends on placeholder {op.name}.")
        self._variables = {h: v for h, v in stands.items() if h.op in self._needed}
        self._needed -= {handle.op for handle in self._variables}
        self._bodies: dict[tuple[Shape, ...], DefinedGraph] = {}
        self.body = self._copied([t.raw_shape for t in self._given])

    def captured(self) -> list[Tensor]:
        """What the body uses from outside."""
        return [outer for outer, _ in self.body.captures]

    def body_for(self, given: Sequence[Tensor]) -> DefinedGraph:
        """The body, or another if it says of an argument's shape what this one has not."""
        found = tuple(t.raw_shape for t in given)
        pairs = zip(found, self._given, strict=True)
        if all(shapes.is_compatible(shape, t.raw_shape) for shape, t in pairs):
            return self.body
        if found not in self._bodies:
            self._bodies[found] = self._copied(found)
        return self._bodies[found]

    def _copied(self, given: Sequence[Shape]) -> DefinedGraph:
        body = DefinedGraph(f"__inference_{self._name}_{next(_numbers)}", self._program)
        with body.as_default():
            values = {
                t: body.add_input(t.dtype, shape, t.op.name.rpartition("/")[2])
                for t, shape in zip(self._given, given, strict=True)
            }
            for handle, variable in self._variables.items():
                values[handle] = body._adopt(variable.handle)
            made = copy_operations(self._graph, self._needed, values)
            body.outputs = [values[e] for e in self._ends if isinstance(e, Tensor)]
            body.targets = [made[e] for e in self._ends if isinstance(e, Operation)]
        return body


class PartFunction(ConcreteFunction):
    """A function that takes tensors of other shapes than the model has, as TensorFlow's do."""

    def __init__(self, part: Part, signature: Any, results: Any) -> None:
        super().__init__(part.body.func_name, lambda: part.body, part.captured, signature, results)
        self._part = part

    def _body_for(self, given: Sequence[Tensor]) -> DefinedGraph:
        return self._part.body_for(given)
