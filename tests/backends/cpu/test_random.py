"""Philox4x32-10 and the CPU's random kernels: known answers, layout, sampling."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import RandomStream
from opdock.testing.reference.random import Stream
from opdock_cpu.kernels import random
from opdock_cpu.kernels.random_dist import _truncated_rows
from opdock_cpu.philox import (
    FEW,
    Philox,
    PhiloxState,
    box_muller,
    unit_float32,
    unit_float64,
)

# The known answers that Random123, the authors' library, ships: counter, key, block.
KNOWN = [
    ("0" * 32, "0" * 16, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("f" * 32, "f" * 16, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def number(words: str) -> int:
    """Hexadecimal words, lowest first, as one number."""
    digits = words.replace(" ", "")
    parts = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    return sum(part << 32 * i for i, part in enumerate(parts))


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN)
def test_known_answers(counter: str, key: str, block: str) -> None:
    wanted = [int(word, 16) for word in block.split()]
    assert Philox(number(key), number(counter)).blocks(1)[0].tolist() == wanted
    assert list(Stream(number(key), number(counter)).block(0)) == wanted


@pytest.mark.parametrize("counter", [0, 5, 2**64 - 3, 2**96 + 2**64 - 1, 2**128 - 2])
def test_blocks_agree_with_the_scalar_definition_across_carries(counter: int) -> None:
    key = 0x0123456789ABCDEF
    blocks, scalar = Philox(key, counter).blocks(7), Stream(key, counter)
    assert [tuple(b) for b in blocks.tolist()] == [scalar.block(i) for i in range(7)]


def test_chunks_do_not_show() -> None:
    stream = Philox.from_seeds(3, 4)
    whole = stream.blocks(20_000)
    assert np.array_equal(whole[8190:8200], stream.skip(8190).blocks(10))
    places = np.array([19_999, 0, 8192, 8191])
    assert np.array_equal(stream.blocks_at(places), whole[places])


def test_reserving_moves_the_stream() -> None:
    state = PhiloxState(RandomStream(1, 2))
    first, second = state.reserve(3), state.reserve(1)
    assert second.counter - first.counter == 3


def test_unit_intervals_keep_their_ends() -> None:
    extremes = np.array([0, 0xFFFFFFFF], np.uint32)
    assert unit_float32(extremes).tolist() == [0.0, 1 - 2**-23]
    assert unit_float64(extremes, extremes).tolist() == [0.0, 1 - 2**-52]


def run(build: object, runs: int = 1) -> list[np.ndarray]:
    with tf.Graph().as_default():
        tf.set_random_seed(11)
        tensor = build()  # type: ignore[operator]
        with tf.Session() as session:
            return [session.run(tensor) for _ in range(runs)]


def test_moments() -> None:
    (normal,) = run(lambda: tf.random_normal([100_000], mean=2.0, stddev=3.0, seed=1))
    assert abs(normal.mean() - 2) < 0.05
    assert abs(normal.std() - 3) < 0.05
    (cut,) = run(lambda: tf.truncated_normal([100_000], seed=1))
    assert np.abs(cut).max() < 2
    assert abs(cut.std() - 0.8796) < 0.01
    (gamma,) = run(lambda: tf.random_gamma([50_000], 2.5, 0.5, seed=1))
    assert abs(gamma.mean() - 5) < 0.1
    (poisson,) = run(lambda: tf.random.poisson([3.0, 40.0], [50_000], seed=1))
    assert np.allclose(poisson.mean(axis=0), [3, 40], rtol=0.02)
    assert np.allclose(poisson.var(axis=0), [3, 40], rtol=0.05)


def test_unseeded_ops_differ_between_sessions() -> None:
    with tf.Graph().as_default():
        tensor = tf.random_uniform([4])
        draws = []
        for _ in range(2):
            with tf.Session() as session:
                draws.append(session.run(tensor))
    assert not np.array_equal(draws[0], draws[1])


def test_a_shuffle_is_a_permutation() -> None:
    first, second = run(lambda: tf.random_shuffle(tf.range(50), seed=3), runs=2)
    assert sorted(first.tolist()) == list(range(50))
    assert not np.array_equal(first, second)


def test_the_shuffles_of_one_op_are_those_of_tensorflow() -> None:
    """Five rows take four samples: the second run begins one block on (as TensorFlow 2.21)."""
    with tf.Graph().as_default():
        tf.set_random_seed(1234)
        tensor = tf.random_shuffle(tf.range(5), seed=4)
        with tf.Session() as session:
            orders = [session.run(tensor).tolist() for _ in range(3)]
    assert orders == [[1, 3, 0, 2, 4], [2, 1, 4, 3, 0], [3, 2, 1, 4, 0]]


def test_multinomial_follows_the_logits() -> None:
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-30]], np.float32))
    (drawn,) = run(lambda: tf.multinomial(logits, 40_000, seed=5))
    shares = np.stack([np.bincount(row, minlength=3) / row.size for row in drawn])
    assert np.allclose(shares, [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], atol=0.01)


def test_the_gradient_of_gamma_moves_the_sample() -> None:
    with tf.Graph().as_default():
        alpha = tf.constant([0.7, 3.0])
        drawn = tf.random_gamma([2000], alpha, seed=2)
        (slope,) = tf.gradients(drawn, alpha)
        with tf.Session() as session:
            got = session.run(slope)
    # The mean of a gamma variable is its shape parameter, so the mean slope is one.
    assert np.allclose(got / 2000, 1.0, atol=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bounds", [(-1.0, 2.0), (3.0, 3.1), (2.0, 50.0), (-np.inf, -3.0)])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_one_row_of_bounded_normals_is_what_it_is_beside_others(dtype, bounds, count):
    stream, starts, wanted = Philox(7, 11), np.array([0, 5000, 9000]), np.full(3, count)
    parameters = [np.full(3, value) for value in (0.25, 1.5, *bounds)]
    together = _truncated_rows(stream, np.dtype(dtype), starts, wanted, parameters)
    assert together.shape == (3, count)
    for i in range(3):
        one = [p[i : i + 1] for p in parameters]
        row = _truncated_rows(stream, np.dtype(dtype), starts[i : i + 1], wanted[:1], one)
        np.testing.assert_array_equal(row[0], together[i])


@pytest.mark.parametrize("count", [1, 3, FEW])
def test_few_normals_are_those_of_many(count: int) -> None:
    stream = Philox(0x1234567812345678, 7 << 64)
    for place in (stream, stream.skip(999_999)):
        words = place.blocks(count)
        many = box_muller(words)
        np.testing.assert_array_equal(place.normals(count), many)
        np.testing.assert_array_equal(place.normals(np.arange(count)[::-1].copy()), many[::-1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_few_truncated_normals_are_those_of_many(dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = random._truncated(np.dtype(dtype))
    for start in range(0, 40_000, 1000):
        place = Philox(5, start)
        few = [fill(place, n) for n in (0, 1, 4, 7, 4 * FEW)]
        with monkeypatch.context() as patch:
            patch.setattr(random, "FEW", -1)
            many = [fill(place, n) for n in (0, 1, 4, 7, 4 * FEW)]
        for found, wanted in zip(few, many, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
