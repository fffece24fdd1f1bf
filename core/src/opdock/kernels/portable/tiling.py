"""Portable kernels that rearrange tensors along their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import axes
from opdock.kernels.array_api import copy, ints, invalid, put
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def multiples_of(multiples: Any, rank: int) -> list[int]:
    """How often each dimension is repeated.

    Raises:
        InvalidArgumentError: there is not one number a dimension, or one is negative.
    """
    counts = ints(multiples)
    if len(counts) != rank:
        raise invalid(
            f"Expected multiples argument to be a vector of length {rank} but got length "
            f"{len(counts)}"
        )
    for i, count in enumerate(counts):
        if count < 0:
            raise invalid(f"Expected multiples[{i}] >= 0, but got {count}")
    return counts


@portable("Tile", host_inputs=("multiples",))
def tile(xp: Any, sig: NodeSig) -> Any:
    """The input repeated as a whole."""

    def run(tensor: Any, multiples: Any) -> Any:
        counts = multiples_of(multiples, len(tensor.shape))
        # Repeating is broadcasting over a new dimension before each old one.
        old = [n for d in tensor.shape for n in (1, d)]
        new = [n for c, d in zip(counts, tensor.shape, strict=True) for n in (c, d)]
        wide = copy(xp, xp.broadcast_to(xp.reshape(tensor, tuple(old)), tuple(new)))
        return xp.reshape(wide, tuple(c * d for c, d in zip(counts, tensor.shape, strict=True)))

    return run


@portable("ReverseV2", host_inputs=("axis",))
def reverse_v2(xp: Any, sig: NodeSig) -> Any:
    """The input backwards along some dimensions."""

    def run(tensor: Any, axis: Any) -> Any:
        chosen = axes.reversed_(axis, len(tensor.shape))
        return copy(xp, xp.flip(tensor, axis=chosen) if chosen else tensor)

    return run


@portable("Reverse", host_inputs=("dims",))
def reverse(xp: Any, sig: NodeSig) -> Any:
    """The input backwards along the dimensions that are marked."""

    def run(tensor: Any, marks: Any) -> Any:
        chosen = tuple(i for i, m in enumerate(np.asarray(marks)) if m)
        return copy(xp, xp.flip(tensor, axis=chosen) if chosen else tensor)

    return run


@portable("ReverseSequence", host_inputs=("seq_lengths",))
def reverse_sequence(xp: Any, sig: NodeSig) -> Any:
    """The first elements of each sequence backwards."""
    along, batch = sig.attrs["seq_dim"], sig.attrs["batch_dim"]

    def run(tensor: Any, seq_lengths: Any) -> Any:
        lengths = ints(seq_lengths)
        check_sequences(tensor.shape, lengths, along, batch)
        out = copy(xp, tensor)
        for i, n in enumerate(lengths):
            where: list[Any] = [slice(None)] * len(tensor.shape)
            where[batch], where[along] = slice(i, i + 1), slice(0, n)
            out = put(xp, out, tuple(where), xp.flip(tensor[tuple(where)], axis=along))
        return out

    return run


@portable("Roll", host_inputs=("shift", "axis"))
def roll(xp: Any, sig: NodeSig) -> Any:
    """The input shifted around."""

    def run(tensor: Any, shift: Any, axis: Any) -> Any:
        out = tensor
        for a, s in axes.rolled(shift, axis, len(tensor.shape)).items():
            n = tensor.shape[a]
            if n and s % n:
                front = (slice(None),) * a
                last, first = ((*front, p, ...) for p in (slice(-s % n, n), slice(0, -s % n)))
                out = xp.concat([out[last], out[first]], axis=a)
        return copy(xp, out) if out is tensor else out

    return run


def check_sequences(shape: Sequence[int], lengths: Sequence[int], along: int, batch: int) -> None:
    """Raises InvalidArgumentError unless there is a length for each sequence that it fits."""
    if along == batch:
        raise invalid(f"batch_dim == seq_dim == {along}")
    if len(lengths) != shape[batch]:
        raise invalid(
            f"Length of seq_lengths != input.dims({batch}), ({len(lengths)} vs. {shape[batch]})"
        )
    for i, n in enumerate(lengths):
        if not 0 <= n <= shape[along]:
            raise invalid(f"seq_lens({i}) < 0 or > input.dims({along}): {n}")
