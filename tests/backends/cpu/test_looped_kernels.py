"""Kernels whose loops are generated give what NumPy gives without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.backends.cpu.looped import given


def _same(pair: tuple[list[Any], list[Any]], **words: Any) -> None:
    for found, wanted in zip(*pair, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, **words)


RNG = np.random.default_rng(11)


def _array(*shape: int) -> Any:
    """Random numbers."""
    return given(RNG.normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("stride", "rate"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_dilation(both: Any, padding: str, stride: int, rate: int) -> None:
    def build() -> Any:
        x, kernel = _array(2, 21, 20, 5), _array(3, 2, 5)
        y = tf.nn.dilation2d(x, kernel, [1, stride, stride, 1], [1, rate, rate, 1], padding)
        return [y, *tf.gradients(y * y, [x, kernel])]

    loops = ("_greatest", "_dilate", "_to_inputs", "_to_filter")
    _same(both(build, *loops), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [1, 3, 32, 40, 700])
def test_top_k(both: Any, k: int) -> None:
    values = RNG.integers(-50, 50, (30, 700)).astype(np.float32)
    values[3, 5:9], values[4, :50], values[4, 50:99] = np.nan, -0.0, 0.0
    values[5], values[6, ::2] = -np.inf, np.inf

    def build() -> Any:
        x = tf.py_func(lambda: values, [], tf.float32)
        x.set_shape(values.shape)
        return [*tf.nn.top_k(x, k), *tf.nn.top_k(tf.cast(tf.is_finite(x), tf.int32), k)]

    pair = both(build, *(["_pass"] if k <= 32 else []))
    _same(pair)
    order = np.argsort(-values, axis=1, kind="stable")  # but for NaNs, which are the largest
    rows = [r for r in range(30) if r != 3]
    np.testing.assert_array_equal(pair[0][1][rows], order[rows][:, :k])


@pytest.mark.parametrize("limit", [0.0, 0.3, 1.0])
def test_boxes(both: Any, limit: float) -> None:
    values = RNG.integers(0, 40, 400).astype(np.float32)

    def build() -> Any:
        boxes = _array(400, 4)
        scores = tf.py_func(lambda: values, [], tf.float32)
        scores.set_shape([400])
        many = tf.image.combined_non_max_suppression(
            tf.reshape(boxes, [2, 100, 2, 4]), tf.reshape(scores, [2, 100, 2]), 9, 12, limit, 3.0
        )
        short = tf.image.combined_non_max_suppression(
            tf.reshape(boxes, [20, 10, 2, 4]), tf.reshape(scores, [20, 10, 2]), 9, 12, limit, 3.0
        )
        return [tf.image.non_max_suppression(boxes, scores, 50, limit, 5.0), *many, *short]

    _same(both(build, "_suppress"), rtol=0)


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_small_systems(both: Any, n: int) -> None:
    def build() -> Any:
        x = _array(300, n, n) + 3 * tf.eye(n)
        return [
            tf.matrix_determinant(x), tf.matrix_inverse(x, adjoint=True),
            tf.matrix_solve(x, _array(300, n, 3)),
        ]  # fmt: skip

    found, wanted = both(build, "_eliminate")
    # Now and then a matrix is nearly singular.
    for a, b in zip(found, wanted, strict=True):
        far = np.abs(a - b) > 1e-3 * np.abs(b).reshape(len(b), -1).max(1).reshape(
            -1, *[1] * (b.ndim - 1)
        )
        assert far.mean() < 0.02


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("pivoting", [True, False])
def test_systems_with_three_diagonals(both: Any, n: int, pivoting: bool) -> None:
    def build() -> Any:
        diagonals = _array(6, 3, n) + np.array([[0], [0 if pivoting else 4], [0]], np.float32)
        return tf.linalg.tridiagonal_solve(
            diagonals, _array(6, n, 5), diagonals_format="compact", partial_pivoting=pivoting
        )

    _same(both(build, "_solve"), rtol=0)


def test_a_singular_system_with_three_diagonals_is_found(both: Any) -> None:
    diagonals = np.ones((3, 3, 4), np.float32)
    diagonals[1, :, 2] = 0

    def build() -> Any:
        return tf.linalg.tridiagonal_solve(
            given(diagonals), _array(3, 4, 5), diagonals_format="compact"
        )

    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        both(build)


def test_singular_matrices_among_many_are_found(both: Any) -> None:
    matrices = np.tile(np.eye(3, dtype=np.float32), (300, 1, 1))
    matrices[7, 2, 2] = 0

    def build() -> Any:
        return tf.matrix_determinant(tf.py_func(lambda: matrices, [], tf.float32))

    (found,), _ = both(build, "_eliminate")
    assert np.flatnonzero(found == 0).tolist() == [7]

    def inverted() -> Any:
        return tf.matrix_inverse(tf.py_func(lambda: matrices, [], tf.float32))

    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        both(inverted)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("collapse", [True, False])
def test_ctc_loss(both: Any, merge: bool, collapse: bool) -> None:
    rows = [[0, 1, 1], [2], [], [3, 0, 3, 0, 3, 0, 3], [1, 1, 1, 1]]
    at = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    labels = tf.SparseTensorValue(at, [rows[b][i] for b, i in at], [5, 7])

    def build() -> Any:
        x = _array(12, 5, 5)
        loss = tf.nn.ctc_loss(
            tf.SparseTensor(labels.indices, tf.cast(labels.values, tf.int32), labels.dense_shape),
            x, [12, 7, 3, 10, 0], collapse, merge, ignore_longer_outputs_than_inputs=True,
        )  # fmt: skip
        return [loss, *tf.gradients(loss, x)]

    _same(both(build, "_align"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("radius", "beta"), [(5, 0.5), (1, 0.75), (9, 1.3), (4, 1.0), (4, 0.25)])
def test_local_response_normalization(both: Any, radius: int, beta: float) -> None:
    def build() -> Any:
        x = _array(2, 9, 8, 7)
        y = tf.nn.lrn(x, radius, bias=0.5, alpha=0.3, beta=beta)
        return [y, *tf.gradients(y * y, x)]

    _same(both(build, "_lrn", "_lrn_grad"), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("size", [[5, 4], [1, 3], [3, 1]])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crops_and_their_gradients(both: Any, size: list[int], method: str) -> None:
    boxes = np.concatenate([RNG.uniform(-0.2, 1.2, (6, 4)), [[0, 0, 1, 1], [1, 1, 0, 0]]])

    def build() -> Any:
        image = _array(3, 7, 9, 5)
        held = tf.py_func(lambda: boxes.astype(np.float32), [], tf.float32)
        held.set_shape(boxes.shape)
        crops = tf.image.crop_and_resize(image, held, [0, 2, 2, 0, 0, 2, 2, 0], size, method)
        wanted = [image, held] if method == "bilinear" else [image]
        return [crops, *tf.gradients(crops * crops, wanted)]

    names = ("_crops", "_image")
    _same(both(build, *names, *["_boxes"] * (method == "bilinear")), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_unique(both: Any, dtype: Any) -> None:
    x = RNG.integers(0, 200, 5000).astype(dtype)
    x[7] = np.iinfo(dtype).max
    ids, index, counts = both(lambda: tf.unique_with_counts(given(x)), "_number")[0]
    assert ids.tolist() == list(dict.fromkeys(x.tolist()))
    np.testing.assert_array_equal(ids[index], x)
    np.testing.assert_array_equal(counts, np.bincount(index))


def test_unique_of_few(both: Any) -> None:
    x = np.array([0.0, np.nan, -0.0, 2.0, np.nan, 2.0], np.float32)
    ids, index, counts = both(lambda: tf.unique_with_counts(given(x)))[0]
    np.testing.assert_array_equal(ids, [0, np.nan, 2, np.nan])
    assert index.tolist() == [0, 1, 0, 2, 3, 2]
    assert counts.tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("name", ["rgb_to_hsv", "hsv_to_rgb", "hue", "saturation"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_colours(both: Any, name: str, dtype: str) -> None:
    pixels = RNG.uniform(size=(4, 5, 6, 3)).astype(dtype)
    pixels[0, 0, :3] = [[0.5, 0.5, 0.5], [0, 0, 0], [0.25, 0.75, 0.75]]
    pixels[1, 1, 1, 1] = np.nan

    def build() -> Any:
        image = tf.py_func(lambda: pixels, [], dtype)
        image.set_shape(pixels.shape)
        if name in ("hue", "saturation"):
            return getattr(tf.image, f"adjust_{name}")(image, -0.3 if name == "hue" else 1.7)
        return getattr(tf.image, name)(image)

    loops = {"rgb_to_hsv": "_to_hsv", "hsv_to_rgb": "_from_hsv", "hue": "_turned"}
    exact = 1e-5 if dtype == "float32" else 1e-13
    _same(both(build, loops.get(name, "_saturated")), rtol=exact, atol=exact)


@pytest.mark.parametrize("ends", [(-1.0, 1.5), (0.5, 2.0), (-2.0, -1.0)])
@pytest.mark.parametrize("narrow", [False, True])
def test_fake_quantization(both: Any, ends: tuple[float, float], narrow: bool) -> None:
    def build() -> Any:
        x = _array(3000, 3)
        low, high = (tf.py_func(lambda v=v: np.float32(v), [], tf.float32) for v in ends)
        for end in (low, high):
            end.set_shape(())
        y = tf.fake_quant_with_min_max_vars(x, low, high, narrow_range=narrow)
        return [y, *tf.gradients(y * x, [x, low, high])]

    _same(both(build, "_onto", "_within"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["int32", "float32", "string"])
@pytest.mark.parametrize("normalize", [False, True])
def test_distances_of_sequences(both: Any, kind: str, normalize: bool) -> None:
    def sequences(lengths: list[int]) -> tuple[Any, Any]:
        cells = [[i // 3, i % 3, j] for i, n in enumerate(lengths) for j in range(n)]
        values = RNG.integers(0, 4, len(cells))
        found = values.astype(str).astype("S").astype(object) if kind == "string" else values
        return np.array(cells, np.int64), found if kind == "string" else found.astype(kind)

    sides = [sequences([5, 0, 9, 1, 7, 0]), sequences([6, 4, 0, 1, 3, 0])]

    def build() -> Any:
        parts = []
        for cells, values in sides:
            held = tf.py_func(lambda c=cells, v=values: [c, v], [], [tf.int64, kind])
            parts.append(tf.SparseTensor(*held, [2, 3, 9]))
        return tf.edit_distance(*parts, normalize=normalize)

    _same(both(build, "_distances"), rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_drawn_boxes(both: Any, depth: int) -> None:
    boxes = RNG.uniform(-0.3, 1.3, (3, 15, 4)).astype(np.float32)

    def build() -> Any:
        held = tf.py_func(lambda: boxes, [], tf.float32)
        held.set_shape(boxes.shape)
        return tf.image.draw_bounding_boxes(_array(3, 9, 7, depth), held)

    _same(both(build, "_boxes"))


@pytest.mark.parametrize("band", [(0, 0), (1, -1), (-1, 2), (2, 0), (4, 4)])
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7, 4)])
def test_bands(both: Any, band: tuple[int, int], shape: tuple[int, ...]) -> None:
    _same(both(lambda: tf.matrix_band_part(_array(*shape), *band), "_banded"))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64"])
def test_bands_of_other_types(both: Any, dtype: str) -> None:
    def build() -> Any:
        x = tf.py_func(lambda: np.ones((6, 5), dtype), [], dtype)
        x.set_shape([6, 5])
        return tf.matrix_band_part(x, 1, 2)

    _same(both(build, "_banded"))


def test_targets_among_the_best(both: Any) -> None:
    scores = RNG.integers(0, 5, (40, 6)).astype(np.float32)
    scores[3, 2], scores[5, 1] = np.nan, np.inf
    targets = RNG.integers(-1, 7, 40).astype(np.int32)

    def build() -> Any:
        held = tf.py_func(lambda: [scores, targets], [], [tf.float32, tf.int32])
        held[0].set_shape(scores.shape)
        return [tf.nn.in_top_k(*held, k) for k in (1, 3)]

    _same(both(build, "_in_top"))


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_rows(both: Any, side: str) -> None:
    rows = np.sort(RNG.integers(0, 9, (3, 20)).astype(np.float32))
    rows[1, -2:] = np.nan
    values = RNG.integers(-1, 10, (3, 15)).astype(np.float32)
    values[:, 3] = np.nan

    def build() -> Any:
        held = tf.py_func(lambda: [rows, values], [], [tf.float32, tf.float32])
        for tensor, value in zip(held, (rows, values), strict=True):
            tensor.set_shape(value.shape)
        return tf.searchsorted(*held, side=side)

    _same(both(build, "_bounds"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_rows_changed_several_times(both: Any, dtype: str) -> None:
    x, v = (RNG.integers(0, 99, s).astype(dtype) for s in ((6, 130), (9, 130)))
    rows = RNG.integers(0, 6, 9).astype(np.int32)

    def build() -> Any:
        held = tf.py_func(lambda: [x, rows, v], [], [dtype, tf.int32, dtype])
        up = tf.raw_ops.InplaceAdd(x=held[0], i=held[1], v=held[2])
        return [up, tf.raw_ops.InplaceSub(x=held[0], i=held[1], v=held[2])]

    _same(both(build, "_raised"))


def test_classes_by_their_weights(both: Any) -> None:
    logits = RNG.normal(size=(7, 50)).astype(np.float32) * 4
    logits[2, 3:9], logits[4, 1] = -np.inf, np.nan

    def build() -> Any:
        held = tf.py_func(lambda: logits, [], tf.float32)
        held.set_shape(logits.shape)
        return tf.random.stateless_multinomial(held, 300, [1, 2])

    _same(both(build, "_choose"))


@pytest.mark.parametrize("shape", [(90,), (7, 9), (3, 4, 5, 6)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_places_of_what_is_not_zero(both: Any, shape: tuple[int, ...], dtype: str) -> None:
    values = RNG.integers(-1, 2, shape).astype(dtype)

    def build() -> Any:
        held = tf.py_func(lambda: values, [], dtype)
        held.set_shape(shape)
        return tf.where(held)

    _same(both(build, "_count", "_places"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_choice_by_element(both: Any, dtype: str) -> None:
    y, z = RNG.integers(-9, 9, (2, 40)).astype(dtype)

    def build() -> Any:
        held = tf.py_func(lambda: [y > z, y, z], [], [tf.bool, dtype, dtype])
        for tensor in held:
            tensor.set_shape([40])
        return tf.where(*held)

    _same(both(build, "_chosen"))


@pytest.mark.parametrize("tail", [(), (3,), (2, 0)])
@pytest.mark.parametrize("count", [1, 4, 300])
@pytest.mark.parametrize("size", [0, 1, 500])
def test_partition_and_stitch(both: Any, size: int, count: int, tail: tuple[int, ...]) -> None:
    data = RNG.normal(size=(size, *tail)).astype(np.float32)
    labels = RNG.integers(0, count, size).astype(np.int32)

    def build() -> Any:
        where = tf.dynamic_partition(tf.range(size), given(labels), count)
        parts = tf.dynamic_partition(given(data), given(labels), count)
        return [*parts, tf.dynamic_stitch(where, parts)]

    pair = both(build, *(("_gather", "_scatter") if data.size else ()))
    _same(pair)
    np.testing.assert_array_equal(pair[0][-1], data)
    for k, part in enumerate(pair[0][:-1]):
        np.testing.assert_array_equal(part, data[labels == k])


def test_of_rows_for_one_place_the_last_stays(both: Any) -> None:
    index, rows = RNG.integers(0, 20, 200).astype(np.int32), RNG.normal(size=(200, 2))
    pair = both(lambda: tf.dynamic_stitch([given(index)], [given(rows)]), "_scatter")
    _same(pair)
    for i, at in enumerate(index):
        if at not in index[i + 1 :]:
            np.testing.assert_array_equal(pair[0][0][at], rows[i])


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("method", list(range(4)))
@pytest.mark.parametrize("size", [[5, 9], [23, 31]])
def test_resized_images(both: Any, method: int, size: list[int], dtype: str) -> None:
    values = (RNG.random((2, 11, 14, 3)) * 255).astype(dtype)
    names = {0: ["_between"], 1: [], 2: ["_lines", "_points"], 3: ["_lines", "_points"]}[method]

    def build() -> Any:
        images = given(values)
        return [
            tf.image.resize_images(images, size, method, align_corners=align)
            for align in (False, True)
        ]

    _same(both(build, *names), rtol=0, atol=0)


def test_images_of_many_channels_and_their_gradients(both: Any) -> None:
    values = RNG.normal(size=(2, 6, 7, 40)).astype(np.float32)

    def build() -> Any:
        images = given(values)
        made = [
            tf.image.resize_bilinear(images, [9, 12], half_pixel_centers=True),
            tf.image.resize_bicubic(images, [4, 5]),
            tf.raw_ops.ScaleAndTranslate(
                images=images, size=[8, 8], scale=[1.2, 0.9], translation=[0.5, -1.0],
                kernel_type="lanczos3", antialias=True,
            ),
        ]  # fmt: skip
        grads = [given(np.full(t.shape.as_list(), 0.75, np.float32)) for t in made]
        return [*made, *(tf.gradients(t, images, g)[0] for t, g in zip(made, grads, strict=True))]

    _same(both(build, "_between", "_lines"), rtol=1e-6, atol=1e-6)


def test_gradients_of_the_nearest_keep_their_type(both: Any) -> None:
    values = RNG.normal(size=(1, 6, 7, 2))

    def build() -> Any:
        images = given(values)
        return tf.gradients(tf.image.resize_nearest_neighbor(images, [12, 14]), images)

    pair = both(build)
    assert pair[0][0].dtype == np.float64
    _same(pair, rtol=0, atol=0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maxima_with_their_places(
    both: Any, padding: str, window: int, stride: int, dtype: Any
) -> None:
    values = RNG.integers(-4, 5, (2, 13, 12, 5)).astype(dtype)
    values[0, :6, :5, 0], values[1, 3, 4], values[0, 8:, 8:] = -np.inf, np.nan, -np.inf

    def build() -> Any:
        sizes = [1, window, window, 1], [1, stride, stride, 1]
        x = given(values)
        return [
            part for whole in (False, True) for element in (tf.int32, tf.int64)
            for part in tf.nn.max_pool_with_argmax(
                x, *sizes, padding, Targmax=element, include_batch_in_index=whole
            )
        ]  # fmt: skip

    _same(both(build, "_winners", "_places"), rtol=0)


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
def test_pools_of_different_windows(both: Any, overlapping: bool, pseudo_random: bool) -> None:
    values = RNG.integers(-4, 5, (2, 23, 18, 5)).astype(np.float32)
    values[1, 3, 4], values[0, :9, :9, 0] = np.nan, -np.inf

    def build() -> Any:
        x, fetches = given(values), []
        for pool, clean in (
            (tf.nn.fractional_max_pool, x),
            (tf.nn.fractional_avg_pool, _array(2, 23, 18, 5)),
        ):
            found = pool(
                clean, [1, 1.7, 1.4, 1], pseudo_random, overlapping,
                deterministic=True, seed=5, seed2=7,
            )  # fmt: skip
            fetches += [*found, *tf.gradients(found[0] * found[0], clean)]
        return fetches

    names = ("_largest", "_means", "_shares", "_to_largest")
    _same(both(build, *names), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2)])
def test_gradients_of_maxima_in_three_dimensions(
    both: Any, padding: str, window: int, stride: int
) -> None:
    values = RNG.integers(-2, 3, (2, 7, 6, 5, 4)).astype(np.float32)
    values += RNG.choice([0, 4e-6, 2e-5], values.shape).astype(np.float32)  # near, and not so
    values[0, :3, :3, 2] = -np.inf

    def build() -> Any:
        x = given(values)
        y = tf.nn.max_pool3d(x, window, stride, padding)
        return tf.gradients(y, x, grad_ys=_array(*y.shape.as_list()))

    _same(both(build, "_to_near"), rtol=1e-6, atol=1e-6)
