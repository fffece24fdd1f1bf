"""Updates of entries that are chosen for each member of a batch."""

from __future__ import annotations

import builtins
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.variable_scatter import scatter_nd_update
from opdock.ops.fill import ones_like, range
from opdock.ops.joining import concat

__all__ = ["batch_scatter_update"]


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Writes slices of a variable, chosen by the last dimension of `indices` for each member.

    Args:
        ref: a variable [batch..., n, ...].
        indices: integers [batch..., k] below n.
        updates: values [batch..., k, ...].
        use_locking: accepted for TF's signature.
        name: a name for the operations.

    Returns:
        The variable, updated.

    Raises:
        ValueError: the number of dimensions of `indices` is not known.
    """
    with name_scope(name, "batch_scatter_update", [ref, indices, updates]):
        indices = convert_to_tensor(indices, name="indices")
        rank = indices.shape.ndims
        if rank is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        last, sizes = expand_dims(indices, axis=-1), shape(indices)
        places = []
        for axis in builtins.range(rank - 1):
            along = [1] * (rank + 1)
            along[axis] = -1
            own = reshape(cast(range(sizes[axis]), last.dtype), along)
            places.append(own * ones_like(last))
        where = concat([*places, last], axis=-1)
        return scatter_nd_update(ref, where, updates, use_locking=use_locking)
