"""Ragged tensors padded to tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]


@table.binder("RaggedTensorToTensor")
def to_tensor(sig: NodeSig) -> Callable[..., Array]:
    """Each value at its place, the default where there is none; what is outside is dropped."""
    kinds = [str(kind) for kind in sig.attrs["row_partition_types"]]

    def run(shape: Array, values: Array, default: Array, *partitions: Array) -> Array:
        rows, levels = _levels(kinds, partitions)
        places = [np.arange(rows)]
        widths = [rows]
        for kind, partition in levels:
            parent, own = _children(kind, partition, len(places[0]))
            places = [*(p[parent] for p in places), own]
            widths.append(int(own.max(initial=-1)) + 1)
        if not np.ndim(values) or len(values) != len(places[0]):
            raise checks.invalid(
                f"The partitions are of {len(places[0])} values, but values have shape "
                f"{checks.dims(np.shape(values))}"
            )
        size = _size(shape, widths, values.shape)
        out = np.empty(size, values.dtype)
        out[...] = _broadcast(default, values.shape, size)
        inside = np.all([p < n for p, n in zip(places, size, strict=False)], axis=0)
        out[tuple(p[inside] for p in places)] = values[inside]
        return out

    return run


def _levels(kinds: list[str], partitions: Sequence[Array]) -> tuple[int, list[tuple[str, Array]]]:
    """The number of rows, and what parts them, from the outside in."""
    pairs = list(zip(kinds, partitions, strict=True))
    if kinds[0] == "FIRST_DIM_SIZE":
        if int(partitions[0]) < 0:
            raise checks.invalid(f"The number of rows is {int(partitions[0])}, below zero")
        return int(partitions[0]), pairs[1:]
    if kinds[0] != "ROW_SPLITS":
        raise checks.invalid(f"Cannot handle type {kinds[0]}")
    return max(len(partitions[0]) - 1, 0), pairs


def _children(kind: str, partition: Array, parents: int) -> tuple[Array, Array]:
    """Of each element of a level: which row it is in, and at which place there."""
    if kind == "ROW_SPLITS":
        lengths = np.diff(partition).astype(np.int64)
        if len(lengths) != parents:
            raise checks.invalid(f"There are {parents} rows, but splits of {len(lengths)}")
        if (lengths < 0).any() or partition[:1].any():
            raise checks.invalid("Row splits must begin with 0 and be sorted in ascending order.")
        parent = np.repeat(np.arange(parents), lengths)
        return parent, np.arange(len(parent)) - np.repeat(partition[:-1].astype(np.int64), lengths)
    if kind == "VALUE_ROWIDS":
        wrong = np.flatnonzero((partition < 0) | (partition >= parents))
        if len(wrong):
            raise checks.invalid(f"Row id {int(partition[wrong[0]])} is not in [0, {parents})")
        at = np.arange(len(partition))
        first = np.concatenate([[True], partition[1:] != partition[:-1]])[: len(partition)]
        return partition.astype(np.int64), at - np.maximum.accumulate(np.where(first, at, 0))
    raise checks.invalid(f"Unsupported partition type:{kind}")


def _size(shape: Array, widths: list[int], values: tuple[int, ...]) -> tuple[int, ...]:
    found = (*widths, *values[1:])
    if np.ndim(shape) == 0:
        if int(shape) != -1:
            raise checks.invalid(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return found
    wanted = [int(d) for d in shape]
    if len(wanted) != len(found):
        raise checks.invalid(
            f"Value shape ({checks.dims(values)}), ragged_rank({len(widths) - 1}) and shape("
            f"{checks.dims(wanted)}) do not have a consistent number of dimensions"
        )
    for given, known in zip(wanted[len(widths) :], values[1:], strict=True):
        if given not in (-1, known):
            raise checks.invalid("Value and shape dimension are inconsistent.")
    return tuple(n if d < 0 else d for d, n in zip(wanted, found, strict=True))


def _broadcast(default: Array, values: tuple[int, ...], size: tuple[int, ...]) -> Array:
    given = np.shape(default)
    try:
        if len(given) >= max(len(values), 1):
            raise ValueError
        return np.broadcast_to(np.asarray(default), size)
    except ValueError:
        raise checks.invalid(
            f"Unable to broadcast default_value of shape {checks.dims(given)} to tensor of shape "
            f"{checks.dims(size)}"
        ) from None
