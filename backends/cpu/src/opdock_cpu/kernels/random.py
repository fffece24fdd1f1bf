"""Random kernels: TF's bits for TF's seeds, from Philox blocks computed many at a time.

Stateful ops keep their place in the stream in the session: the first run of a new session repeats,
the second goes on.  TF reserves 256 blocks an output element whatever is used, so streams of
different lengths stay apart; that reserve is part of the bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import (
    ALL,
    FLOATS,
    KernelTable,
    NodeSig,
    as_dtype,
    checks,
    philox,
    random_stream,
)
from opdock_cpu import picking
from opdock_cpu.jit.swaps import MANY, swapped
from opdock_cpu.philox import (
    FEW,
    Philox,
    PhiloxState,
    box_muller64,
    unit_bfloat16,
    unit_float16,
)

__all__ = ["node_stream", "stateless_stream", "table"]

Array = npt.NDArray[Any]
Fill = Callable[[Philox, int], Array]

table = KernelTable()

_INT_TYPES = frozenset({as_dtype("int32"), as_dtype("int64")})
_WHOLE_TYPES = _INT_TYPES | {as_dtype("uint32"), as_dtype("uint64")}
_TRUNCATE = 2.0
_AHEAD = 16
"""Groups that draw twice at once: a block more costs less than to see who needs it."""


# ---------------------------------------------------------------- streams
def node_stream(sig: NodeSig) -> PhiloxState:
    """The node's stream in this session; unseeded nodes draw a fresh seed per session."""
    return PhiloxState(random_stream(sig))


def stateless_stream(seed: Array) -> Philox:
    """The stream of a stateless op's two-element seed."""
    return Philox(*philox.stateless_place(seed))


