"""Portable kernels of ragged tensors padded to tensors.

Where each element goes is worked out on the host; the elements stay on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.kernels import cells
from opdock.kernels.array_api import dims, invalid, taken
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("RaggedTensorToTensor", host_inputs=("shape", "row_partition_tensors"))
def to_tensor(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Each value at its place, the default where there is none; what is outside is dropped."""
    kinds = [str(kind) for kind in sig.attrs["row_partition_types"]]

    def run(shape: Array, values: Any, default: Any, *partitions: Array) -> Any:
        rows, levels = _levels(kinds, partitions)
        places = [np.arange(rows)]
        widths = [rows]
        for kind, partition in levels:
            parent, own = _children(kind, partition, len(places[0]))
            places = [*(p[parent] for p in places), own]
            widths.append(int(own.max(initial=-1)) + 1)
        if not len(values.shape) or values.shape[0] != len(places[0]):
            raise invalid(
                f"The partitions are of {len(places[0])} values, but values have shape "
                f"{dims(values.shape)}"
            )
        size = _size(shape, widths, tuple(values.shape))
        outer, inner = size[: len(widths)], size[len(widths) :]
        count = len(places[0])
        which = np.arange(count)
        if any(width > n for width, n in zip(widths, outer, strict=True)):
            which = np.flatnonzero(
                np.all([p < n for p, n in zip(places, outer, strict=True)], axis=0)
            )
            places = [p[which] for p in places]
        source = np.full(math.prod(outer), count)
        source[cells.combined(places, outer)] = which
        gap = xp.expand_dims(_broadcast(xp, default, tuple(values.shape), size, inner), axis=0)
        return xp.reshape(taken(xp, xp.concat([values, gap], axis=0), source), size)

    return run


def _levels(kinds: list[str], partitions: Sequence[Array]) -> tuple[int, list[tuple[str, Array]]]:
    """The number of rows, and what parts them, from the outside in."""
    pairs = list(zip(kinds, partitions, strict=True))
    if kinds[0] == "FIRST_DIM_SIZE":
        if int(partitions[0]) < 0:
            raise invalid(f"The number of rows is {int(partitions[0])}, below zero")
        return int(partitions[0]), pairs[1:]
    if kinds[0] != "ROW_SPLITS":
        raise invalid(f"Cannot handle type {kinds[0]}")
    return max(len(partitions[0]) - 1, 0), pairs


def _children(kind: str, partition: Array, parents: int) -> tuple[Array, Array]:
    """Of each element of a level: which row it is in, and at which place there."""
    if kind == "ROW_SPLITS":
        lengths = np.diff(partition).astype(np.int64)
        if len(lengths) != parents:
            raise invalid(f"There are {parents} rows, but splits of {len(lengths)}")
        if (lengths < 0).any() or partition[:1].any():
            raise invalid("Row splits must begin with 0 and be sorted in ascending order.")
        parent = np.repeat(np.arange(parents), lengths)
        return parent, np.arange(len(parent)) - np.repeat(partition[:-1].astype(np.int64), lengths)
    if kind == "VALUE_ROWIDS":
        wrong = np.flatnonzero((partition < 0) | (partition >= parents))
        if len(wrong):
            raise invalid(f"Row id {int(partition[wrong[0]])} is not in [0, {parents})")
        at = np.arange(len(partition))
        first = np.concatenate([[True], partition[1:] != partition[:-1]])[: len(partition)]
        return partition.astype(np.int64), at - np.maximum.accumulate(np.where(first, at, 0))
    raise invalid(f"Unsupported partition type:{kind}")


def _size(shape: Array, widths: list[int], values: tuple[int, ...]) -> tuple[int, ...]:
    found = (*widths, *values[1:])
    if np.ndim(shape) == 0:
        if int(shape) != -1:
            raise invalid(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return found
    wanted = [int(d) for d in shape]
    if len(wanted) != len(found):
        raise invalid(
            f"Value shape ({dims(values)}), ragged_rank({len(widths) - 1}) and shape("
            f"{dims(wanted)}) do not have a consistent number of dimensions"
        )
    for given, known in zip(wanted[len(widths) :], values[1:], strict=True):
        if given not in (-1, known):
            raise invalid("Value and shape dimension are inconsistent.")
    return tuple(n if d < 0 else d for d, n in zip(wanted, found, strict=True))


def _broadcast(
    xp: Any, default: Any, values: tuple[int, ...], size: tuple[int, ...], inner: tuple[int, ...]
) -> Any:
    """What stands in the place of a value that is missing."""
    given = tuple(default.shape)
    fits = len(given) < max(len(values), 1) and all(
        m in (1, n) for m, n in zip(reversed(given), reversed(inner), strict=False)
    )
    if not fits:
        raise invalid(
            f"Unable to broadcast default_value of shape {dims(given)} to tensor of shape "
            f"{dims(size)}"
        )
    return xp.broadcast_to(default, inner)
