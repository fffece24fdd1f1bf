"""Pools of maxima as loops: what they give, and that they are vectors on older processors."""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock_cpu.jit.looped import Looped
from opdock_cpu.kernels import morphology, pool
from opdock_cpu.onednn import pool as primitives
from tests.backends.cpu.looped import assembly, given

NAN, INF = np.nan, np.inf


def _images(depth: int, dtype: str) -> np.ndarray:
    """Images with equal numbers, and with some that are not finite."""
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 3, (3, 9, 11, depth)).astype(dtype)
    x[0, 2, 2], x[0, 4:, :, : depth // 2], x[1, :4, :4], x[2, 5, 5] = NAN, NAN, -INF, INF
    return x


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where oneDNN's code has no masks."""
    monkeypatch.setattr(primitives, "_MASKED", "no code")


def _both_gradients(x: np.ndarray, sizes: Any, steps: Any, padding: str, form: str) -> list[Any]:
    first = form == "NCHW"
    turned = np.ascontiguousarray(np.moveaxis(x, -1, 1)) if first else x
    sizes, steps = ([1, 1, *s] if first else [1, *s, 1] for s in (sizes, steps))
    how = {"strides": steps, "padding": padding, "data_format": form}
    images = given(turned)
    y = tf.nn.max_pool(images, sizes, **how)
    back, second = (
        given(np.random.default_rng(6).normal(size=s.shape.as_list()).astype(x.dtype))
        for s in (y, images)
    )
    once, twice = registry.get("MaxPoolGrad"), registry.get("MaxPoolGradGrad")
    found = [
        once(images, y, back, ksize=sizes, **how),
        twice(images, y, second, ksize=sizes, **how),
    ]
    of_input: Any = registry.get("MaxPoolGradV2")
    dynamic = [tf.py_func(lambda v=v: np.array(v, np.int32), [], tf.int32) for v in (sizes, steps)]
    for one in dynamic:
        one.set_shape([4])
    return [*found, of_input(images, y, back, *dynamic, padding=padding, data_format=form)]


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("sizes", "steps"), [((3, 2), (2, 2)), ((2, 2), (3, 3)), ((1, 5), (1, 1))])
@pytest.mark.parametrize(("depth", "dtype"), [(1, "float32"), (21, "float32"), (4, "float64")])
def test_gradients_of_maxima(
    both: Any, narrow: None, depth: int, dtype: str, sizes: Any, steps: Any, padding: str, form: str
) -> None:
    def build() -> list[Any]:
        return _both_gradients(_images(depth, dtype), sizes, steps, padding, form)

    with_loops, without = both(build, "_winners", "_to_winners", "_places")
    for found, wanted in zip(with_loops, without, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def _whole(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers many of which are equal; of integers the least and the greatest are among them."""
    kind = np.dtype(dtype)
    x = np.random.default_rng(5).integers(0, 4, shape).astype(kind)
    if kind.kind != "f":
        x.flat[:40:3], x.flat[1:40:7] = np.iinfo(kind).min, np.iinfo(kind).max
    return x


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "uint8", "int8"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("sizes", "steps"), [((3, 2), (2, 2)), ((2, 2), (3, 3)), ((1, 5), (1, 1))])
def test_maxima_of_other_element_types(
    both: Any, dtype: str, sizes: Any, steps: Any, padding: str
) -> None:
    x, (size, step) = _whole((2, 9, 11, 5), dtype), ([1, *s, 1] for s in (sizes, steps))
    volume, how = _whole((2, 4, 5, 6, 3), "float32"), {"strides": step, "padding": padding}

    def build() -> list[Any]:
        images, volumes = given(x), given(volume)
        y = tf.nn.max_pool(images, size, **how)
        back, second = given(_whole(tuple(y.shape.as_list()), dtype)), given(x[::-1].copy())
        two: Any = registry.get("MaxPoolV2")
        numbers = [
            tf.py_func(lambda v=v: np.array(v, np.int32), [], tf.int32) for v in (size, step)
        ]
        for one in numbers:
            one.set_shape([4])
        threes = registry.get("MaxPool3D")
        return [
            y, two(images, *numbers, padding=padding),
            threes(volumes, ksize=[1, 2, *sizes, 1], strides=[1, 1, *steps, 1], padding=padding),
            registry.get("MaxPoolGrad")(images, y, back, ksize=size, **how),
            registry.get("MaxPoolGradGrad")(images, y, second, ksize=size, **how),
            *tf.nn.max_pool_with_argmax(images, size, step, padding),
        ]  # fmt: skip

    names = ("_maxima", "_winners", "_to_winners", "_places")
    for found, wanted in zip(*both(build, *names), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("sizes", "steps"), [((3, 2), (2, 2)), ((2, 2), (3, 3)), ((1, 5), (1, 1))])
@pytest.mark.parametrize("depth", [1, 4, 21])
def test_means_in_double_precision(
    both: Any, depth: int, sizes: Any, steps: Any, padding: str, form: str
) -> None:
    rng = np.random.default_rng(7)
    x, volume = rng.normal(size=(2, 9, 11, depth)), rng.normal(size=(2, 4, 5, 6, depth))
    x[0, 2, 2], x[1, 4] = NAN, INF
    deep = "NDHWC" if form == "NHWC" else "NCDHW"
    if form == "NCHW":
        x, volume = (np.ascontiguousarray(np.moveaxis(a, -1, 1)) for a in (x, volume))

    def spelled(values: Any) -> list[int]:
        return [1, 1, *values] if form == "NCHW" else [1, *values, 1]

    def build() -> list[Any]:
        images, volumes = given(x), given(volume)
        y = tf.nn.avg_pool(images, spelled(sizes), spelled(steps), padding, data_format=form)
        how = {"padding": padding, "data_format": deep}
        z = tf.nn.avg_pool3d(volumes, spelled((2, *sizes)), spelled((1, *steps)), **how)
        weights = [given(rng.normal(size=s.shape.as_list())) for s in (y, z)]
        return [y, z, *tf.gradients([y, z], [images, volumes], weights)]

    for found, wanted in zip(*both(build, "_sums", "_spread"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_places_of_maxima(both: Any, padding: str, whole: bool) -> None:
    def build() -> Any:
        return tf.nn.max_pool_with_argmax(
            given(_images(5, "float32")), [1, 3, 2, 1], [1, 2, 2, 1], padding,
            include_batch_in_index=whole,
        )  # fmt: skip

    for found, wanted in zip(*both(build, "_winners", "_places"), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86-64")
@pytest.mark.parametrize(
    "loop",
    [pool._WINNERS, pool._TO_WINNERS, pool._TO_NEAR, morphology._DILATE, morphology._GREATEST],
    ids=lambda loop: loop._function.__name__,
)
def test_channels_are_vectors_on_older_processors(loop: Looped) -> None:
    """In each, four or eight are compared at once, and nothing is stored under a mask.

    Of `store(choice(test, new, old))` LLVM makes such where the old value was just loaded.
    """
    assert loop._about is not None
    elements = ["float32"] * len(loop._about.arrays)
    older, old = (assembly(loop, elements, name) for name in ("nehalem", "haswell"))
    assert re.search(r"\t(cmp\w*|max)ps\t", older)
    assert re.search(r"\tv(cmp\w*|max)ps\t.*%ymm", old)
    assert not re.search(r"\tv(p?)maskmov\w+\t%", old)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_dilation_of_whole_numbers(both: Any, dtype: str) -> None:
    rng = np.random.default_rng(8)
    x, kernel, back = (rng.integers(0, 9, s).astype(dtype) for s in ((2, 9, 8, 5), (3, 2, 5), 720))
    if dtype != "uint8":
        x -= 20
    how = {"strides": [1, 1, 1, 1], "rates": [1, 2, 1, 1], "padding": "SAME"}

    def build() -> list[Any]:
        given_all = given(x), given(kernel), given(back.reshape(2, 9, 8, 5))
        return [
            registry.get("Dilation2D")(*given_all[:2], **how),
            registry.get("Dilation2DBackpropInput")(*given_all, **how),
            registry.get("Dilation2DBackpropFilter")(*given_all, **how),
        ]

    loops = ("_greatest", "_dilate", "_to_inputs", "_to_filter")
    for found, wanted in zip(*both(build, *loops), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_dilation_wraps_around_as_the_type_does(both: Any) -> None:
    x, kernel = np.full((1, 9, 9, 2), 250, np.uint8), np.full((2, 2, 2), 9, np.uint8)
    spec: Any = registry.get("Dilation2D")

    def build() -> Any:
        how = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
        return spec(given(x), given(kernel), **how)

    for (found,) in both(build):
        assert (found == 3).all()


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_pools_of_different_windows_of_whole_numbers(
    both: Any, dtype: str, overlapping: bool
) -> None:
    x = np.random.default_rng(9).integers(-9, 9, (2, 23, 18, 5)).astype(dtype)

    def build() -> list[Any]:
        fetches: list[Any] = []
        for pooled in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool):
            ends = [1, 1.7, 1.4, 1], False, overlapping
            fetches += pooled(given(x), *ends, deterministic=True, seed=5, seed2=7)
        best, rows, columns = fetches[:3]
        spec: Any = registry.get("FractionalMaxPoolGrad")
        return [*fetches, spec(given(x), best, best, rows, columns, overlapping=overlapping)]

    names = ("_largest", "_whole_means", "_to_largest")
    for found, wanted in zip(*both(build, *names), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_gradients_of_crops_of_other_element_types(both: Any, dtype: str) -> None:
    rng = np.random.default_rng(10)
    x, back = rng.integers(0, 200, (3, 9, 8, 4)).astype(dtype), rng.normal(size=(5, 6, 7, 4))
    boxes = rng.uniform(-0.1, 1.1, (5, 4)).astype(np.float32)
    which = np.array([2, 0, 0, 1, 2], np.int32)

    def build() -> list[Any]:
        grads, rest = given(back.astype(np.float32)), (given(boxes), given(which))
        found = [registry.get("CropAndResizeGradBoxes")(grads, given(x), *rest)]
        if dtype == "float64":
            size, spec = np.array(x.shape, np.int32), registry.get("CropAndResizeGradImage")
            found.append(spec(grads, *rest, size, T=tf.float64))
        return found

    names = ("_boxes", *["_image"] * (dtype == "float64"))
    for found, wanted in zip(*both(build, *names), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
