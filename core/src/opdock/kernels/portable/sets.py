"""Portable kernels of vectors as sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import (
    device_ints,
    dims,
    fails,
    index_type,
    ints,
    invalid,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def distinct(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """(values in order of first occurrence, index into them, count of each) of a vector."""
    found = xp.unique_all(x)
    order = xp.argsort(found.indices, stable=True)
    rank = xp.argsort(order, stable=True)
    inverse = xp.reshape(found.inverse_indices, (-1,))
    return (
        xp.take(found.values, order, axis=0),
        xp.take(rank, inverse, axis=0),
        xp.take(found.counts, order, axis=0),
    )


def check_vector(what: str, x: Any) -> None:
    """Raises InvalidArgumentError unless what some op is given is a vector."""
    if len(x.shape) != 1:
        raise invalid(f"{what} expects a 1D vector, got shape {dims(x.shape)}")


def check_lists(x: Any, y: Any) -> None:
    """Raises InvalidArgumentError unless the lists of a difference are vectors."""
    for name, value in (("x", x), ("y", y)):
        if len(value.shape) != 1:
            raise invalid(f"{name} should be a 1D vector, got shape {dims(value.shape)}")


def unique_axis(axis: Any, x: Any) -> int:
    """The dimension whose different slices are wanted.

    Raises:
        InvalidArgumentError: there is no such dimension, or there are several.
    """
    given, rank = ints(axis), len(x.shape)
    if len(given) > 1:
        raise invalid("axis expects a 1D vector of at most one element")
    if not given:
        check_vector("unique", x)
        return 0
    if not -rank <= given[0] < rank:
        raise invalid(f"axis expects to be in range [{-rank}, {rank}), got {given[0]}")
    return given[0] % rank


@portable("Unique", "UniqueWithCounts")
def unique(xp: Any, sig: NodeSig) -> Any:
    """The different values of a vector."""
    n, dtype = len(sig.out_dtypes), sig.out_dtypes[1].name

    def run(x: Any) -> Any:
        check_vector("unique", x)
        values, index, count = distinct(xp, x)
        element = getattr(xp, dtype)
        return (values, xp.astype(index, element), xp.astype(count, element))[:n]

    return run


@portable("UniqueV2", "UniqueWithCountsV2", host_inputs=("axis",))
def unique_v2(xp: Any, sig: NodeSig) -> Any:
    """The different slices along a dimension."""
    n, dtype = len(sig.out_dtypes), sig.out_dtypes[1].name

    def run(x: Any, axis: Any) -> Any:
        at, rank = unique_axis(axis, x), len(x.shape)
        element = getattr(xp, dtype)
        if rank == 1:
            values, index, count = distinct(xp, x)
        else:
            # Number the slices by their distinct values, then treat the numbers as the vector.
            rows = xp.reshape(xp.moveaxis(x, at, 0), (x.shape[at], -1))
            number = device_ints(xp, np.zeros(rows.shape[0], np.int64), x)
            for j in range(rows.shape[1]):
                code = xp.reshape(xp.unique_inverse(rows[:, j]).inverse_indices, (-1,))
                number = xp.unique_inverse(number * (rows.shape[0] + 1) + code).inverse_indices
                number = xp.reshape(xp.astype(number, index_type(xp)), (-1,))
            _, index, count = distinct(xp, number)
            first = xp.searchsorted(xp.sort(index), device_ints(xp, np.arange(count.shape[0]), x))
            order = xp.argsort(index, stable=True)
            values = xp.take(x, xp.take(order, first, axis=0), axis=at)
        return (values, xp.astype(index, element), xp.astype(count, element))[:n]

    return run


@portable("ListDiff", T=dtypes.REALS)
def list_diff(xp: Any, sig: NodeSig) -> Any:
    """The elements of `x` that are not in `y`, and where they are."""
    dtype = sig.out_dtypes[1].name

    def run(x: Any, y: Any) -> Any:
        check_lists(x, y)
        if y.shape[0] == 0:
            index = device_ints(xp, np.arange(x.shape[0]), x)
        else:
            ordered = xp.sort(y)
            place = xp.clip(xp.searchsorted(ordered, x), 0, y.shape[0] - 1)
            index = xp.nonzero(xp.take(ordered, place, axis=0) != x)[0]
        return xp.take(x, index, axis=0), xp.astype(index, getattr(xp, dtype))

    return run


@portable("InvertPermutation")
def invert_permutation(xp: Any, sig: NodeSig) -> Any:
    """The inverse of a permutation."""

    def run(x: Any) -> Any:
        check_vector("invert_permutation", x)
        n = x.shape[0]
        order = xp.argsort(x, stable=False)  # of a permutation there are no two alike
        wanted = xp.arange(n, dtype=x.dtype, device=getattr(x, "device", None))
        if n and fails(xp, xp.any(xp.take(x, order, axis=0) != wanted)):
            raise no_permutation([int(v) for v in x])
        return xp.astype(order, x.dtype)

    return run


def no_permutation(values: list[int]) -> Exception:
    """The error of numbers that are no permutation of those from 0 on."""
    for value in values:
        if not 0 <= value < len(values):
            return invalid(f"{value} is not between 0 and {len(values)}")
    return invalid(f"{max(values, key=values.count)} is duplicated in the input.")
