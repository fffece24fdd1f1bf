"""Large ops are shared out over threads, give the same bits for any number, and NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.fake_quant import quantize_and_dequantize
from opdock_cpu.crew import Loop
from opdock_cpu.jit.looped import Looped
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(29)
MANY = 1 << 17


def _reals(*shape: int) -> Any:
    return given(RNG.normal(size=shape).astype(np.float32))


def _places(count: int, *sizes: int) -> Any:
    return given(np.stack([RNG.integers(0, n, count) for n in sizes], axis=1))


def _cells(count: int, *sizes: int) -> Any:
    flat = np.sort(RNG.choice(np.prod(sizes), count, replace=False))
    return np.stack(np.unravel_index(flat, sizes), axis=1)


def _sparse(count: int, *sizes: int) -> tf.SparseTensor:
    return tf.SparseTensor(given(_cells(count, *sizes)), _reals(count), sizes)


def _ragged() -> Any:
    splits = np.sort(RNG.integers(0, MANY, 999))
    rows = np.concatenate([[0], splits, [MANY]])
    outer = np.concatenate([[0], np.sort(RNG.integers(0, 1000, 40)), [1000]])
    return tf.RaggedTensor.from_nested_row_splits(_reals(MANY), [given(outer), given(rows)])


def _sums() -> Any:
    a, b = _sparse(MANY, 700, 700), _sparse(MANY, 700, 700)
    total = tf.sparse.add(a, b)
    return [total.values, *tf.gradients(total.values, [a.values, b.values])]


def _beyond() -> Any:
    x = np.abs(RNG.normal(size=MANY)) + 0.1
    alpha = np.abs(RNG.normal(size=MANY)) + 0.1
    return tf.raw_ops.RandomGammaGrad(
        alpha=given(alpha.astype(np.float32)), sample=given(x.astype(np.float32))
    )


def _scaled() -> Any:
    return tf.raw_ops.ScaleAndTranslateGrad(
        grads=_reals(2, 150, 200, 3), original_image=_reals(2, 90, 300, 3), scale=[1.7, 0.6],
        translation=[-3.0, 5.0], kernel_type="lanczos3", antialias=True,
    )  # fmt: skip


def _diagonals(*shape: int) -> Any:
    return given((RNG.normal(size=shape) + [[[1], [9], [1]]]).astype(np.float32))


OPS: dict[str, tuple[Callable[[], Any], str]] = {
    "coordinates": (lambda: tf.gather_nd(_reals(300, 40), _places(MANY, 300, 40)), "_pick"),
    "rows": (lambda: tf.gather(_reals(5000, 40), _places(MANY // 16, 5000)[:, 0]), "_pick"),
    "columns": (lambda: tf.gather(_reals(9, 50, 3), _places(9999, 50)[:, 0], axis=1), "_pick"),
    "scattered": (lambda: tf.scatter_nd(_places(MANY, 90, 8), _reals(MANY), [90, 8]), "_place"),
    "dense": (lambda: tf.sparse.to_dense(_sparse(MANY, 999, 999)), "_place"),
    "with dense": (lambda: (_sparse(MANY, 900, 900) * _reals(900)).values, "_pick"),
    "sums": (_sums, "_find"),
    "ragged": (lambda: _ragged().to_sparse().indices, "_coordinates"),
    "nth": (lambda: tf.contrib.nn.nth_element(_reals(99, 2000), 77, reverse=True), "_select"),
    "grid": (lambda: quantize_and_dequantize(_reals(MANY), -1.0, 1.0, True), "_on_one"),
    "next": (lambda: tf.math.nextafter(_reals(MANY), _reals(MANY)), "_next"),
    "quotients": (lambda: _places(MANY, 7, 9, 11) // given(np.array([2, 1, 3])), "_divide"),
    "transposed": (lambda: tf.transpose(_reals(500, 700)), "_turned"),
    "banded": (
        lambda: tf.linalg.tridiagonal_matmul(_diagonals(1, 3, 300), _reals(1, 300, 500), "compact"),
        "_multiply",
    ),
    "solved": (
        lambda: tf.linalg.tridiagonal_solve(_diagonals(1, 3, 99), _reals(1, 99, 2600), "compact"),
        "_solve",
    ),
    "gammas": (_beyond, "_slope"),
    "images": (_scaled, "_lines"),
}


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Into how many chunks a loop was divided most, by the name of its function."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    running, most, call, begin = [""], dict[str, int](), Looped.__call__, Loop.begin

    def named(self: Looped, *args: Any, **words: Any) -> bool:
        running[0] = self._function.__name__
        return call(self, *args, **words)

    def counted(self: Loop, chunks: int, *args: Any) -> Any:
        most[running[0]] = max(chunks, most.get(running[0], 0))
        return begin(self, chunks, *args)

    monkeypatch.setattr(Looped, "__call__", named)
    monkeypatch.setattr(Loop, "begin", counted)
    return most


@pytest.mark.parametrize("name", OPS)
def test_the_bits_are_the_same_for_any_number_of_threads(
    name: str, shared: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    build, loop = OPS[name]
    with tf.Graph().as_default():
        fetches = tf.nest.flatten(build())
        found = []
        for threads in (1, 2, 4):
            config = tf.ConfigProto(intra_op_parallelism_threads=threads)
            with tf.Session(config=config) as session:
                found.append(session.run(fetches))
        assert shared[loop] > 1
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
        monkeypatch.setattr(Looped, "__call__", lambda *args, **words: False)
        with tf.Session() as session:
            for a, b in zip(found[0], session.run(fetches), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_a_shuffle_is_numpy_s(shared: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default():
        shuffled = tf.random_shuffle(given(np.arange(MANY)), seed=5)
        with tf.Session() as session:
            found = session.run(shuffled)
        assert shared["_pick"] > 1
        monkeypatch.setattr(Looped, "__call__", lambda *args, **words: False)
        monkeypatch.setattr("opdock_cpu.kernels.random.MANY", 1 << 40)
        with tf.Session() as session:
            np.testing.assert_array_equal(found, session.run(shuffled))
    assert sorted(found) == list(range(MANY))
