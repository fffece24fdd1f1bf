"""Tiles into planned buffers, reversals of whole pixels and of sequences; rolls are portable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_cpu.jit.looped import Looped
from opdock_cpu.jit.mirrors import LEAST, mirrored
from opdock_cpu.portable import portable_kernel
from opdock_cpu.spreading import spread

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_COLORS: Final = 3
_WORDS: Final = (1, 2, 4, 8, 16)
"""Bytes that NumPy moves at once."""


@table.binder("Tile", out=True, host_inputs=("multiples",))
def tile(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated as a whole."""
    dtype = sig.out_dtypes[0].np
    const, source = sig.const(1), sig.in_shapes[0]
    plan: Any = None
    if const is not None and source is not None and None not in source:
        plan = _plan(source, const)

    def run(tensor: Any, multiples: Any, out: Array | None) -> Array:
        shape, old, new = _plan(np.shape(tensor), multiples) if plan is None else plan
        if out is None:
            out = np.empty(shape, dtype)
        # Repeating is broadcasting over a new dimension before each old one.
        spread(out.reshape(new), tensor.reshape(old))
        return out

    return run


def _plan(source: Any, multiples: Any) -> tuple[list[int], list[int], list[int]]:
    """The result's shape, and the shapes in which input and result broadcast."""
    pairs = list(zip(checks.multiples_of(multiples, len(source)), source, strict=True))
    return (
        [c * d for c, d in pairs],
        [n for _, d in pairs for n in (1, d)],
        [n for c, d in pairs for n in (c, d)],
    )


@table.binder("ReverseV2", out=True, host_inputs=("axis",))
def reverse_v2(sig: NodeSig) -> Callable[..., Array]:
    """The input backwards along some dimensions."""

    def run(tensor: Array, axis: Array, out: Array | None) -> Array:
        chosen = axes.reversed_(axis, np.ndim(tensor))
        if not chosen or tensor.nbytes < LEAST:
            return _put(_reversed(tensor, chosen), out)
        room = np.empty(tensor.shape, tensor.dtype) if out is None else out
        last = max(chosen)
        others = tuple([a for a in chosen if a != last])
        if mirrored(np.flip(tensor, others) if others else tensor, last, room):
            return room
        return _put(_reversed(tensor, chosen), out)

    return run


def _put(found: Array, out: Array | None) -> Array:
    if out is None:
        return found
    np.copyto(out, found)
    return out


def _reversed(tensor: Array, chosen: tuple[int, ...]) -> Array:
    """A copy in which what stands together after the last such dimension moves as one."""
    if not chosen or not tensor.size:
        return tensor.copy()
    last = max(chosen) + 1
    inner = tensor.shape[last:]
    if not inner or tensor.dtype.hasobject or not tensor[(0,) * last].flags.c_contiguous:
        return np.flip(tensor, chosen).copy()
    outer = tensor.shape[:last]
    if len(inner) > 1:
        tensor = tensor.reshape(*outer, -1)
    if tensor.shape[-1] == _COLORS and tensor.itemsize * _COLORS not in _WORDS:
        # Copies of equal steps are faster than so many moves of a size that no register has.
        out = np.empty_like(tensor)
        for i in range(_COLORS):
            out[..., i] = np.flip(tensor[..., i], chosen)
        return out.reshape(*outer, *inner)
    whole = tensor.view(f"V{tensor.shape[-1] * tensor.itemsize}")[..., 0]
    return np.flip(whole, chosen).copy()[..., None].view(tensor.dtype).reshape(*outer, *inner)


# ---------------------------------------------------------------- sequences
def _sequences(
    begin: int, end: int, out: Array, x: Array, lengths: Array,
    first: int, middle: int, second: int, inner: int, batch_first: int,
) -> None:  # fmt: skip
    """A turn is a place of the first of both dimensions, the batch's and the sequences'."""
    for t in range(begin, end):
        a, start = t % first, t - t % first
        for m in range(middle):
            for b in range(second):
                s, n = a, lengths[b if batch_first == 0 else a]
                s = s if batch_first == 0 else b
                back = n - 1 - s if s < n else s
                row = (start + back) if batch_first == 0 else t
                column = b if batch_first == 0 else back
                place = ((t * middle + m) * second + b) * inner
                source = ((row * middle + m) * second + column) * inner
                for c in range(inner):
                    out[place + c] = x[source + c]


_SEQUENCES: Final = Looped(_sequences, ("batch_first",))


@table.binder("ReverseSequence", host_inputs=("seq_lengths",))
def reverse_sequence(sig: NodeSig) -> Callable[..., Array]:
    """The first elements of each sequence backwards."""
    along, batch = sig.attrs["seq_dim"], sig.attrs["batch_dim"]
    plain: Callable[..., Array] = portable_kernel(sig)
    low, high = sorted((along, batch))

    def run(tensor: Array, lengths: Array) -> Array:
        word = math.gcd(tensor.itemsize, 8)
        if tensor.dtype.hasobject or not (0 <= low < high < tensor.ndim and tensor.size):
            return plain(tensor, lengths)
        shape, counts = tensor.shape, np.asarray(lengths)
        if counts.shape != (shape[batch],) or counts.min() < 0 or counts.max() > shape[along]:
            return plain(tensor, lengths)
        out, given = np.empty(shape, tensor.dtype), np.ascontiguousarray(tensor)
        inner = math.prod(shape[high + 1 :]) * (tensor.itemsize // word)
        numbers = (shape[low], math.prod(shape[low + 1 : high]), shape[high], inner)
        words = (a.reshape(-1).view(f"i{word}") for a in (out, given))
        turns = math.prod(shape[: low + 1])
        if _SEQUENCES(turns, tensor.size, *words, counts, *numbers, int(batch == low)):
            return out
        return plain(tensor, lengths)

    return run
