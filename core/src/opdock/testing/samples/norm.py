"""Samples of fused batch normalization.

As in TensorFlow, gradients flow from y to x, scale and offset alone. A training gradient's own
gradient takes the reserves for functions of x, the oracle for inputs: `tests/core/ops/test_norm.py`
differentiates by x twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _attrs(training: bool, data_format: str = "NHWC", epsilon: float = 1e-3) -> dict[str, Any]:
    return {"is_training": training, "data_format": data_format, "epsilon": epsilon}


def _vector(rng: Sampler, n: int, positive: bool = False) -> Any:
    drawn = rng.positive((n,)) if positive else rng.normal((n,))
    return np.asarray(drawn, np.float32)


def _cases() -> Iterator[tuple[tuple[int, ...], dict[str, Any], str]]:
    yield (2, 3, 2, 3), _attrs(True), "training"
    yield (2, 3, 2, 3), _attrs(False), "inference"
    yield (2, 3, 2, 2), _attrs(True, "NCHW"), "training-first"
    yield (2, 3, 2, 2), _attrs(False, "NCHW"), "inference-first"
    yield (1, 1, 1, 2), _attrs(True, epsilon=0.1), "one-pixel"
    yield (64, 4, 4, 2), _attrs(True), "many"
    yield (0, 3, 2, 2), _attrs(True), "empty"
    yield (2, 2, 0, 3), _attrs(True, "NCHW"), "empty-first"
    yield (0, 3, 2, 2), _attrs(False), "empty-inference"


def _channels(shape: tuple[int, ...], attrs: dict[str, Any]) -> int:
    return shape[1 if attrs["data_format"] == "NCHW" else 3]


@samples("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Training and inference, both formats, and a moving average."""
    for shape, attrs, tag in _cases():
        n = _channels(shape, attrs)
        affine = [_vector(rng, n), _vector(rng, n)]
        given = [np.zeros(0, np.float32)] * 2
        if not attrs["is_training"]:
            given = [_vector(rng, n), _vector(rng, n, positive=True)]
        yield Sample(
            [rng.normal(shape), *affine, *given], attrs, tag,
            grad=shape[0] < 64, grad_inputs=(0, 1, 2), grad_outputs=(0,),
        )  # fmt: skip
    moving = [_vector(rng, 3), _vector(rng, 3), _vector(rng, 3), _vector(rng, 3, positive=True)]
    attrs = {**_attrs(True), "exponential_avg_factor": 0.25}
    inputs = [rng.normal((2, 2, 2, 3)), *moving]
    yield Sample(inputs, attrs, "moving", grad_inputs=(0, 1, 2), grad_outputs=(0,))


def _grads(dtype: np.dtype[Any], rng: Sampler, reserves: int) -> Iterable[Sample]:
    for shape, attrs, tag in _cases():
        n = _channels(shape, attrs)
        x = rng.normal(shape)
        wide = np.asarray(x, np.float64)
        axes = (0, 2, 3) if attrs["data_format"] == "NCHW" else (0, 1, 2)
        mean, var = np.full((2, n), np.nan)
        if wide.size:
            mean, var = wide.mean(axis=axes), wide.var(axis=axes)
        if not attrs["is_training"]:
            mean, var = _vector(rng, n), _vector(rng, n, positive=True)
        kept = [np.asarray(mean, np.float32), np.asarray(var, np.float32)]
        extra = [np.zeros((), np.float32)] * (reserves - 2)
        inputs = [rng.normal(shape), x, _vector(rng, n), *kept, *extra]
        # The reserves follow from x, so by x alone the op's own gradient is not the whole one.
        yield Sample(
            inputs, attrs, tag,
            grad=shape[0] < 64, grad_inputs=(0, 2), grad_outputs=(0, 1, 2),
        )  # fmt: skip


@samples("FusedBatchNormGrad", "FusedBatchNormGradV2")
def fused_batch_norm_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With the reserves that the forward op leaves."""
    yield from _grads(dtype, rng, 2)


@samples("FusedBatchNormGradV3")
def fused_batch_norm_grad_v3(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With the reserves that the forward op leaves."""
    yield from _grads(dtype, rng, 3)


@error_samples("FusedBatchNormV3")
def fused_batch_norm_errors() -> Iterable[ErrorSample]:
    """One scale per channel."""
    vectors = [np.zeros(n, np.float32) for n in (4, 3, 0, 0)]
    yield ErrorSample(
        [np.zeros((1, 2, 2, 3), np.float32), *vectors], _attrs(True), "ValueError",
        "Dimensions must be equal, but are 3 and 4", "build",
    )  # fmt: skip


_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)


def _old_attrs(scaled: bool) -> dict[str, Any]:
    return {"variance_epsilon": 1e-3, "scale_after_normalization": scaled}


def _statistics(rng: Sampler, n: int) -> list[Any]:
    return [rng.normal((n,)), rng.positive((n,))]


@samples("BatchNormWithGlobalNormalization", types=_FLOATS)
def batch_norm(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without a scale."""
    for scaled, tag in ((True, "scaled"), (False, "plain")):
        inputs = [rng.normal((2, 3, 2, 3)), *_statistics(rng, 3), rng.normal((3,))]
        yield Sample([*inputs, rng.normal((3,))], _old_attrs(scaled), tag)
    vectors = [*_statistics(rng, 2), rng.normal((2,)), rng.normal((2,))]
    yield Sample([rng.normal((0, 2, 2, 2)), *vectors], _old_attrs(True), "empty")


@samples("BatchNormWithGlobalNormalizationGrad", types=_FLOATS)
def batch_norm_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without a scale; TF defines no gradient of it."""
    for scaled, tag in ((True, "scaled"), (False, "plain")):
        inputs = [rng.normal((2, 3, 2, 3)), *_statistics(rng, 3), rng.normal((3,))]
        yield Sample([*inputs, rng.normal((2, 3, 2, 3))], _old_attrs(scaled), tag, grad=False)


@error_samples("BatchNormWithGlobalNormalization")
def batch_norm_errors() -> Iterable[ErrorSample]:
    """One mean per channel."""
    vectors = [np.ones(n, np.float32) for n in (4, 3, 3, 3)]
    yield ErrorSample(
        [np.zeros((1, 2, 2, 3), np.float32), *vectors], _old_attrs(True), "ValueError",
        "Dimensions must be equal, but are 3 and 4", "build",
    )  # fmt: skip
