"""What a step comes to first whose shapes are known not to fit before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.compiler.ir.state import has_effect, written
from opdock.graph.nodes.graph import Graph

if TYPE_CHECKING:
    from opdock.runtime.cache.variants import Key
    from opdock.runtime.running import Runner

__all__ = ["as_it_runs"]


def as_it_runs(
    error: errors.OpError, engine: Runner, graph: Graph, values: Sequence[Any], key: Key
) -> errors.OpError:
    """The error of the step, for one of its compilation.

    Shape inference has found a node that what is fed, or what was folded, does not fit. TF would
    have come to the node, or to a check that it waits for, and those have words of their own. So
    what leads to the node runs as it was written, unless it would leave something behind.

    Args:
        error: of the compilation, with the operation at fault.
        engine: compiles and runs.
        graph: of the session.
        values: what was fed.
        key: the fed tensors, each followed by the shape of its value.
    """
    op = error.op
    if op is None or op.graph is not graph:
        return error
    feeds = [(t, t._dtype.base_dtype, t._shape) for t in key[::2]]
    try:
        runs = [] if op.outputs else [op]
        program = engine.compile(graph, op.outputs[:1], runs, feeds, as_written=True)
        if any(written(n) or (has_effect(n) and n.out_dtypes) for n in program.block.nodes):
            return error
        program.run(values)
    except errors.InternalError:
        # A kernel that has no words for it: shape inference has.
        return error
    except errors.OpError as e:
        return e
    return error
