"""Samples of activations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SHAPES = (((3, 4), "plain"), ((), "scalar"), ((2, 1, 3, 1, 2), "rank5"), ((257,), "odd"))


def _unary(rng: Sampler, attrs: dict[str, Any] | None = None) -> Iterable[Sample]:
    for shape, tag in _SHAPES:
        yield Sample([rng.away_from(shape)], attrs or {}, tag)
    yield Sample([rng.normal((0, 3))], attrs or {}, "empty", grad=False)


@samples("Relu", "Elu", "Selu", "Softplus", "Softsign")
def activations(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Around zero, and far from it on both sides."""
    yield from _unary(rng)
    if dtype.kind not in "iu":
        far = np.array([-30.0, -5.0, 5.0, 30.0], dtype)
        yield Sample([far], tag="far")


@samples("Relu6")
def relu6(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Below 0, within, and above 6, away from both kinks."""
    yield from _unary(rng)
    yield Sample([np.array([0, 1, 5, 7, 100], dtype)], tag="limits", grad=False)


@samples("LeakyRelu")
def leaky_relu(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Slopes below and above 1."""
    for alpha in (0.2, 0.0, 1.5):
        for sample in _unary(rng, {"alpha": alpha}):
            yield Sample(sample.inputs, sample.attrs, f"{sample.tag}-{alpha}", sample.grad)


def _binary(rng: Sampler, attrs: dict[str, Any] | None = None) -> Iterable[Sample]:
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape), rng.away_from(shape)], attrs or {}, tag)
    yield Sample([rng.normal((0, 3)), rng.normal((0, 3))], attrs or {}, "empty", grad=False)


@samples(
    "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad",
    "SoftsignGrad",
)  # fmt: skip
def activation_grads(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A gradient and the feature (or output) it belongs to."""
    yield from _binary(rng)


@error_samples("ReluGrad")
def relu_grad_shapes() -> Iterable[ErrorSample]:
    """Both inputs have one shape."""
    inputs = [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)]
    yield ErrorSample(
        inputs, exception="ValueError", match="Dimension 1 in both shapes must be equal",
        phase="build",
    )  # fmt: skip
