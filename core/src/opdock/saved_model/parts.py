"""Parts of a model's graph as bodies of functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from opdock.graph.control.function_op import DefinedGraph, behind, copy_operations
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.ops.composed.tracing import UnliftableError
from opdock.util import nest

__all__ = ["part"]

_numbers: Final[Iterator[int]] = itertools.count()


def part(
    graph: Graph, program: Graph, stands: Mapping[Tensor, ResourceVariable], name: str,
    given: Sequence[Any], ends: Any,
) -> DefinedGraph:  # fmt: skip
    """What is between some tensors of a graph and others, copied as the body of a function.

    Args:
        graph: that graph.
        program: the graph in which the function is called.
        stands: variables of the program by the handles for which they stand.
        name: a part of the function's name.
        given, ends: the tensors; ends may be operations too.

    Raises:
        UnliftableError: the ends depend on a placeholder that is not given.
    """
    fed = nest.flatten(list(given), expand_composites=True)
    flat = nest.flatten(ends, expand_composites=True)
    body = DefinedGraph(f"__inference_{name}_{next(_numbers)}", program)
    with body.as_default():
        values = {t: body.add_input(t.dtype, t.raw_shape, t.op.name) for t in fed}
        needed = behind([getattr(e, "op", e) for e in flat if e not in values], values)
        for op in needed:
            if op.spec.traits.placeholder and op.outputs[0] not in values:
                raise UnliftableError(
                    f"Unable to lift tensor: it depends on placeholder {op.name}."
                )
        for handle, variable in stands.items():
            if handle.op in needed:
                needed.discard(handle.op)
                values[handle] = body._adopt(variable.handle)
        made = copy_operations(graph, needed, values)
        body.outputs = [values[e] for e in flat if isinstance(e, Tensor)]
        body.targets = [made[e] for e in flat if isinstance(e, Operation)]
    return body
