"""The portable kernel of arrays whose bits are read as another type's.

The array API has nothing of the kind. A namespace that can do it brings `bitcast(flat, dtype)`: a
vector's memory as a vector of another type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.dtypes import NUMBERS
from opdock.kernels.array_api import dtype_of, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def bitcast_shape(sig: NodeSig, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array of a node's `shape` whose bits are of another type.

    Raises:
        InvalidArgumentError: the last dimension makes no whole elements.
    """
    source, target = sig.in_dtypes[0], sig.out_dtypes[0]
    if source.size > target.size:
        return (*shape, source.size // target.size)
    if source.size == target.size:
        return shape
    if not shape or shape[-1] * source.size != target.size:
        raise invalid(
            f"Cannot bitcast {source.name}{list(shape)} to {target.name}: the last dimension must "
            f"be {target.size // source.size}"
        )
    return shape[:-1]


@portable("Bitcast", extension="bitcast", T=NUMBERS, type=NUMBERS, may_alias={0: 0})
def bitcast(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """The same bits as elements of another type."""
    element = dtype_of(xp, sig.out_dtypes[0])

    def run(x: Any) -> Any:
        shape = bitcast_shape(sig, tuple(x.shape))
        return xp.reshape(xp.bitcast(xp.reshape(x, (-1,)), element), shape)

    return run