# ---------------------------------------------------------------- distributions
def _words(stream: Philox, count: int) -> npt.NDArray[np.uint32]:
    return stream.blocks(-(-count // 4)).reshape(-1)[:count]


def _uniform(dtype: np.dtype[Any]) -> Fill:
    if dtype == np.float64:
        return Philox.units64
    if dtype == np.float32:
        return Philox.units
    if dtype == np.float16:
        return lambda stream, count: unit_float16(_words(stream, count))
    return lambda stream, count: unit_bfloat16(_words(stream, count), dtype)


def _normal(dtype: np.dtype[Any]) -> Fill:
    if dtype == np.float64:

        def fill64(stream: Philox, count: int) -> Array:
            out = np.stack(box_muller64(stream.blocks(-(-count // 2))), axis=-1)
            return out.reshape(-1)[:count]

        return fill64

    def fill32(stream: Philox, count: int) -> Array:
        out = stream.normals(-(-count // 4))
        return out.reshape(-1)[:count].astype(dtype, copy=False)

    return fill32


def _truncated(dtype: np.dtype[Any]) -> Fill:
    """Normals redrawn until they are within two deviations.

    A group of outputs (one block's worth) has a stretch of the stream of its own and keeps drawing
    until the group is full; all groups that still lack values draw together here.
    """
    group = 2 if dtype == np.float64 else 4
    stride = group * philox.RESERVED // 4

    def draw(stream: Philox, places: npt.NDArray[np.int64]) -> Array:
        if group == 4:
            return stream.normals(places)
        return np.stack(box_muller64(stream.blocks_at(places)), axis=-1)

    def fill(stream: Philox, count: int) -> Array:
        if group == 4 and count <= group * FEW:
            return np.array(_few_truncated(stream, count, stride), np.float32).astype(dtype)
        starts = np.arange(-(-count // group)) * stride
        if len(starts) <= _AHEAD:
            places = np.concatenate([starts, starts + 1]).reshape(2, -1).T.reshape(-1)
            drawn = draw(stream, places).reshape(len(starts), 2 * group)
            out, fits = drawn[:, :group], np.abs(drawn) < _TRUNCATE
            if not fits[:, :group].all():
                order = np.argsort(~fits, axis=1, kind="stable")[:, :group]
                rows = np.arange(len(starts))[:, None]
                out, fits = drawn[rows, order], fits[rows, order]
            if fits[:, :group].all():
                return out.reshape(-1)[:count].astype(dtype, copy=False)
        out = drawn = draw(stream, starts)
        # Most groups are full at once; the others are filled anew, from these draws and more.
        active = np.flatnonzero(~(np.abs(drawn) < _TRUNCATE).all(1))
        drawn, have = drawn[active], np.zeros(active.size, np.int64)
        step = 0
        while active.size:
            for column in drawn.T:
                keep = (np.abs(column) < _TRUNCATE) & (have < group)
                out[active[keep], have[keep]] = column[keep]
                have += keep
            lacks = have < group
            active, have = active[lacks], have[lacks]
            step += 1
            drawn = draw(stream, starts[active] + step)
        return out.reshape(-1)[:count].astype(dtype, copy=False)

    return fill


def _few_truncated(stream: Philox, count: int, stride: int) -> list[float]:
    """The same numbers one by one, in Python."""
    out: list[float] = []
    for start in range(0, -(-count // 4) * stride, stride):
        full, far = min(len(out) + 4, count), start
        while len(out) < full:
            out += [x for x in stream.four_normals(far) if abs(x) < _TRUNCATE]
            far += 1
        del out[full:]
    return out


_FILLS: dict[str, Callable[[np.dtype[Any]], Fill]] = {
    "RandomUniform": _uniform,
    "RandomStandardNormal": _normal,
    "TruncatedNormal": _truncated,
    "StatelessRandomUniform": _uniform,
    "StatelessRandomNormal": _normal,
    "StatelessTruncatedNormal": _truncated,
    "StatefulUniform": _uniform,
    "StatefulStandardNormalV2": _normal,
    "StatefulTruncatedNormal": _truncated,
}


def _bind_stateful(sig: NodeSig) -> Callable[[Array], Array]:
    fill = _FILLS[sig.op](sig.attrs["dtype"].np)
    stream = node_stream(sig)

    def run(shape: Array) -> Array:
        dims = philox.draw_shape(shape)
        count = math.prod(dims)
        return fill(stream.reserve(count * philox.RESERVED), count).reshape(dims)

    return run


def _bind_stateless(sig: NodeSig) -> Callable[[Array, Array], Array]:
    fill = _FILLS[sig.op](sig.attrs["dtype"].np)

    def run(shape: Array, seed: Array) -> Array:
        dims = philox.draw_shape(shape)
        return fill(stateless_stream(seed), math.prod(dims)).reshape(dims)

    return run


@table.binder(
    "StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal",
    dtype=FLOATS, host_inputs=("algorithm", "shape"), keeps=(),
)  # fmt: skip
def _of_generator(sig: NodeSig) -> Callable[[Any, Array, Array], Array]:
    fill = _FILLS[sig.op](sig.attrs["dtype"].np)

    def run(cell: Any, algorithm: Array, shape: Array) -> Array:
        dims = philox.draw_shape(shape)
        count = math.prod(dims)
        place = checks.reserve_draws(sig, cell, algorithm, count)
        return fill(Philox(*place), count).reshape(dims)

    return run


for _op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    table.binder(_op, dtype=FLOATS, host_inputs=("shape",))(_bind_stateful)
    _name = _op if _op == "TruncatedNormal" else _op.replace("Standard", "").removeprefix("Random")
    _name = "StatelessTruncatedNormal" if _op == "TruncatedNormal" else f"StatelessRandom{_name}"
    table.binder(_name, dtype=FLOATS, host_inputs=("shape", "seed"))(_bind_stateless)


# ---------------------------------------------------------------- integers
def _integers(stream: Philox, dims: tuple[int, ...], low: Array, high: Array) -> Array:
    count = math.prod(dims)
    first, span = philox.int_range(low, high, count)
    if count == 0:
        return np.empty(dims, np.asarray(low).dtype)
    dtype = np.asarray(low).dtype
    if dtype.itemsize == 8:
        words = stream.blocks(-(-count // 2)).astype(np.uint64).reshape(-1, 2)[:count]
        bits = words[:, 0] | words[:, 1] << np.uint64(32)
        out = bits % np.uint64(span) + np.uint64(first & (1 << 64) - 1)
    else:
        draws = _words(stream, count)
        out = draws % np.uint32(span) + np.uint32(first & 0xFFFFFFFF)
    return out.view(dtype).reshape(dims)


@table.binder("RandomUniformInt", Tout=_INT_TYPES, host_inputs=("shape", "minval", "maxval"))
def _random_uniform_int(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    stream = node_stream(sig)

    def run(shape: Array, low: Array, high: Array) -> Array:
        dims = philox.draw_shape(shape)
        return _integers(stream.reserve(math.prod(dims) * philox.RESERVED), dims, low, high)

    return run


@table.binder(
    "StatelessRandomUniformInt", dtype=_INT_TYPES, host_inputs=("shape", "seed", "minval", "maxval")
)
def _stateless_uniform_int(sig: NodeSig) -> Callable[[Array, Array, Array, Array], Array]:
    def run(shape: Array, seed: Array, low: Array, high: Array) -> Array:
        return _integers(stateless_stream(seed), philox.draw_shape(shape), low, high)

    return run


@table.binder(
    "StatefulUniformFullInt", dtype=_WHOLE_TYPES, host_inputs=("algorithm", "shape"), keeps=()
)
def _uniform_full_int(sig: NodeSig) -> Callable[[Any, Array, Array], Array]:
    dtype = sig.attrs["dtype"].np

    def run(cell: Any, algorithm: Array, shape: Array) -> Array:
        dims = philox.draw_shape(shape)
        count = math.prod(dims)
        place = checks.reserve_draws(sig, cell, algorithm, count)
        words = Philox(*place).blocks(-(-count * dtype.itemsize // 16))
        whole: Array = words.astype("<u4", copy=False).view(dtype.newbyteorder("<"))
        return whole.reshape(-1)[:count].reshape(dims).astype(dtype, copy=False)

    return run


# ---------------------------------------------------------------- shuffle
@table.binder("RandomShuffle", T=ALL)
def _random_shuffle(sig: NodeSig) -> Callable[[Array], Array]:
    stream = random_stream(sig)

    def run(value: Array) -> Array:
        array = np.asarray(value)
        length = array.shape[0] if array.ndim else 1
        if array.size <= 1 or length <= 1:
            return array.copy()
        place = stream.reserve(-(-(length - 1) // 4))
        order = swapped(place, length) if length >= MANY else philox.shuffled(place, length)
        found = picking.taken(array, order, 0)
        return np.ascontiguousarray(array[order]) if found is None else found

    return run
