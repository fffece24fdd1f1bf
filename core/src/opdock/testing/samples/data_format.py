"""Samples of the ops that say one data format in terms of another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_FORMATS = (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("qwer", "rewq"))


def _attrs(source: str, target: str) -> dict[str, str]:
    return {"src_format": source, "dst_format": target}


@samples("DataFormatDimMap")
def axes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All axes, from both ends, in each order; five axes; a number; none."""
    for source, target in _FORMATS:
        values = np.arange(-4, 4).astype(dtype)
        yield Sample([values], _attrs(source, target), f"{source} to {target}", grad=False)
    deep = _attrs("NDHWC", "NCDHW")
    yield Sample([np.arange(-5, 5).reshape(2, 5).astype(dtype)], deep, "matrix", grad=False)
    yield Sample([np.array(2).astype(dtype)], _attrs("NHWC", "NCHW"), "scalar", grad=False)
    yield Sample([np.zeros(0).astype(dtype)], _attrs("NHWC", "NCHW"), "empty", grad=False)


@samples("DataFormatVecPermute")
def vectors(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors, and columns of pairs, in each order; five axes."""
    for source, target in _FORMATS:
        values = np.array([7, 4, 9, 3]).astype(dtype)
        yield Sample([values], _attrs(source, target), f"{source} to {target}", grad=False)
        pairs = np.stack([values, values + 10], 1)
        yield Sample([pairs], _attrs(source, target), f"pairs, {source} to {target}", grad=False)
    five = np.array([7, 4, 9, 3, 1]).astype(dtype)
    yield Sample([five], _attrs("NDHWC", "NCDHW"), "five axes", grad=False)


_INVALID = "InvalidArgumentError"


@error_samples("DataFormatDimMap")
def no_axes() -> Iterable[ErrorSample]:
    """Formats of other lengths, and with other letters."""
    x = np.zeros(2, np.int32)
    for source, target, text in (
        ("NHWCNHWC", "NCHW", "Source format must be of length 4 or 5"),
        ("NHWC", "NCHWNCHW", "Destination format must be of length 4 or 5"),
        ("NHWC", "NHXC", "must determine a permutation, got NHWC and NHXC"),
        ("NNWC", "NNWC", "must determine a permutation"),
    ):
        yield ErrorSample([x], _attrs(source, target), _INVALID, text, "run")


@error_samples("DataFormatVecPermute")
def no_vectors() -> Iterable[ErrorSample]:
    """Other shapes."""
    attrs = _attrs("NHWC", "NCHW")
    for shape, text in (
        ((), "must be a vector or 2D tensor"),
        ((3,), "1D input must be of size 4, but got shape"),
        ((3, 2), "First dimension of 2D input must be of size 4"),
        ((4, 3), "Second dimension of 2D input must be of size 2"),
    ):
        yield ErrorSample([np.zeros(shape, np.int32)], attrs, _INVALID, text, "run")
