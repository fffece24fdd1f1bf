"""Samples of the ops that hand their input on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SHAPES = (((2, 3), "plain"), ((), "scalar"), ((0, 2), "empty"), ((2, 1, 2, 1, 2), "rank5"))


@samples("Identity", "Snapshot", "RefIdentity", "GuaranteeConst")
def identities(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Different ranks."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], {}, tag)


@samples("StopGradient")
def constants(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Different ranks; no gradient is asked for."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], {}, tag, grad=False)


@samples("PreventGradient")
def prevented(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Asking for the gradient is an error."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], {"message": "not here"}, tag, grad=False)


@samples("IdentityN")
def lists(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values of different types and shapes."""
    yield Sample([[rng.normal((2, 3)), np.array([1, 2], np.int32)]], {}, "mixed")
    yield Sample([[rng.normal(())]], {}, "one")


@samples("PlaceholderWithDefault", vary="dtype")
def defaults(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The default itself, which is not fed over."""
    yield Sample([rng.normal((2, 3))], {"shape": (2, 3)}, "full")
    yield Sample([rng.normal((2, 3))], {"shape": (None, 3)}, "partial")
    yield Sample([rng.normal((0,))], {"shape": None}, "any")


@samples("CheckNumerics")
def finite(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Finite numbers."""
    for shape, tag in _SHAPES:
        yield Sample([rng.normal(shape)], {"message": "checked"}, tag)


@error_samples("CheckNumerics")
def infinite() -> Iterable[ErrorSample]:
    """NaN, infinity, and both."""
    for values, text in (
        ([1.0, np.inf], "boom : Tensor had Inf values"),
        ([np.nan, 0.0], "boom : Tensor had NaN values"),
        ([np.nan, np.inf], "boom : Tensor had Inf and NaN values"),
    ):
        yield ErrorSample(
            [np.array(values, np.float32)], {"message": "boom"}, "InvalidArgumentError", text, "run"
        )
