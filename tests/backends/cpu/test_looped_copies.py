"""Transposes and casts in generated code give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.kernels import matrix
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(11)


def test_half_precision(both: Any) -> None:
    """All halves there are, and singles between them, on them and beyond."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    singles = np.sort(every[np.isfinite(every)].astype(np.float32))
    between = (singles[1:] + singles[:-1]) / 2
    beyond = np.float32([65519.99, 65520.0, -65520.0, 1e30, -1e30, np.inf, np.nan, 1e-30, 2.0**-25])
    spread = np.concatenate(
        [singles, between, np.nextafter(between, np.float32(np.inf)), beyond]
    ).astype(np.float32)

    def build() -> Any:
        return [tf.cast(given(every), tf.float32), tf.cast(given(spread), tf.float16)]

    found, plain = both(build, "_converted")
    with np.errstate(all="ignore"):
        wanted = [every.astype(np.float32), spread.astype(np.float16)]
    for results in (found, plain):
        for result, right in zip(results, wanted, strict=True):
            assert result.dtype == right.dtype
            numbers = ~np.isnan(right)
            np.testing.assert_array_equal(np.isnan(result), ~numbers)
            # By bits: of zeros the sign counts.
            bits = np.uint16 if right.itemsize == 2 else np.uint32
            np.testing.assert_array_equal(result.view(bits)[numbers], right.view(bits)[numbers])


@pytest.mark.parametrize(
    ("dtype", "shape", "perm"),
    [
        (np.float32, (512, 512), (1, 0)),
        (np.float32, (259, 1030), (1, 0)),  # neither side is made of whole pieces
        (np.float64, (2, 257, 300), (0, 2, 1)),
        (np.complex64, (301, 270), (1, 0)),
        (np.float16, (600, 513), (1, 0)),
        (np.bool_, (999, 1001), (1, 0)),
        (tf.bfloat16.as_numpy_dtype, (512, 600), (1, 0)),
    ],
)
def test_large_transposes(both: Any, dtype: Any, shape: tuple[int, ...], perm: Any) -> None:
    x = RNG.normal(size=shape).astype(dtype)

    def build() -> Any:
        return tf.transpose(given(x), perm)

    found, plain = both(build, "_turned")
    for result in (*found, *plain):
        np.testing.assert_array_equal(result, x.transpose(perm))


@pytest.mark.parametrize(
    ("shape", "perm"), [((4, 3, 50_000), (2, 1, 0)), ((70_000, 4, 4), (0, 2, 1))]
)
def test_transposes_of_many_small_matrices_are_one_copy(
    both: Any, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], perm: Any
) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    monkeypatch.setattr(matrix, "_copy_blocks", lambda *_: pytest.fail("in pieces"))
    calls = []
    copy = matrix.copy_turned
    monkeypatch.setattr(matrix, "copy_turned", lambda *args: (calls.append(1), copy(*args)))
    found, plain = both(lambda: tf.transpose(given(x), perm))
    for result in (*found, *plain):
        np.testing.assert_array_equal(result, x.transpose(perm))
    assert len(calls) == 2


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex128", "float16"])
@pytest.mark.parametrize(
    ("shape", "along", "batch"),
    [((40, 50), 1, 0), ((40, 50), 0, 1), ((3, 40, 5, 20, 2), 1, 3), ((3, 40, 5, 20, 2), 3, 1)],
)
def test_sequences_backwards(
    both: Any, dtype: str, shape: tuple[int, ...], along: int, batch: int
) -> None:
    x = RNG.integers(0, 99, shape).astype(dtype)
    lengths = RNG.integers(0, shape[along] + 1, shape[batch])

    def build() -> Any:
        return tf.reverse_sequence(given(x), given(lengths), seq_axis=along, batch_axis=batch)

    (found,), (wanted,) = both(build, "_sequences")
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_short_pieces_are_repeated() -> None:
    for own, wanted in (((3,), (50, 3)), ((2, 1), (9, 2, 5)), ((), (7,)), ((1, 2), (6, 7, 2))):
        x = RNG.integers(0, 250, own).astype(np.uint8)
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.broadcast_to(given(np.asarray(x)), wanted))
        np.testing.assert_array_equal(found, np.broadcast_to(x, wanted))
