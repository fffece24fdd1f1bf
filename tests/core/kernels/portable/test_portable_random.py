"""The portable random kernels on the strictest array namespace there is: the CPU backend's bits."""

from __future__ import annotations

import array_api_compat.numpy as plain
import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import opdock as tf
from opdock import dtypes
from opdock.devices.base import BaseDevice
from opdock.devices.protocols import DeviceAttributes
from opdock.kernels import philox, portable
from opdock.kernels.portable import random as kernels
from opdock.kernels.portable import random_dist as kernels_dist
from opdock.kernels.select.selection import KernelIndex, select
from opdock.kernels.select.signature import NodeSig
from opdock.runtime.resources import ResourceManager
from opdock.testing.reference.random import Stream
from opdock_cpu.kernels import random as native
from opdock_cpu.kernels import random_dist as native_dist
from opdock_cpu.philox import unit_float32

NATIVE = {k.op: k.bind for k in (*native.table, *native_dist.table)}
PORTABLE = {
    op: use.bind
    for op, uses in portable._registry.items()
    for use in uses
    if use.bind.__module__ in (kernels.__name__, kernels_dist.__name__)
}
WIDE = st.integers(-(2**63), 2**63 - 1)
SEEDS = st.tuples(WIDE, WIDE).filter(any)  # two zeros mean a fresh seed
SHAPES = st.lists(st.integers(0, 9), max_size=3)
STEPS = st.lists(SHAPES, min_size=2, max_size=2)
HALVES = [dtypes.float16, dtypes.bfloat16]
FLOATS = [*HALVES, dtypes.float32, dtypes.float64]
INTS = [dtypes.int32, dtypes.int64]
TOLERANCES = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-20, "float64": 2**-49}


def namespace(dtype):
    """The strict namespace has no 16-bit floats."""
    return plain if dtype in HALVES else strict


def signature(op, dtype, seeds=(0, 0), **fields):
    attrs = {"seed": seeds[0], "seed2": seeds[1], "dtype": dtype, "output_dtype": dtype}
    return NodeSig(op, "node", attrs, out_dtypes=[dtype], **fields)


def both(op, dtype, seeds=(0, 0)):
    """A native and a portable kernel, each with a stream of its own."""
    sig = signature(op, dtype, seeds)
    return NATIVE[op](sig), PORTABLE[op](namespace(dtype), sig)


def same(got, wanted):
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert got.tobytes() == wanted.tobytes()


def near(got, wanted):
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    tolerance = TOLERANCES[wanted.dtype.name]
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def shape_of(dims):
    return np.array(dims, np.int32)


# ---------------------------------------------------------------- the bits
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@given(SEEDS, STEPS)
@example((-1, -(2**63)), [[1021], [3, 7]])
def test_uniforms(dtype, seeds, steps):
    wanted, got = both("RandomUniform", dtype, seeds)
    for dims in steps:
        same(got(shape_of(dims)), wanted(shape_of(dims)))
    wanted, got = both("StatelessRandomUniform", dtype)
    same(got(shape_of(steps[0]), np.array(seeds)), wanted(shape_of(steps[0]), np.array(seeds)))


@pytest.mark.parametrize("dtype", INTS, ids=lambda t: t.name)
@given(SEEDS, STEPS, st.data())
def test_integers_of_any_range(dtype, seeds, steps, data):
    edges = st.sampled_from([dtype.min, dtype.min + 1, -1, 0, 1, 2**30, dtype.max - 1, dtype.max])
    bound = st.one_of(edges, st.integers(dtype.min, dtype.max))
    low, high = data.draw(st.tuples(bound, bound).filter(lambda b: b[0] < b[1]))
    bounds = np.array(low, dtype.np), np.array(high, dtype.np)
    attrs = {"seed": seeds[0], "seed2": seeds[1]}
    sig = NodeSig("RandomUniformInt", "node", attrs, out_dtypes=[dtype])
    wanted, got = NATIVE[sig.op](sig), PORTABLE[sig.op](strict, sig)
    for dims in steps:
        same(got(shape_of(dims), *bounds), wanted(shape_of(dims), *bounds))
    wanted, got = both("StatelessRandomUniformInt", dtype)
    args = shape_of(steps[0]), np.array(seeds), *bounds
    same(got(*args), wanted(*args))


