"""Portable kernels that split tensors by label and stitch them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.kernels.array_api import (
    device_ints,
    dims,
    fails,
    index_type,
    invalid,
    zeros,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.gather import not_in
from opdock.kernels.select.signature import NodeSig


def check_labelled(data: Any, partitions: Any) -> None:
    """Raises InvalidArgumentError unless there is a label for each slice of the data."""
    if tuple(data.shape[: len(partitions.shape)]) != tuple(partitions.shape):
        raise invalid(
            "data.shape must start with partitions.shape, got data.shape = "
            f"{dims(data.shape)}, partitions.shape = {dims(partitions.shape)}"
        )


@portable("DynamicPartition")
def dynamic_partition(xp: Any, sig: NodeSig) -> Any:
    """The slices of each label."""
    count = sig.attrs["num_partitions"]

    def run(data: Any, partitions: Any) -> Any:
        check_labelled(data, partitions)
        prefix = tuple(partitions.shape)
        labels = xp.reshape(partitions, (-1,))
        if math.prod(prefix) and fails(xp, (xp.min(labels) < 0) | (xp.max(labels) >= count)):
            host = np.asarray([int(i) for i in labels]).reshape(prefix)
            raise not_in(host, count, "partitions")
        rows = xp.reshape(data, (math.prod(prefix), *data.shape[len(prefix) :]))
        out = [xp.take(rows, xp.nonzero(labels == i)[0], axis=0) for i in range(count)]
        return out[0] if count == 1 else tuple(out)

    return run


def negative_place(at: int, value: int) -> Exception:
    """The error of a part of a stitch that has a place before the first."""
    return invalid(f"indices[{at}] holds {value}, which is out of range")


def last_of_each(xp: Any, flat: Any, size: int) -> tuple[Any, Any]:
    """For each position below `size`: the last place in `flat` that holds it, and whether any does.

    `flat` is not empty.
    """
    order = xp.argsort(flat, stable=True)
    ordered = xp.take(flat, order, axis=0)
    wanted = device_ints(xp, np.arange(size), flat)
    last = xp.searchsorted(ordered, wanted, side="right") - 1
    place = xp.clip(last, 0, None)
    present = (last >= 0) & (xp.take(ordered, place, axis=0) == wanted)
    return xp.take(order, place, axis=0), present


def check_parts(indices: Sequence[Any], data: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a row of what is stitched together.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    tail: tuple[int, ...] | None = None
    for i, (index, part) in enumerate(zip(indices, data, strict=True)):
        rank = len(index.shape)
        if tuple(part.shape[:rank]) != tuple(index.shape):
            raise invalid(
                f"data[{i}].shape = {dims(part.shape)} does not start with indices[{i}].shape = "
                f"{dims(index.shape)}"
            )
        rest = tuple(part.shape[rank:])
        if tail is not None and rest != tail:
            raise invalid(
                f"Need data[0].shape[{len(indices[0].shape)}:] = data[{i}].shape[{rank}:], got "
                f"{dims(tail)} and {dims(rest)}"
            )
        tail = rest
    return tail or ()


@portable("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(xp: Any, sig: NodeSig) -> Any:
    """Rows put where their indices say."""
    n, dtype = sig.attrs["N"], sig.out_dtypes[0]

    def run(*args: Any) -> Any:
        indices, data = args[:n], args[n:]
        tail = check_parts(indices, data)
        flat = xp.concat([xp.reshape(xp.astype(i, index_type(xp)), (-1,)) for i in indices])
        if flat.shape[0] == 0:
            return zeros(xp, (0, *tail), data[0], dtype)
        if fails(xp, xp.min(flat) < 0):
            raise invalid(f"indices[{int(xp.argmin(flat))}] = {int(xp.min(flat))} is out of range")
        size = int(xp.max(flat)) + 1
        rows = xp.concat(
            [xp.reshape(d, (math.prod(i.shape), *tail)) for i, d in zip(indices, data, strict=True)]
        )
        place, present = last_of_each(xp, flat, size)
        out = xp.take(rows, place, axis=0)
        if bool(xp.all(present)):
            return out
        mask = xp.reshape(present, (size, *[1] * len(tail)))
        return xp.where(mask, out, zeros(xp, (), out, dtype))

    return run
