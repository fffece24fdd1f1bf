"""Portable kernels that make a tensor of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import axes
from opdock.kernels.array_api import copy, dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("ConcatV2", host_inputs=("axis",))
def concat_v2(xp: Any, sig: NodeSig) -> Any:
    """The inputs one after the other."""

    def run(*args: Any) -> Any:
        values, axis = args[:-1], args[-1]
        return xp.concat(values, axis=axes.joined(values, axis))

    return run


@portable("Concat", host_inputs=("concat_dim",))
def concat(xp: Any, sig: NodeSig) -> Any:
    """The inputs one after the other."""

    def run(axis: Any, *values: Any) -> Any:
        return xp.concat(values, axis=axes.joined(values, axis))

    return run


@portable("ParallelConcat")
def parallel_concat(xp: Any, sig: NodeSig) -> Any:
    """The inputs one after the other, along the first dimension."""
    return lambda *values: xp.concat(values, axis=0) if len(values) > 1 else copy(xp, values[0])


@portable("ConcatOffset", host_inputs=("concat_dim", "shape"), host_outputs=("offset",))
def concat_offset(xp: Any, sig: NodeSig) -> Any:
    """Where each input starts in the concatenation."""

    def run(concat_dim: Any, *shapes: Any) -> Any:
        if len(np.shape(concat_dim)):
            raise invalid(
                "Concat dim tensor should be a scalar integer, but got shape "
                f"{dims(np.shape(concat_dim))}"
            )
        for i, shape in enumerate(map(np.shape, shapes)):
            if len(shape) != 1:
                raise invalid(f"input {i} should be a vector, but got shape {dims(shape)}")
        rank = len(ints(shapes[0]))
        (axis,) = ints(concat_dim)
        if not -rank <= axis < rank:
            raise invalid(f"Concat dim is out of range: {axis} vs. {rank}")
        first, start, out = ints(shapes[0]), 0, []
        for i, shape in enumerate(shapes):
            sizes = ints(shape)
            if len(sizes) != rank:
                raise invalid(f"input {i} should contain {rank} elements, but got {len(sizes)}")
            if any(a != b for j, (a, b) in enumerate(zip(first, sizes)) if j != axis % rank):
                given = (" ".join(map(str, s)) for s in (sizes, first))
                raise invalid(
                    f"All dimensions except {axis % rank} must match. Input {i} has shape "
                    "[{}] and doesn't match input 0 with shape [{}].".format(*given)
                )
            offset = np.zeros(rank, np.int32)
            offset[axis] = start
            start += sizes[axis]
            out.append(offset)
        return tuple(out)

    return run


@portable("Pack")
def pack(xp: Any, sig: NodeSig) -> Any:
    """The inputs along a new dimension."""
    axis = sig.attrs["axis"]

    def run(*values: Any) -> Any:
        check_alike(values)
        return xp.stack(values, axis=axis)

    return run


def check_alike(values: Any) -> None:
    """Raises InvalidArgumentError unless all of `values` have the shape of the first."""
    first = tuple(values[0].shape)
    for i, value in enumerate(values):
        if tuple(value.shape) != first:
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {dims(first)} != "
                f"values[{i}].shape = {dims(value.shape)}"
            )