RANGES = st.integers(1, 2**64 - 1).flatmap(
    lambda span: st.tuples(st.just(span), st.integers(-(2**63), 2**63 - 1 - span))
)


@given(st.integers(0, 2**64 - 1), RANGES)
@example(2**64 - 1, (2**64 - 1, -(2**63)))
@example(2**64 - 2, (2**64 - 1, -(2**63)))
@example(2**63, (2**63, -1))
@example(2**64 - 1, (2**63 - 1, 0))
def test_a_remainder_of_64_bits_without_unsigned_types(bits, limits):
    span, first = limits
    words = (strict.asarray([w]) for w in (bits & 0xFFFFFFFF, bits >> 32))
    (got,) = np.asarray(kernels._within64(strict, *words, first, span)).tolist()
    assert got == first + bits % span


# A value beside the cut is redrawn or not by its last bit, so the examples do not change.
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("op", ["RandomStandardNormal", "TruncatedNormal"])
@given(seeds=SEEDS, steps=STEPS)
@example((7, 8), [[2003], [3, 7]])
def test_normals(op, dtype, seeds, steps):
    wanted, got = both(op, dtype, seeds)
    for dims in steps:
        near(got(shape_of(dims)), wanted(shape_of(dims)))
    stateless = {
        "RandomStandardNormal": "StatelessRandomNormal",
        "TruncatedNormal": "StatelessTruncatedNormal",
    }[op]
    wanted, got = both(stateless, dtype)
    near(got(shape_of(steps[0]), np.array(seeds)), wanted(shape_of(steps[0]), np.array(seeds)))


def test_all_angles_are_rounded_as_the_cpu_rounds_them():
    word = np.arange(1 << 23)
    unit = unit_float32(word.astype(np.uint32)).astype(np.float64)
    same(kernels._angle(plain, word), (2.0 * np.pi * unit).astype(np.float32))


@given(SEEDS, st.integers(1, 40), st.integers(0, 3))
def test_shuffles(seeds, length, width):
    wanted, got = both("RandomShuffle", dtypes.float64, seeds)
    rows = np.arange(float(length * width)).reshape(length, width)
    for _ in range(2):
        same(got(strict.asarray(rows)), wanted(rows))


@given(SEEDS, st.integers(0, 7), st.integers(1, 7), st.integers(0, 9), st.data())
def test_classes(seeds, rows, classes, count, data):
    values = st.floats(-30, 30) | st.sampled_from([np.inf, -np.inf, np.nan])
    logits = np.array(
        data.draw(st.lists(values, min_size=rows * classes, max_size=rows * classes))
    ).reshape(rows, classes)
    wanted, got = both("Multinomial", dtypes.int32, seeds)
    for _ in range(2):
        same(got(strict.asarray(logits), np.array(count)), wanted(logits, np.array(count)))
    wanted, got = both("StatelessMultinomial", dtypes.int64)
    args = np.array(count), np.array(seeds)
    same(got(strict.asarray(logits), *args), wanted(logits, *args))


# ---------------------------------------------------------------- the stream
def drawn_on(device):
    """Draws of all kinds; the same seeds on every device."""
    with tf.device(device):
        return [
            tf.random_uniform([5, 7], seed=3),
            tf.random_uniform([11], -(2**62), 2**62, tf.int64, seed=4),
            tf.random_shuffle(tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]), seed=5),
            tf.multinomial(tf.constant([[0.1, 0.2, 0.3]]), 9, seed=6),
        ]


def test_the_runs_of_a_session():
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        here, there = drawn_on("/cpu:0"), drawn_on("/device:ECHO:0")
        with tf.Session() as session:
            hows = {r.node: r.how for r in session.explain(there).rows if r.op in PORTABLE}
            assert list(hows.values()) == ["portable"] * 4, hows
            runs = [session.run([here, there]) for _ in range(3)]
    for wanted, got in runs:
        for w, g in zip(wanted, got, strict=True):
            same(g, w)
    assert not np.array_equal(runs[0][1][0], runs[1][1][0])


