"""Generated batch normalization against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opdock.plugin import NodeSig, dtypes
from opdock_cpu.jit import norm

RNG = np.random.default_rng(11)
F32 = dtypes.float32


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(norm.numpy_kernels, "fused_batch_norm", lambda sig: _never)
    monkeypatch.setattr(norm.numpy_kernels, "fused_batch_norm_grad", lambda sig: _never)


def _never(*arrays: Any) -> None:
    pytest.fail("NumPy served instead of generated code")


def sig_of(op: str, shape: tuple[int, ...], training: bool, factor: float = 1.0) -> NodeSig:
    attrs = {"T": F32, "U": F32, "epsilon": 1e-3, "data_format": "NHWC", "is_training": training,
             "exponential_avg_factor": factor}  # fmt: skip
    vector = (shape[-1],)
    return NodeSig(op, "bn", attrs, (shape, *[vector] * 4), (F32,) * 5, (), ())


def data(shape: tuple[int, ...], mean: float, spread: float) -> tuple[np.ndarray, ...]:
    x = RNG.normal(mean, spread, shape).astype(np.float32)
    vectors = [RNG.uniform(0.5, 1.5, shape[-1]).astype(np.float32) for _ in range(4)]
    return (x, *vectors)


@pytest.mark.parametrize("shape", [(8, 14, 14, 64), (4, 40, 40, 3), (100, 1, 1, 50), (9, 500)])
@pytest.mark.parametrize(("mean", "spread"), [(0, 1), (1000, 0.5), (-3, 1e-3)])
def test_training(shape: tuple[int, ...], mean: float, spread: float) -> None:
    if len(shape) == 2:
        shape = (shape[0], 1, 1, shape[1])
    x, scale, offset, old_mean, old_variance = data(shape, mean, spread)
    run = norm.fused_batch_norm(sig_of("FusedBatchNorm", shape, True))
    got = run(x, scale, offset, old_mean, old_variance, None)
    y, batch_mean, batch_variance, used_mean, used_variance = got
    wide = x.astype(np.float64).reshape(-1, shape[-1])
    exact_mean, exact_variance = wide.mean(0), wide.var(0)
    np.testing.assert_allclose(used_mean, exact_mean, rtol=2e-7, atol=1e-7)
    np.testing.assert_allclose(used_variance, exact_variance, rtol=1e-5)
    np.testing.assert_allclose(batch_variance, wide.var(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(batch_mean, used_mean)
    wanted = (wide - exact_mean) / np.sqrt(exact_variance + 1e-3) * scale + offset
    slack = 1e-4 * abs(mean) + 1e-5
    np.testing.assert_allclose(y.reshape(wide.shape), wanted, rtol=1e-4, atol=slack)


def test_moving_averages() -> None:
    x, scale, offset, mean, variance = data((8, 8, 8, 16), 1, 2)
    run = norm.fused_batch_norm(sig_of("FusedBatchNormV3", x.shape, True, 0.25))
    _, batch_mean, *_, extra = run(x, scale, offset, mean, variance, None)
    wanted = mean * 0.75 + x.reshape(-1, 16).mean(0) * 0.25
    np.testing.assert_allclose(batch_mean, wanted, rtol=1e-5)
    assert extra.shape == ()


def test_inference() -> None:
    x, scale, offset, mean, variance = data((8, 8, 8, 16), 1, 2)
    run = norm.fused_batch_norm(sig_of("FusedBatchNorm", x.shape, False))
    y, *rest = run(x, scale, offset, mean, variance, None)
    np.testing.assert_allclose(
        y, (x - mean) / np.sqrt(variance + 1e-3) * scale + offset, rtol=1e-5, atol=1e-5
    )
    for got, wanted in zip(rest, (mean, variance) * 2, strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert not np.shares_memory(got, wanted)


@pytest.mark.parametrize("training", [True, False])
def test_gradient(training: bool) -> None:
    x, scale, _, mean, variance = data((8, 10, 10, 24), 2, 1)
    grad = RNG.normal(size=x.shape).astype(np.float32)
    if training:
        mean, variance = (f(x.reshape(-1, 24), 0).astype(np.float32) for f in (np.mean, np.var))
    run = norm.fused_batch_norm_grad(sig_of("FusedBatchNormGrad", x.shape, training))
    dx, dscale, doffset, *_ = run(grad, x, scale, mean, variance, None)
    wide, dy = (a.astype(np.float64).reshape(-1, 24) for a in (x, grad))
    inverse = 1 / np.sqrt(variance.astype(np.float64) + 1e-3)
    centred = (wide - mean) * inverse
    wanted = dy * scale * inverse
    if training:
        wanted = (dy - dy.mean(0) - centred * (dy * centred).mean(0)) * scale * inverse
    np.testing.assert_allclose(dx.reshape(wide.shape), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dscale, (dy * centred).sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(doffset, dy.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ready", [True, False])
def test_given_buffers_are_filled(monkeypatch: pytest.MonkeyPatch, ready: bool) -> None:
    x, scale, offset, mean, variance = data((8, 10, 10, 24), 2, 1)
    if not ready:
        monkeypatch.undo()  # here NumPy may serve
        monkeypatch.setattr("opdock_cpu.jit.generated.Generated.ready", False)
    forward = norm.fused_batch_norm(sig_of("FusedBatchNorm", x.shape, True))
    backward = norm.fused_batch_norm_grad(sig_of("FusedBatchNormGrad", x.shape, True))
    inputs = (x, scale, offset, mean, variance)
    for run, args in ((forward, inputs), (backward, (x, x, scale, mean, variance))):
        want = run(*args, None)
        out = tuple(np.full_like(w, np.nan) if i != 1 else None for i, w in enumerate(want))
        for got, wanted, buffer in zip(run(*args, out), want, out, strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert buffer is None or got is buffer


@pytest.mark.parametrize("far", [1e3, 1e5])
def test_rows_that_mislead_the_first_guess(far: float) -> None:
    """Half of the sample is far from all other rows, so the sums are taken again."""
    x, *vectors = data((8, 32, 32, 16), 2, 1)
    matrix = x.reshape(-1, 16)
    matrix[:: len(matrix) // 64][:32] += np.float32(far)
    run = norm.fused_batch_norm(sig_of("FusedBatchNorm", x.shape, True))
    *_, mean, variance = run(x, *vectors, None)
    wide = matrix.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance, wide.var(0), rtol=1e-5)


def test_a_column_that_is_no_number() -> None:
    x, *vectors = data((8, 8, 8, 16), 1, 2)
    x[3, 2, 1, 5], x[0, 0, 0, 7] = np.nan, np.inf
    run = norm.fused_batch_norm(sig_of("FusedBatchNorm", x.shape, True))
    with np.errstate(invalid="ignore"):
        y, *_, variance = run(x, *vectors, None)
    spoiled = np.isnan(y).all((0, 1, 2))
    assert spoiled[5] and spoiled[7] and spoiled.sum() == 2
    assert np.isnan(variance[[5, 7]]).all()
