"""Kernels that share large arrays out give what NumPy gives, and the same bits on any threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu import multiplying
from opdock_cpu.kernels import argmax, bucketize, fft, histogram
from opdock_cpu.spreading import spread
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(5)
Both = Callable[..., tuple[list[Any], list[Any]]]


def _normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def _on_threads(build: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What a graph gives with one, two and four threads."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    found = []
    for count in (1, 2, 4):
        config = tf.ConfigProto(intra_op_parallelism_threads=count)
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            fetches = build()
            found.append([session.run(fetches) for _ in range(3)][-1])
    return found


def _same_bits(results: list[list[Any]]) -> None:
    first, *others = results
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()


# ---------------------------------------------------------------- arrays repeated
@pytest.mark.parametrize(
    ("shape", "source"),
    [
        ((3, 5000, 3), (3, 1, 3)), ((70000, 3), (3,)), ((5000, 3), (5000, 1)), ((2, 7), ()),
        ((4, 3, 2, 5), (4, 1, 2, 1)), ((6, 1, 9000, 2), (6, 1, 1, 2)), ((40, 9), (1, 9)),
        ((2, 3, 4), (2, 3, 4)), ((0, 3), (3,)), ((5, 40), (5, 1)), ((1, 1), (1, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128"])
def test_repeated(shape: tuple[int, ...], source: tuple[int, ...], dtype: str) -> None:
    values, out = (10 * RNG.normal(size=source)).astype(dtype), np.zeros(shape, dtype)
    spread(out, values)
    np.testing.assert_array_equal(out, np.broadcast_to(values, shape))


def test_tiles_and_broadcasts_of_strings() -> None:
    with tf.Session() as session:
        words = tf.constant([["a", "b", "c"]])
        tiled, wide = session.run([tf.tile(words, [400, 2]), tf.broadcast_to(words, [300, 3])])
    np.testing.assert_array_equal(tiled, np.tile([[b"a", b"b", b"c"]], [400, 2]))
    np.testing.assert_array_equal(wide, np.broadcast_to([[b"a", b"b", b"c"]], [300, 3]))


# ---------------------------------------------------------------- places of extremes
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_along_columns(both: Both, op: str, dtype: str, axis: int) -> None:
    values = RNG.integers(0, 50, (5, 7, 600)).astype(dtype)  # with many ties
    if "float" in dtype:
        values[0, 2], values[3, :, 5], values[:, 1, 7], values[:, :, 9] = (
            np.nan, -np.inf, np.inf, np.nan,
        )  # fmt: skip
        values[0, :, 11], values[:, 0, 11] = -np.inf, np.nan
    found, plain = both(lambda: getattr(tf, op)(given(values), axis, output_type=tf.int32), "_best")
    assert found[0].dtype == np.int32
    np.testing.assert_array_equal(found[0], plain[0])


def test_all_extremes_are_the_first(both: Both) -> None:
    values = np.full((9, 600), np.iinfo(np.int32).min, np.int32)
    found, _ = both(lambda: tf.argmax(given(values), 0), "_best")
    assert not found[0].any()


# ---------------------------------------------------------------- counts and buckets
@pytest.mark.parametrize("size", [1, 7, 100, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts(both: Both, size: int, weighted: bool) -> None:
    values, weights = RNG.integers(0, 120, 9000).astype(np.int32), _normal(9000)
    name = "_add_up" if weighted else "_count"

    def build() -> Any:
        more = given(weights) if weighted else tf.constant([], tf.float32)
        return tf.raw_ops.Bincount(arr=given(values), size=size, weights=more)

    found, plain = both(build, name)
    np.testing.assert_array_equal(found[0], plain[0])


def test_negative_numbers_are_not_counted() -> None:
    values = np.arange(-1, 50_000, dtype=np.int32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="non-neg"):
        session.run(tf.bincount(given(values)))


@pytest.mark.parametrize("count", [1, 3, 16, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_buckets(both: Both, count: int, dtype: str) -> None:
    limits = np.sort(RNG.integers(-40, 40, count)).astype(np.float32)
    values = RNG.integers(-50, 50, (40, 50)).astype(dtype)
    if "float" in dtype:
        values[0, :4] = np.nan, np.inf, -np.inf, -0.0
    name = "_compare" if count <= bucketize._FEW else "_search"
    found, plain = both(
        lambda: tf.raw_ops.Bucketize(input=given(values), boundaries=limits.tolist()), name
    )
    np.testing.assert_array_equal(found[0], plain[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_differences_of_lists(both: Both, dtype: str) -> None:
    x, y = (RNG.integers(0, 200, 3000).astype(dtype) for _ in range(2))
    y = y[:150]
    if "float" in dtype:
        x, y = x / 7, y / 7
        x[:3], y[:2] = (np.nan, -0.0, 0.0), (np.nan, 0.0)
    found, plain = both(lambda: list(tf.setdiff1d(given(x), given(y))), "_collect", "_look_up")
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------- products
@pytest.mark.parametrize("turned", [*itertools.product([False, True], repeat=2)])
def test_products(turned: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _normal(500, 130), _normal(130, 600)
    first, second = (np.array(x.T, order="C").T if t else x for x, t in zip((a, b), turned))
    found = multiplying.product(first, second)
    assert found is not None
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)
    wide = multiplying.product(_normal(500, 200)[:, 7:137], b)
    assert wide is not None and wide.shape == (500, 600)


def test_what_is_no_product_for_parts() -> None:
    small, vector = _normal(9, 9), _normal(3000, 3000)
    assert multiplying.product(small, small) is None
    assert multiplying.product(vector, vector[:, :1]) is None
    assert multiplying.product(vector.astype(np.float64), vector) is None
    assert multiplying.product(vector, vector[:5]) is None


# ---------------------------------------------------------------- transforms
@pytest.mark.parametrize(
    "length", [1 << 17, 66 * 4861, 60 * 1759, 131_101, 3 * 5 * 7 * 11 * 13 * 17]
)
def test_long_transforms(length: int) -> None:
    x = (_normal(length) + 1j * _normal(length)).astype(np.complex64)
    with tf.Session() as session:
        found = session.run([tf.fft(given(x)), tf.ifft(given(x))])
    for got, wanted in zip(found, (np.fft.fft(x), np.fft.ifft(x)), strict=True):
        assert got.dtype == np.complex64
        assert np.abs(got - wanted).max() <= 3e-6 * np.abs(wanted).max()


def test_lengths_are_divided_near_their_root() -> None:
    assert fft._divided(1 << 20) == 1 << 10
    assert fft._divided(66 * 48661) == 66
    assert fft._divided(131_101) == 1  # a prime
    assert fft._divided(60 * 1759) == 60  # of which it is the large prime that costs
    assert fft._divided(1 << 16) == 1


# ---------------------------------------------------------------- threads
def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = _normal(700, 700), _normal(700, 700)
    z = (x + 1j * y).astype(np.complex64)
    positive = np.abs(x) + np.float32(0.1)
    whole = RNG.integers(0, 90, 300_000).astype(np.int32)

    def build() -> list[Any]:
        a, b, c = given(x), given(y), given(z)
        return [
            tf.argmax(a, 0), tf.bincount(given(whole)), tf.norm(a), tf.norm(a, axis=1),
            tf.raw_ops.EuclideanNorm(input=a, axis=[0]), tf.floormod(a, b), tf.truncatemod(a, b),
            tf.raw_ops.ClipByValue(t=a, clip_value_min=-0.5, clip_value_max=0.5),
            tf.fft(c), tf.ifft2d(c), tf.signal.rfft2d(a), tf.fft(tf.reshape(c, [-1])),
            tf.digamma(given(positive)), tf.igamma(given(positive), tf.abs(b)),
            tf.quantization.fake_quant_with_min_max_args(a),
            tf.quantization.fake_quant_with_min_max_vars_per_channel(a, b[0] - 3, b[1] + 3),
        ]  # fmt: skip

    _same_bits(_on_threads(build, monkeypatch))


def test_cells_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    given_ = [_normal(300, 200), _normal(300, 150), _normal(350, 300), _normal(350, 150)]
    biases = [_normal(300), _normal(150)]

    def build() -> list[Any]:
        return list(tf.raw_ops.GRUBlockCell(
            **dict(zip(("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"),
                       map(given, (*given_, *biases)), strict=True))
        ))  # fmt: skip

    _same_bits(_on_threads(build, monkeypatch))


# ---------------------------------------------------------------- what is shared out
def test_work_goes_to_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these is many chunks: a helper may take some of them."""
    seen: dict[str, int] = {}
    for module, name in ((argmax, "_BEST"), (histogram, "_COUNT"), (bucketize, "_COMPARE")):
        loop = getattr(module, name)

        def spied(turns: int, steps: float, *args: Any, _n: str = name, _l: Any = loop) -> bool:
            seen[_n] = min(turns, int(steps) >> 15)
            return bool(_l(turns, steps, *args))

        monkeypatch.setattr(module, name, spied)
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    x = _normal(600, 2100)
    with tf.Session() as session:
        session.run([
            tf.argmax(given(x), 0), tf.bincount(given(np.abs(x * 9).astype(np.int32))),
            tf.raw_ops.Bucketize(input=given(x), boundaries=[0.0, 1.0]),
        ])  # fmt: skip
    assert sorted(seen) == ["_BEST", "_COMPARE", "_COUNT"]
    assert min(seen.values()) > 1


