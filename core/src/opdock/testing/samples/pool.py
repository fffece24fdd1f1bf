"""Samples of pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Case = tuple[tuple[int, ...], dict[str, Any], str]
Array = np.ndarray[Any, Any]


def _attrs(
    ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NHWC"
) -> dict[str, Any]:
    first = data_format.startswith("NC")
    return {
        "ksize": [1, 1, *ksize] if first else [1, *ksize, 1],
        "strides": [1, 1, *strides] if first else [1, *strides, 1],
        "padding": padding, "data_format": data_format,
    }  # fmt: skip


def _cases_2d() -> Iterator[Case]:
    """(input shape, attributes, tag); small enough for distinct int8 values."""
    yield (1, 4, 5, 2), _attrs((2, 2), (2, 2), "SAME"), "same"
    yield (2, 4, 5, 2), _attrs((2, 2), (2, 2), "VALID"), "valid"
    yield (1, 5, 4, 2), _attrs((3, 3), (1, 1), "SAME"), "overlap"
    yield (1, 6, 5, 2), _attrs((3, 2), (2, 1), "VALID"), "uneven"
    yield (1, 5, 5, 1), _attrs((2, 2), (3, 3), "SAME"), "gaps"
    yield (1, 2, 2, 1), _attrs((4, 5), (1, 1), "SAME"), "wide-window"
    yield (1, 2, 5, 4), _attrs((3, 3), (2, 2), "SAME", "NCHW"), "first"
    yield (2, 1, 4, 4), _attrs((2, 3), (1, 1), "VALID", "NCHW"), "first-valid"
    yield (0, 4, 4, 2), _attrs((2, 2), (2, 2), "SAME"), "empty"
    yield (2, 4, 4, 0), _attrs((2, 2), (2, 2), "VALID"), "no-channels"


def _cases_3d() -> Iterator[Case]:
    """As `_cases_2d`, for volumes."""
    yield (1, 3, 4, 3, 2), _attrs((2, 2, 2), (2, 2, 2), "SAME", "NDHWC"), "same"
    yield (1, 3, 3, 4, 1), _attrs((2, 3, 2), (1, 1, 2), "VALID", "NDHWC"), "valid"
    yield (1, 2, 3, 2, 3), _attrs((2, 2, 2), (1, 1, 1), "SAME", "NCDHW"), "first"
    yield (0, 3, 3, 3, 1), _attrs((2, 2, 2), (2, 2, 2), "SAME", "NDHWC"), "empty"


_DEEP: Case = (
    (1, 2, 2, 6),
    {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID", "data_format": "NHWC"},
    "channels",
)


def _starts(attrs: dict[str, Any], shape: Sequence[int]) -> list[list[range]]:
    """The window's extent at each position of each dimension, padding cut off."""
    out = []
    for n, k, s in zip(shape, attrs["ksize"], attrs["strides"], strict=True):
        if attrs["padding"] == "SAME":
            count = -(-n // s)
            before = max(0, (count - 1) * s + k - n) // 2
        else:
            count, before = (n - k) // s + 1, 0
        starts = [i * s - before for i in range(count)]
        out.append([range(max(0, a), min(n, a + k)) for a in starts])
    return out


def _pooled(x: Array, attrs: dict[str, Any]) -> Array:
    """The maxima, for samples of gradients."""
    extents = _starts(attrs, x.shape)
    out = np.zeros([len(e) for e in extents], x.dtype)
    for at in np.ndindex(out.shape):
        window = [e[i] for e, i in zip(extents, at, strict=True)]
        out[at] = max(x[where] for where in itertools.product(*window))
    return out


def _without(attrs: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in attrs.items() if k not in names}


@samples("MaxPool")
def max_pool(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct values: no ties, so that derivatives exist."""
    for shape, attrs, tag in (*_cases_2d(), _DEEP):
        yield Sample([rng.distinct(shape)], attrs, tag, 0 not in shape)


@samples("MaxPoolV2")
def max_pool_v2(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The window is an input."""
    for shape, attrs, tag in _cases_2d():
        window = [np.array(attrs[name], np.int32) for name in ("ksize", "strides")]
        rest = _without(attrs, "ksize", "strides")
        yield Sample([rng.distinct(shape), *window], rest, tag, 0 not in shape)


@samples("MaxPool3D")
def max_pool3d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes."""
    for shape, attrs, tag in _cases_3d():
        yield Sample([rng.distinct(shape)], attrs, tag, 0 not in shape)


def _grad_inputs(shape: Any, attrs: dict[str, Any], rng: Sampler, forward: bool) -> list[Array]:
    x = rng.distinct(shape)
    out = _pooled(x, attrs)
    return [x, out, rng.integers(out.shape if forward else shape, 0, 4)]


@samples("MaxPoolGrad")
def max_pool_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Whole-number gradients, so that sums of narrow types are exact; and a tie."""
    for shape, attrs, tag in _cases_2d():
        yield Sample(_grad_inputs(shape, attrs, rng, True), attrs, tag, 0 not in shape)
    tied = np.ones((1, 2, 2, 1), dtype)
    attrs = _attrs((2, 2), (2, 2), "VALID")
    top = np.ones((1, 1, 1, 1), dtype)
    yield Sample([tied, top, top * 3], attrs, "tie", grad=False)


@samples("MaxPoolGradV2")
def max_pool_grad_v2(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The window is an input."""
    for shape, attrs, tag in _cases_2d():
        window = [np.array(attrs[name], np.int32) for name in ("ksize", "strides")]
        inputs = [*_grad_inputs(shape, attrs, rng, True), *window]
        yield Sample(inputs, _without(attrs, "ksize", "strides"), tag, 0 not in shape)


@samples("MaxPoolGradGrad")
def max_pool_grad_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The gradient has the input's shape."""
    for shape, attrs, tag in _cases_2d():
        yield Sample(_grad_inputs(shape, attrs, rng, False), attrs, tag, 0 not in shape)


@samples("MaxPoolGradGradV2")
def max_pool_grad_grad_v2(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The window is an input."""
    for shape, attrs, tag in _cases_2d():
        window = [np.array(attrs[name], np.int32) for name in ("ksize", "strides")]
        inputs = [*_grad_inputs(shape, attrs, rng, False), *window]
        yield Sample(inputs, _without(attrs, "ksize", "strides"), tag, 0 not in shape)


@samples("MaxPool3DGrad")
def max_pool3d_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes; each tie gets the whole gradient.

    What counts as a tie is decided at 1e-5, the very step of numeric differentiation, so only the
    gradient is differentiated by.
    """
    for shape, attrs, tag in _cases_3d():
        inputs = _grad_inputs(shape, attrs, rng, True)
        grad = 0 not in shape
        yield Sample(inputs, {**attrs, "TInput": dtype}, tag, grad, grad_inputs=(2,))
    attrs = {**_attrs((2, 1, 1), (2, 1, 1), "VALID", "NDHWC"), "TInput": dtype}
    top = np.ones((1, 1, 1, 1, 1), dtype)
    yield Sample([np.ones((1, 2, 1, 1, 1), dtype), top, top * 3], attrs, "tie", grad=False)


@samples("MaxPool3DGradGrad")
def max_pool3d_grad_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes; the gradient is MaxPool3DGrad, which has no float64."""
    for shape, attrs, tag in _cases_3d():
        grad = 0 not in shape and dtype != np.float64
        yield Sample(_grad_inputs(shape, attrs, rng, False), attrs, tag, grad)


@samples("AvgPool")
def avg_pool(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Padding does not count."""
    for shape, attrs, tag in _cases_2d():
        yield Sample([rng.normal(shape)], attrs, tag, 0 not in shape)


@samples("AvgPool3D")
def avg_pool3d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes."""
    for shape, attrs, tag in _cases_3d():
        yield Sample([rng.normal(shape)], attrs, tag, 0 not in shape)


def _avg_grads(cases: Iterable[Case], rng: Sampler) -> Iterable[Sample]:
    for shape, attrs, tag in cases:
        out = [len(e) for e in _starts(attrs, shape)]
        inputs = [np.array(shape, np.int32), rng.normal(out)]
        yield Sample(inputs, attrs, tag, 0 not in shape)


@samples("AvgPoolGrad")
def avg_pool_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shares of whole windows and of cut ones."""
    yield from _avg_grads(_cases_2d(), rng)


@samples("AvgPool3DGrad")
def avg_pool3d_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes."""
    yield from _avg_grads(_cases_3d(), rng)


def _argmax_cases() -> Iterator[Case]:
    for shape, attrs, tag in _cases_2d():
        if attrs["data_format"] == "NHWC" and 0 not in shape:
            for whole in (False, True):
                rest = {**_without(attrs, "data_format"), "include_batch_in_index": whole}
                yield shape, rest, f"{tag}{'-batch' * whole}"


@samples("MaxPoolWithArgmax")
def max_pool_with_argmax(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both index types, indices within an entry and through the batch."""
    for i, (shape, attrs, tag) in enumerate(_argmax_cases()):
        kind = np.dtype(np.int32 if i % 3 == 0 else np.int64)
        yield Sample([rng.distinct(shape)], {**attrs, "Targmax": kind}, tag)


def _indices(x: Array, attrs: dict[str, Any]) -> Array:
    extents = _starts(attrs, x.shape)
    out = np.zeros([len(e) for e in extents], np.int64)
    for at in np.ndindex(out.shape):
        window = [e[i] for e, i in zip(extents, at, strict=True)]
        best = max(itertools.product(*window), key=lambda where: x[where])
        flat = int(np.ravel_multi_index(best, x.shape))
        out[at] = flat if attrs["include_batch_in_index"] else flat % x[0].size
    return out


@samples("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Indices as the forward op gives them."""
    for shape, attrs, tag in _argmax_cases():
        x = rng.distinct(shape)
        index = _indices(x, attrs)
        yield Sample([x, rng.integers(index.shape, 0, 4), index], attrs, tag)


@samples("MaxPoolGradGradWithArgmax")
def max_pool_grad_grad_with_argmax(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Indices as the forward op gives them."""
    for shape, attrs, tag in _argmax_cases():
        x = rng.distinct(shape)
        yield Sample([x, rng.integers(shape, 0, 4), _indices(x, attrs)], attrs, tag)


@error_samples("MaxPool")
def max_pool_errors() -> Iterable[ErrorSample]:
    """Windows that do not fit."""
    x = np.zeros((1, 2, 4, 1), np.float32)
    yield ErrorSample(
        [x], _attrs((3, 2), (1, 1), "VALID"), "ValueError",
        "Negative dimension size caused by subtracting 3 from 2", "build", "window",
    )  # fmt: skip
    yield ErrorSample([x], _attrs((3, 2), (1, 1), "VALID"), match="negative", tag="window-run")
    yield ErrorSample(
        [x], {**_attrs((2, 2), (1, 1), "SAME"), "strides": [1, 1, 1, 1, 1]}, "ValueError",
        "requires the stride attribute to contain 4 values, but got: 5", "build", "strides",
    )  # fmt: skip
    deep = np.zeros((1, 2, 2, 4), np.float32)
    for size, step, words, tag in (
        (2, 1, "depth window to equal the depth stride", "deep-steps"),
        (3, 3, "depth window to evenly divide the input depth", "deep-rest"),
    ):
        attrs = {**_attrs((1, 1), (1, 1), "SAME"), "ksize": [1, 1, 1, size]}
        attrs["strides"] = [1, 1, 1, step]
        yield ErrorSample([deep], attrs, "UnimplementedError", words, "run", tag)
