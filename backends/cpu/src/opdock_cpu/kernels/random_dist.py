"""Random kernels that sample from given distributions: categorical, gamma, Poisson, truncated.

Each output of gamma and Poisson owns a stretch of the stream and consumes as much of it as its
rejection loop needs; here all outputs that are still undecided take their next step together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig, as_dtype, checks, errors, philox
from opdock_cpu import gammas, slopes
from opdock_cpu.categorical import choices
from opdock_cpu.kernels.random import node_stream, stateless_stream
from opdock_cpu.philox import (
    Philox,
    box_muller,
    box_muller64,
    unit_bfloat16,
    unit_float16,
    unit_float32,
    unit_float64,
)
from opdock_cpu.portable import portable_kernel
from opdock_cpu.rejection import gamma, poisson

__all__ = ["table"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

table = KernelTable()

_INDEX_TYPES = frozenset({as_dtype("int32"), as_dtype("int64")})
_GAMMA_TYPES = frozenset({as_dtype("float16"), as_dtype("float32"), as_dtype("float64")})
_RATE_TYPES = _GAMMA_TYPES | _INDEX_TYPES
_AT_ONCE: Final = 1 << 15
"""Samples that are sorted and moved at a time, in the cache."""


# ---------------------------------------------------------------- categorical
@table.binder(
    "Multinomial", T=REALS, output_dtype=_INDEX_TYPES, host_inputs=("num_samples",)
)  # fmt: skip
def _multinomial(sig: NodeSig) -> Callable[[Array, Array], Array]:
    state = node_stream(sig)
    dtype = sig.attrs["output_dtype"].np

    def run(logits: Array, num_samples: Array) -> Array:
        rows, count = philox.sample_counts(logits, num_samples)
        stream = state.reserve(rows * (-(-count // 4) * 4) * 2 * philox.RESERVED)
        return _categorical(stream, np.asarray(logits), count).astype(dtype)

    return run


@table.binder(
    "StatelessMultinomial",
    T=REALS,
    output_dtype=_INDEX_TYPES,
    host_inputs=("num_samples", "seed"),
)
def _stateless_multinomial(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    dtype = sig.attrs["output_dtype"].np

    def run(logits: Array, num_samples: Array, seed: Array) -> Array:
        _, count = philox.sample_counts(logits, num_samples)
        return _categorical(stateless_stream(seed), np.asarray(logits), count).astype(dtype)

    return run


def _categorical(stream: Philox, logits: Array, count: int) -> Array:
    rows = len(logits)
    if rows == 0 or count == 0:
        return np.zeros((rows, count), np.int64)
    blocks = stream.blocks(-(-rows * count // 2)).reshape(-1, 2)[: rows * count]
    return choices(logits, unit_float64(blocks[:, 0], blocks[:, 1]).reshape(rows, count))


# ---------------------------------------------------------------- rejection sampling
class _Draws:
    """Each output's own stretch of the stream: pairs of doubles, the second of a pair first.

    Attributes:
        stream: where it is.
    """

    def __init__(self, stream: Philox, count: int) -> None:
        self.stream = stream
        self._next = np.arange(count, dtype=np.int64) * philox.RESERVED
        self._pairs = {kind: np.empty((count, 2)) for kind in ("uniform", "normal")}
        self._left = {kind: np.zeros(count, np.int64) for kind in ("uniform", "normal")}

    def uniform(self, who: npt.NDArray[np.intp]) -> Floats:
        """The next uniform of each output in ``who``."""
        return self._take("uniform", who)

    def normal(self, who: npt.NDArray[np.intp]) -> Floats:
        """The next normal of each output in ``who``."""
        return self._take("normal", who)

    def _take(self, kind: str, who: npt.NDArray[np.intp]) -> Floats:
        pairs, left = self._pairs[kind], self._left[kind]
        dry = who[left[who] == 0]
        if dry.size:
            blocks = self.stream.blocks_at(self._next[dry])
            if kind == "normal":
                pairs[dry] = np.stack(box_muller64(blocks), axis=-1)
            else:
                words = blocks.reshape(-1, 2)
                pairs[dry] = unit_float64(words[:, 0], words[:, 1]).reshape(-1, 2)
            self._next[dry] += 1
            left[dry] = 2
        left[who] -= 1
        return pairs[who, left[who]]


@table.binder("RandomGamma", T=_GAMMA_TYPES, host_inputs=("shape",))
def _random_gamma(sig: NodeSig) -> Callable[[Array, Array], Array]:
    state = node_stream(sig)

    def run(shape: Array, alpha: Array) -> Array:
        dtype = np.asarray(alpha).dtype
        sample = _gamma if dtype == np.float64 else _single_gamma
        return _per_parameter(state, shape, alpha, sample, dtype)

    return run


@table.binder("RandomPoissonV2", R=_RATE_TYPES, dtype=_RATE_TYPES, host_inputs=("shape",))
def _random_poisson(sig: NodeSig) -> Callable[[Array, Array], Array]:
    state = node_stream(sig)
    dtype = sig.attrs["dtype"].np

    def run(shape: Array, rate: Array) -> Array:
        return _per_parameter(state, shape, rate, _poisson, dtype)

    return run


def _per_parameter(
    state: Any,
    shape: Array,
    parameter: Array,
    sample: Callable[[_Draws, Floats], Floats],
    dtype: np.dtype[Any],
) -> Array:
    """Samples ``shape + parameter.shape``; the stream runs over the samples of one parameter."""
    dims = philox.draw_shape(shape)
    values = np.asarray(parameter).astype(np.float64)
    each = math.prod(dims)
    count = each * values.size
    out_shape = dims + values.shape
    if count == 0:
        return np.empty(out_shape, dtype)
    draws = _Draws(state.reserve(count * philox.RESERVED), count)
    flat = sample(draws, np.repeat(values.reshape(-1), each))
    return flat.reshape(values.size, each).T.reshape(out_shape).astype(dtype)


def _single_gamma(draws: _Draws, alpha: Floats) -> Floats:
    """The same by generated code, which rounds otherwise what single precision does not tell."""
    known = alpha > 0
    found = gamma(draws.stream.key, draws.stream.counter, np.where(known, alpha, 1.0))
    if found is None:
        return _gamma(draws, alpha)
    found[~known] = np.nan
    return found


def _gamma(draws: _Draws, alpha: Floats) -> Floats:
    """Marsaglia and Tsang's squeeze; a shape below one is boosted, a shape of one exponential."""
    out = np.full(alpha.shape, np.nan)
    one = np.flatnonzero(alpha == 1.0)
    if one.size:
        out[one] = -np.log(1.0 - draws.uniform(one))
    small = alpha < 1.0
    d = alpha + np.where(small, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(np.maximum(d, np.finfo(np.float64).tiny))
    active = np.flatnonzero((alpha != 1.0) & (alpha > 0))
    while active.size:
        x = draws.normal(active)
        v = 1.0 + c[active] * x
        inside = v > 0
        who, x, v = active[inside], x[inside], v[inside] ** 3
        u = draws.uniform(who)
        square = x * x
        with np.errstate(divide="ignore"):
            accept = (u < 1.0 - 0.0331 * square * square) | (
                np.log(u) < 0.5 * square + d[who] * (1.0 - v + np.log(v))
            )
        done = who[accept]
        out[done] = d[done] * v[accept]
        boosted = done[small[done]]
        out[boosted] *= draws.uniform(boosted) ** (1.0 / alpha[boosted])
        undecided = np.ones(active.size, np.bool_)
        undecided[np.flatnonzero(inside)[accept]] = False
        active = active[undecided]
    return out


def _poisson(draws: _Draws, rate: Floats) -> Floats:
    """Knuth's product of uniforms below a rate of ten, Hoermann's transformed rejection above."""
    known = (rate >= 0) & np.isfinite(rate)
    found = poisson(draws.stream.key, draws.stream.counter, np.where(known, rate, 0.0))
    if found is not None:
        found[~known] = np.nan
        return found
    out = np.full(rate.shape, np.nan)
    _poisson_small(draws, rate, np.flatnonzero((rate >= 0) & (rate < 10)), out)
    _poisson_large(draws, rate, np.flatnonzero((rate >= 10) & np.isfinite(rate)), out)
    return out


def _poisson_small(draws: _Draws, rate: Floats, active: npt.NDArray[np.intp], out: Floats) -> None:
    limit = np.exp(-rate)
    product = np.ones(rate.shape)
    events = 0
    while active.size:
        product[active] *= draws.uniform(active)
        done = product[active] <= limit[active]
        out[active[done]] = events
        active = active[~done]
        events += 1


def _poisson_large(draws: _Draws, rate: Floats, active: npt.NDArray[np.intp], out: Floats) -> None:
    log_gamma = np.frompyfunc(math.lgamma, 1, 1)
    while active.size:
        mean = rate[active]
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        u = draws.uniform(active) - 0.5
        v = draws.uniform(active)
        room = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2.0 * a / room + b) * u + mean + 0.43)
            inside = (room >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
            outside = (k < 0) | ((room < 0.013) & (v > room))
            left = np.log(v * inverse_alpha / (a / (room * room) + b))
            factorial = np.asarray(log_gamma(np.maximum(k, 0) + 1.0), np.float64)
            accept = inside | (~outside & (left <= k * np.log(mean) - mean - factorial))
        out[active[accept]] = k[accept]
        active = active[~accept]


# ---------------------------------------------------------------- truncated normal
_MOST_DRAWS = 1000  # without one that fits: then the parameters are beyond this method
_INSIDE = 1.3  # deviations between mean and bound from which on plain normals mostly fit
_BATCH = 100  # outputs, where all have the same parameters
_DRAWN_AT_ONCE = 1 << 16  # blocks
Proposals = tuple[Floats, npt.NDArray[np.bool_]]  # values, and which of them fit
Propose = Callable[[Array, int, Floats, Floats], Proposals]  # of blocks, for rows between bounds


@table.binder("ParameterizedTruncatedNormal", dtype=FLOATS, host_inputs=("shape",))
def _parameterized_truncated_normal(sig: NodeSig) -> Callable[..., Array]:
    """Each batch has a stretch of the stream of its own, and rejects until it is full."""
    state, dtype = node_stream(sig), sig.attrs["dtype"].np

    def run(shape: Array, *parameters: Array) -> Array:
        dims = philox.draw_shape(shape)
        if not dims:
            raise checks.invalid("Shape tensor must not be empty, got shape: [0]")
        each, count = math.prod(dims[1:]), math.prod(dims)
        means, deviations, low, high = parameters
        if means.size == deviations.size == 1 and low.ndim == high.ndim == 0:
            batches, each = -(-count // _BATCH), _BATCH
        else:
            batches = dims[0]
        values = _batched(parameters, batches)
        stride = 2 * _MOST_DRAWS * (each + 3)
        stream = state.reserve(batches * stride // 4)
        starts = np.arange(batches, dtype=np.int64) * stride // 4
        wanted = np.minimum(each, count - np.arange(batches) * each)
        rows = _truncated_rows(stream, dtype, starts, wanted, values)
        return rows.reshape(-1)[:count].astype(dtype).reshape(dims)

    return run


def _batched(parameters: tuple[Array, ...], batches: int) -> list[Floats]:
    """The parameters for each batch, checked."""
    out = []
    for name, given in zip(("means", "stddevs", "minvals", "maxvals"), parameters, strict=True):
        flat = checks.batch_parameter(name, given, batches).astype(np.float64)
        out.append(flat if flat.shape == (batches,) else np.full(batches, flat))
    _, deviations, low, high = out
    bounded = np.isfinite(low) | np.isfinite(high)
    if not np.all((deviations > 0) & (low < high) & bounded):
        raise checks.invalid("Invalid parameters")
    return out


def _truncated_rows(
    stream: Philox, dtype: np.dtype[Any], starts: Array, wanted: Array, parameters: list[Floats]
) -> Floats:
    """A row of outputs to each batch, as long as the longest."""
    means, deviations, low, high = parameters
    # One bound at least is finite, and above the mean if one is: so the lower one is.
    turned = (np.isneginf(low)) | (high < means)
    if turned.any():
        low, high = np.where(turned, high, low), np.where(turned, low, high)
        deviations = np.where(turned, -deviations, deviations)
    low, high = (low - means) / deviations, (high - means) / deviations
    plain = ((low < -_INSIDE) & (high >= 0)) | ((high > _INSIDE) & (low <= 0))
    ways: list[tuple[Array, Callable[[np.dtype[Any]], Propose]]] = [(plain, _plain_normals)]
    if not plain.all():
        root = np.sqrt(low * low + 4)
        cutoff = 2 * np.exp(0.5 + low * (low - root) / 4) / (low + root)
        flat = ~plain & (high - low < cutoff)
        ways += [(flat, _uniforms), (~plain & ~flat, _exponentials)]
    out = np.zeros((len(starts), int(wanted.max(initial=0))))
    for chosen, propose in ways:
        rows = np.flatnonzero(chosen)
        # Two at least: uniforms come by the pair of blocks.
        share = 3 if propose is _plain_normals else 6
        blocks = min(-(-share * out.shape[1] // 16) * 2 + 2, _DRAWN_AT_ONCE)
        step = max(1, _DRAWN_AT_ONCE // blocks)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            out[part] = _fill_rows(
                propose(dtype), stream, starts[part], wanted[part], low[part], high[part], blocks
            )
    return out * deviations[:, None] + means[:, None]


def _fill_rows(
    propose: Propose, stream: Philox, starts: Array, wanted: Array,
    low: Floats, high: Floats, blocks: int,
) -> Floats:  # fmt: skip
    """Proposals that fit, in their order; all rows that still lack some draw together."""
    if len(starts) == 1 and wanted[0]:
        return _fill_row(propose, stream, int(starts[0]), int(wanted[0]), low, high, blocks)
    out = np.zeros((len(starts), int(wanted.max(initial=0))))
    have, idle, drawn = np.zeros_like(wanted), np.zeros_like(wanted), 0
    active = np.flatnonzero(wanted > 0)
    while active.size:
        places = starts[active, None] + drawn + np.arange(blocks)
        words = stream.blocks_at(places.reshape(-1))
        values, fits = propose(words, len(active), low[active, None], high[active, None])
        rank = have[active, None] + fits.cumsum(axis=1)
        rows, columns = (fits & (rank <= wanted[active, None])).nonzero()
        out[active[rows], rank[rows, columns] - 1] = values[rows, columns]
        idle[active] = np.where(fits.any(axis=1), 0, idle[active] + fits.shape[1])
        have[active], drawn = rank[:, -1], drawn + blocks
        active = active[have[active] < wanted[active]]
        if np.any(idle[active] > _MOST_DRAWS):
            raise _none_fits()
    return out


def _fill_row(
    propose: Propose, stream: Philox, start: int, wanted: int,
    low: Floats, high: Floats, blocks: int,
) -> Floats:  # fmt: skip
    """The same for one row, which needs no places."""
    kept, have, idle, drawn = [], 0, 0, 0
    while have < wanted:
        words = stream.skip(start + drawn).blocks(blocks)
        values, fits = propose(words, 1, low[:, None], high[:, None])
        kept.append(values[fits][: wanted - have])
        have, drawn = have + kept[-1].size, drawn + blocks
        idle = 0 if kept[-1].size else idle + fits.size
        if idle > _MOST_DRAWS:
            raise _none_fits()
    return (kept[0] if len(kept) == 1 else np.concatenate(kept)).reshape(1, -1)


def _none_fits() -> errors.InternalError:
    return errors.InternalError(
        None, None, "TruncatedNormal rejection sampler failed to accept a sample."
    )


def _per_block(dtype: np.dtype[Any]) -> int:
    """How many numbers of a type a block makes."""
    return 2 if dtype == np.float64 else 4


def _units(words: Array, dtype: np.dtype[Any]) -> Floats:
    """The numbers in [0, 1) of blocks, as the type has them."""
    flat = words.reshape(-1)
    if dtype == np.float64:
        return unit_float64(flat[0::2], flat[1::2])
    if dtype == np.float32:
        return unit_float32(flat).astype(np.float64)
    halves = unit_float16(flat) if dtype == np.float16 else unit_bfloat16(flat, dtype)
    return halves.astype(np.float64)


def _normals(words: Array, dtype: np.dtype[Any]) -> Floats:
    """The normal numbers of blocks, as the type has them."""
    if dtype == np.float64:
        return np.stack(box_muller64(words), axis=-1).reshape(-1)
    return box_muller(words).reshape(-1).astype(dtype).astype(np.float64)


def _plain_normals(dtype: np.dtype[Any]) -> Propose:
    """Normal numbers between the bounds."""

    def propose(words: Array, rows: int, low: Floats, high: Floats) -> Proposals:
        values = _normals(words, dtype).reshape(rows, -1)
        return values, (values >= low) & (values <= high)

    return propose


def _uniforms(dtype: np.dtype[Any]) -> Propose:
    """Even numbers between the bounds; each other block says how likely they are to stay."""
    group = _per_block(dtype)

    def propose(words: Array, rows: int, low: Floats, high: Floats) -> Proposals:
        drawn = _units(words, dtype).reshape(rows, -1, 2, group)
        values = drawn[:, :, 0].reshape(rows, -1) * (high - low) + low
        likely = np.exp((np.where(low < 0, 0, low * low) - values * values) / 2)
        return values, drawn[:, :, 1].reshape(rows, -1) <= likely

    return propose


def _exponentials(dtype: np.dtype[Any]) -> Propose:
    """Numbers of an exponential distribution from the lower bound on, of two uniforms each."""

    def propose(words: Array, rows: int, low: Floats, high: Floats) -> Proposals:
        drawn = _units(words, dtype).reshape(rows, -1, 2)
        rate = (low + np.sqrt(low * low + 4)) / 2
        with np.errstate(divide="ignore"):
            values = -np.log(drawn[:, :, 0]) / rate + low
        off = np.where(low < rate, rate - values, low - rate)
        return values, (drawn[:, :, 1] <= np.exp(-off * off / 2)) & (values < high)

    return propose


# ---------------------------------------------------------------- gradients of gamma samples
@table.binder("RandomGammaGrad", T={as_dtype("float32"), as_dtype("float64")})
def _random_gamma_grad(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Core's series near the bulk, and its integral of the tail, as generated loops."""
    plain: Callable[[Array, Array], Array] = portable_kernel(sig)
    wide = sig.in_dtypes[0].name == "float64"

    def run(alpha: Array, sample: Array) -> Array:
        if not (np.size(alpha) and np.size(sample)):
            return plain(alpha, sample)
        a, x = (np.ascontiguousarray(v) for v in np.broadcast_arrays(alpha, sample))
        out = np.empty(a.shape, a.dtype)
        flat = [v.reshape(-1) for v in (out, a, x)]
        for start in range(0, a.size, _AT_ONCE):
            some = (v[start : start + _AT_ONCE] for v in flat)
            if not _moved(*some, wide=wide):
                return plain(alpha, sample)
        return out

    return run


def _moved(out: Array, a: Array, x: Array, *, wide: bool) -> bool:
    """What samples x move by as their shapes a grow, of vectors; whether there is code."""
    sorts = slopes.slope_sorts(a, x)
    if sorts is None:
        return False
    near, far, rest = sorts
    if near.size and not slopes.slope_sums(out, a, x, near, moved=True, wide=wide):
        return False
    if far.size:
        shapes, samples = (v.take(far).astype(np.float64) for v in (a, x))
        found = gammas.tail_integral(shapes, samples, wide)
        if found is None:
            return False
        out.put(far, found)
    out.put(rest, np.where((a.take(rest) > 0) & (x.take(rest) == 0), 0.0, np.nan))
    return True
