"""`tf.vectorized_map`: a function of each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.ops.array import shape
from opdock.ops.composed.functional import map_fn
from opdock.ops.fill import range
from opdock.ops.gather import gather
from opdock.util import nest

__all__ = ["vectorized_map"]


def vectorized_map(fn: Callable[[Any], Any], elems: Any) -> Any:
    """What `fn` gives for each row of `elems`, stacked.

    TF rewrites the function over whole batches; here a loop calls it, with the same results.

    Args:
        fn: a function of a row, or of a structure of rows like `elems`.
        elems: a tensor or a structure of tensors with equal first dimensions.

    Returns:
        The results, stacked along a new first dimension.
    """
    elems = nest.map_structure(convert_to_tensor, elems)
    first = nest.flatten(elems)[0]
    rows = shape(first)[0] if first.shape[0].value is None else first.shape[0].value

    def row(i: Any) -> Any:
        # Gathered by its number: a gradient taken in `fn` goes on from the row to the whole.
        return nest.map_structure(
            convert_to_tensor, fn(nest.map_structure(partial(gather, indices=i), elems))
        )

    # What the results look like is found out where nothing of it is kept.
    with FuncGraph("rows", get_default_graph()).as_default():
        types = nest.map_structure(lambda t: t.dtype.base_dtype, row(0))
    return map_fn(row, range(rows), dtype=types)
