"""Portable kernels of pools over windows of different sizes.

Windows come from the host. Rows are pooled first, then columns, a slice for each window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.kernels.array_api import device_ints, ints, invalid, put, zeros
from opdock.kernels.philox import Place, blocks, shuffled
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.streams import RandomStream
from opdock.util import entropy

_TYPES = frozenset({dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64})
Sequence = npt.NDArray[np.int64]
Array = Any
Shuffle = Callable[[Place, int], Sequence]
_SEQUENCES = ("row_pooling_sequence", "col_pooling_sequence")


# ---------------------------------------------------------------- windows
def _stream(sig: NodeSig) -> Callable[[], RandomStream]:
    """A stream that begins anew in each step, at the seeds or anywhere.

    Raises:
        InvalidArgumentError: there are seeds although the op is not deterministic.
    """
    seeds = int(sig.attrs["seed"]), int(sig.attrs["seed2"])
    if any(seeds) and not sig.attrs["deterministic"]:
        raise invalid("Both seed and seed2 should be 0 if deterministic is false.")

    if sig.attrs["deterministic"] and not any(seeds):
        seeds = entropy.two_words()
    return lambda: RandomStream(*(seeds if any(seeds) else entropy.two_words()))


def _starts(sizes: Sequence) -> Sequence:
    """Where windows of these sizes begin, and where the last one ends."""
    starts = np.zeros(sizes.size + 1, np.int64)
    sizes.cumsum(out=starts[1:])
    return starts


def _mixed_sizes(length: int, count: int, stream: RandomStream, shuffle: Shuffle) -> Sequence:
    """Two sizes in an order of chance."""
    small, larger = divmod(length, count)
    sizes = np.full(count, small, np.int64)
    sizes[:larger] += 1
    place = stream.reserve(-(-count // 4))
    return sizes[shuffle(place, count)]


def _even_sizes(length: int, count: int, stream: RandomStream) -> Sequence:
    """Two sizes that take turns: ends are at equal distances from a start of chance, rounded up.

    The start may be so large only that neither the first nor the last window has another size
    (arXiv:1412.6071 does without that).
    """
    ratio, small = length / count, length // count
    largest = min((small + 2) / ratio - 1, (length + 1 - small) / ratio - (count - 1))
    high, low, *_ = blocks(stream.reserve(1), 0, 0)
    start = (((high & 0xFFFFF) << 32) + low) * 2.0**-52 * largest
    ends = [1, *(math.ceil(ratio * (i + start)) for i in range(1, count)), length + 1]
    places = np.array(ends, np.int64)
    return places[1:] - places[:-1]


def _windows(starts: Any, overlapping: bool, length: int) -> list[slice]:
    """The places of each window."""
    bounds = ints(starts)
    shared = 1 if overlapping else 0
    return [slice(a, min(b + shared, length)) for a, b in itertools.pairwise(bounds)]


# ---------------------------------------------------------------- pools
def drawn_windows(
    sig: NodeSig, shuffle: Shuffle = shuffled
) -> Callable[[tuple[int, ...]], list[Sequence]]:
    """A function of an input's shape: where the windows of rows and of columns begin, and end.

    Args:
        sig: the node.
        shuffle: what gives the order that `philox.shuffled` does.

    Raises:
        UnimplementedError, InvalidArgumentError: the attributes say what cannot be.
    """
    ratio = [float(r) for r in sig.attrs["pooling_ratio"]]
    kind = "max" if sig.op == "FractionalMaxPool" else "avg"
    if ratio[0] != 1.0 or ratio[3] != 1.0:
        raise errors.UnimplementedError(
            None, None,
            f"Fractional {kind} pooling is not yet supported on the batch nor channel dimension.",
        )  # fmt: skip
    stream, even = _stream(sig), bool(sig.attrs["pseudo_random"])

    def draw(shape: tuple[int, ...]) -> list[Sequence]:
        if len(shape) != 4:
            raise invalid("tensor_in must be 4-dimensional")
        drawn = stream()
        starts = []
        for axis in (1, 2):
            length, count = shape[axis], math.floor(shape[axis] / ratio[axis])
            if even:
                starts.append(_starts(_even_sizes(length, count, drawn)))
            else:
                starts.append(_starts(_mixed_sizes(length, count, drawn, shuffle)))
        return starts

    return draw


@portable("FractionalMaxPool", "FractionalAvgPool", T=_TYPES)
def fractional_pool(xp: Any, sig: NodeSig) -> Any:
    """The pooled values and where windows begin."""
    draw, overlapping = drawn_windows(sig), bool(sig.attrs["overlapping"])
    largest = sig.op == "FractionalMaxPool"

    def reduce(part: Array, axis: int) -> Array:
        if largest:
            return xp.max(part, axis=axis, keepdims=True)
        return xp.sum(part, axis=axis, keepdims=True, dtype=part.dtype)

    def run(x: Array) -> tuple[Array, Array, Array]:
        starts, counts = draw(tuple(x.shape)), []
        for axis, found in enumerate(starts, 1):
            places = _windows(found, overlapping, x.shape[axis])
            parts = [reduce(x[_along(axis, p)], axis) for p in places]
            x = xp.concat(parts, axis=axis)
            counts.append([p.stop - p.start for p in places])
        if not largest:
            x = _divided(xp, x, np.multiply.outer(*map(np.array, counts)))
        rows, columns = (device_ints(xp, found, x) for found in starts)
        return x, rows, columns

    return run


def _along(axis: int, place: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * axis, place, ...)


def _divided(xp: Any, x: Array, counts: Any) -> Array:
    """Sums over rows and columns by the number of places; whole numbers stay whole."""
    divisor = device_ints(xp, counts[None, :, :, None], x)
    if xp.isdtype(x.dtype, "integral"):
        # Division in C drops what is behind the point.
        size = xp.abs(x) // xp.astype(divisor, x.dtype)
        return xp.astype(xp.sign(x) * size, x.dtype)
    return x / xp.astype(divisor, x.dtype)


# ---------------------------------------------------------------- gradients
@portable("FractionalAvgPoolGrad", T=_TYPES, host_inputs=("orig_input_tensor_shape", *_SEQUENCES))
def fractional_avg_pool_grad(xp: Any, sig: NodeSig) -> Any:
    """Each place gets its share of the gradients of all windows that it is in."""
    overlapping = bool(sig.attrs["overlapping"])

    def run(shape: Any, grad: Array, rows: Any, columns: Any) -> Array:
        full = tuple(ints(shape))
        if len(full) != 4 or len(grad.shape) != 4:
            raise invalid("original input tensor shape must be 4-dimensional")
        places = [_windows(rows, overlapping, full[1]), _windows(columns, overlapping, full[2])]
        counts = np.multiply.outer(*(np.array([p.stop - p.start for p in ps]) for ps in places))
        share = _divided(xp, grad, counts)
        out = zeros(xp, full, grad, sig.out_dtypes[0])
        for i, row in enumerate(places[0]):
            for j, column in enumerate(places[1]):
                own = share[:, i : i + 1, j : j + 1, :]
                out = put(xp, out, (slice(None), row, column, ...), own, add=True)
        return out

    return run


@portable("FractionalMaxPoolGrad", T=_TYPES, host_inputs=_SEQUENCES)
def fractional_max_pool_grad(xp: Any, sig: NodeSig) -> Any:
    """The first of the largest values of a window gets its gradient."""
    overlapping = bool(sig.attrs["overlapping"])

    def run(x: Array, pooled: Array, grad: Array, rows: Any, columns: Any) -> Array:
        if len(x.shape) != 4 or grad.shape != pooled.shape:
            raise invalid("tensor_in must be 4-dimensional, and out_backprop as the output is")
        out = zeros(xp, x.shape, x, sig.out_dtypes[0])
        places = _windows(columns, overlapping, x.shape[2])
        for i, row in enumerate(_windows(rows, overlapping, x.shape[1])):
            for j, column in enumerate(places):
                seen = x[:, row, column, :]
                batch, height, width, channels = seen.shape
                flat = xp.reshape(seen, (batch, height * width, channels))
                first = xp.argmax(flat, axis=1)[:, None, :]
                order = device_ints(xp, np.arange(height * width)[None, :, None], x)
                own = xp.where(order == first, grad[:, i, j, :][:, None, :], 0)
                own = xp.reshape(xp.astype(own, grad.dtype), seen.shape)
                out = put(xp, out, (slice(None), row, column, ...), own, add=True)
        return out

    return run
