"""`tf.vectorized_map`: a function of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.ops.composed.functional import map_fn
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
    # What the results look like is found out where nothing of it is kept.
    with FuncGraph("rows", get_default_graph()).as_default():
        trial = nest.map_structure(convert_to_tensor, fn(nest.map_structure(lambda t: t[0], elems)))
    types = nest.map_structure(lambda t: t.dtype.base_dtype, trial)
    return map_fn(lambda row: nest.map_structure(convert_to_tensor, fn(row)), elems, dtype=types)
