"""Reversals by generated code are those of NumPy, of any part of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import llvm, mirrors


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    assert llvm.available()


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape)


PARTS = {
    "all": lambda x: x,
    "a part": lambda x: x[2:-1, 3:-4],
    "other steps": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "not in one piece": lambda x: x[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("cell", [(), (1,), (3,), (2, 2), (5,)])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "?"])
def test_rows_are_reversed(part: str, cell: tuple[int, ...], dtype: str) -> None:
    x = PARTS[part](numbers((190, 77, *cell), dtype))
    out = np.zeros(x.shape, dtype)
    words = int(np.prod(cell)) * (2 if dtype == "c16" else 1)
    possible = words <= 4 and part != "not in one piece"
    assert mirrors.mirrored(x, 1, out) == possible
    if possible:
        np.testing.assert_array_equal(out, x[:, ::-1])


@pytest.mark.parametrize("axis", [0, 1, 2, [0, 1], [1, 2], [0, 2], [-1], []])
@pytest.mark.parametrize("cell", [(), (3,)])
def test_the_op_reverses_what_it_is_told_to(axis: Any, cell: tuple[int, ...]) -> None:
    x = numbers((9, 70, 33, *cell), np.float32)
    axes = [axis] if isinstance(axis, int) else axis
    with tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None] * x.ndim)
        fetches = [tf.reverse(fed, axes), tf.reverse(fed, axes) * 2, tf.reverse(fed[:, 3:60], axes)]
        whole, twice, part = session.run(fetches, {fed: x})
    np.testing.assert_array_equal(whole, np.flip(x, axes))
    np.testing.assert_array_equal(twice, np.flip(x, axes) * 2)
    np.testing.assert_array_equal(part, np.flip(x[:, 3:60], axes))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int64", "complex64"])
def test_types_that_are_not_numpys(name: str) -> None:
    dtype = tf.as_dtype(name)
    x = numbers((40, 60, 3), np.uint8).astype(dtype.as_numpy_dtype)
    with tf.Session() as session:
        found = session.run(tf.reverse(tf.constant(x, dtype), [1]))
    np.testing.assert_array_equal(found.view(np.uint8), x[:, ::-1].copy().view(np.uint8))


def test_flips_of_images_are_the_same_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def flipped() -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session:
            image = tf.placeholder(tf.uint8, [None, None, 3])
            return session.run(tf.image.flip_left_right(image), {image: numbers((50, 60, 3), "u1")})

    generated = flipped()
    monkeypatch.setattr(llvm, "available", lambda: False)
    np.testing.assert_array_equal(generated, flipped())