def test_a_node_that_changes_the_device_goes_on_where_it_was():
    fields = {"seeds": (1, 2), "resources": ResourceManager()}
    sig = signature("RandomUniform", dtypes.float32, **fields)
    wanted, _ = both("RandomUniform", dtypes.float32, (1, 2))
    for bind in (lambda s: PORTABLE[s.op](strict, s), NATIVE["RandomUniform"]):
        same(bind(sig)(shape_of([6])), wanted(shape_of([6])))


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**128 - 1) | st.sampled_from([2**n - k for n in (32, 64, 96) for k in (1, 3)]),
    st.lists(st.integers(0, 2**40) | st.integers(0, 5), min_size=1, max_size=5),
)
def test_blocks_across_carries(key, counter, index):
    words = philox.blocks((key, counter), strict.asarray(index), max(index))
    got = np.stack([np.asarray(w) for w in words], axis=1).tolist()
    stream = Stream(key, counter)
    assert [tuple(row) for row in got] == [stream.block(i) for i in index]
    assert philox.blocks((key, counter), index[0], index[0]) == stream.block(index[0])


class Narrow(int):
    """An integer whose arithmetic must stay in int64."""

    def _checked(name):
        def method(self, other):
            value = getattr(int, name)(self, other)
            assert -(2**63) <= value < 2**63
            return Narrow(value)

        return method

    __add__, __mul__, __rmul__ = _checked("__add__"), _checked("__mul__"), _checked("__rmul__")
    __radd__, __xor__, __rxor__ = _checked("__radd__"), _checked("__xor__"), _checked("__rxor__")
    __and__, __rshift__ = _checked("__and__"), _checked("__rshift__")


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**128 - 1), st.integers(0, 2**40))
@example(0, 2**128 - 1, 0)
def test_no_step_leaves_the_range_of_int64(key, counter, index):
    words = philox.blocks((key, counter), Narrow(index), index)
    assert all(isinstance(w, Narrow) for w in words)
    assert words == Stream(key, counter & 2**128 - 1).block(index)


# ---------------------------------------------------------------- devices that hold less
class WithoutDoubles:
    """The strict namespace of a device that has no double precision."""

    def __getattr__(self, name):
        if name in ("float64", "complex128"):
            raise AttributeError(name)
        value = getattr(strict, name)

        def watched(*args, **options):
            out = value(*args, **options)
            outs = out if isinstance(out, (tuple, list)) else [out]
            assert not any(getattr(o, "dtype", None) == strict.float64 for o in outs), name
            return out

        return watched if callable(value) and not isinstance(value, type) else value


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_single_precision_takes_no_double(op):
    kernel = PORTABLE[op](WithoutDoubles(), signature(op, dtypes.float32, (5, 6)))
    wanted, _ = both(op, dtypes.float32, (5, 6))
    near(kernel(shape_of([301])), wanted(shape_of([301])))


def declined(op, dtype, held):
    device = BaseDevice(DeviceAttributes(index=0))
    device.dtypes = frozenset(held)
    index = KernelIndex()
    index.add(portable.mount(plain, held))
    sig = NodeSig(
        op, "node", {"dtype": dtype, "T": dtypes.float32, "output_dtype": dtype},
        out_dtypes=[dtype], device=device,
    )  # fmt: skip
    found = select(sig, index)
    return None if found.chosen else found.rejections[0].reason


def test_a_device_declines_what_it_cannot_compute():
    int32, int64, single, double = dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64
    assert declined("RandomUniform", single, {single, int64}) is None
    reason = "it computes in int64, which the device does not hold"
    assert declined("RandomUniform", single, {single, int32}) == reason
    reason = "it computes in float32, which the device does not hold"
    assert declined("TruncatedNormal", dtypes.float16, {dtypes.float16, int64}) == reason
    reason = "it computes in float64, which the device does not hold"
    assert declined("Multinomial", int32, {single, int32, int64}) == reason
    assert declined("Multinomial", int32, {single, int32, int64, double}) is None