# ---------------------------------------------------------------- margins
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("last", [(0, 2), (1, 0), (2, 3), (0, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_folded_margins(both: Both, mode: str, last: tuple[int, int], dtype: str) -> None:
    x = RNG.integers(-9, 9, (40, 11, 5 + sum(last))).astype(dtype)
    paddings = np.array([(2, 1), (0, 3), last], np.int32)

    def build() -> Any:
        return tf.raw_ops.MirrorPadGrad(input=given(x), paddings=paddings, mode=mode)

    found, plain = both(build, *(["_fold"] if any(last) else []))
    assert found[0].dtype == x.dtype
    np.testing.assert_array_equal(found[0], plain[0])


# ---------------------------------------------------------------- triangles, sequences
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_triangles(both: Both, lower: bool, adjoint: bool, dtype: str) -> None:
    a = (RNG.normal(size=(7, 30, 5, 5)) + 4 * np.eye(5)).astype(dtype)
    rhs = RNG.normal(size=(7, 30, 5, 3)).astype(dtype)

    def build() -> Any:
        return tf.linalg.triangular_solve(given(a), given(rhs), lower=lower, adjoint=adjoint)

    found, _ = both(build, "_substituted")
    kept = np.tril(a) if lower else np.triu(a)
    product = (np.swapaxes(kept, -1, -2) if adjoint else kept).astype(np.float64) @ found[0]
    np.testing.assert_allclose(product, rhs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_sequences_that_end_early(count: int) -> None:
    cells, batch, width = 100, 4, 3  # more cells than there is a loop for
    x, w = _normal(6, batch, width), _normal(width + cells, 4 * cells) / 10
    state, bias = _normal(batch, cells), _normal(4 * cells)

    def graph(sequence: Any) -> list[Any]:
        first, weights = tf.constant(sequence), tf.constant(w)
        peephole = tf.zeros([cells])
        outs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(min(count, len(sequence)), tf.int64), x=first, cs_prev=state,
            h_prev=state, w=weights, wci=peephole, wcf=peephole, wco=peephole, b=bias,
        )  # fmt: skip
        return [*outs, *tf.gradients(outs.h, [first, weights])]

    with tf.Session() as session:
        whole, cut = session.run([graph(x), graph(x[:count])])
    for found, wanted in zip(whole, cut, strict=True):
        length = len(wanted)
        np.testing.assert_allclose(found[:length], wanted, rtol=1e-5, atol=1e-6)
        assert found.shape == wanted.shape or not found[length:].any()


@pytest.mark.parametrize("narrow", [False, True])
def test_rounding_to_fixed_ranges(both: Both, narrow: bool) -> None:
    x = 3 * _normal(40, 50)
    x[0, :3] = np.nan, np.inf, -np.inf
    low, high = _normal(50) - 2, _normal(50) + 2
    low[:2], high[:2] = 0, (0, 4)

    def build() -> list[Any]:
        quant, words = tf.quantization, {"num_bits": 5, "narrow_range": narrow}
        first, grad = given(x), given(_normal(40, 50))
        return [
            quant.fake_quant_with_min_max_args(first, -1.5, 2.0, **words),
            quant.fake_quant_with_min_max_args_gradient(grad, first, -1.5, 2.0, **words),
            quant.fake_quant_with_min_max_vars_per_channel(first, given(low), given(high), **words),
        ]

    found, plain = both(build, "_onto", "_inside", "_nudged", "_onto_each")
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
