"""Small matrices, weights, boxes and warped images come out of generated loops as of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.image_warp import image_projective_transform_v2_op
from opdock_cpu.ordering import descending
from tests.backends.cpu.looped import given

Both = Callable[..., Any]
RNG = np.random.default_rng(23)


# ---------------------------------------------------------------- factors
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_small_matrices_have_the_same_factors(both: Both, n: int, dtype: Any) -> None:
    matrices = RNG.normal(size=(40, n, n)).astype(dtype)
    matrices[3, :, 0] = np.nan
    matrices[4:9] = RNG.integers(-2, 3, (5, n, n)) + 9 * np.eye(n)  # equal pivots

    def build() -> Any:
        return list(tf.linalg.lu(given(matrices)))

    for found, wanted in zip(*both(build, "_small_lu"), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_singular_matrix_among_many_has_no_factors(both: Both) -> None:
    matrices = RNG.normal(size=(40, 3, 3))
    matrices[17, 2] = matrices[17, 0] = 0

    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        both(lambda: list(tf.linalg.lu(given(matrices))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 64, 150])
def test_gradients_of_factors(both: Both, n: int, dtype: Any) -> None:
    x = RNG.normal(size=(2, 3, n, n))
    matrices = (x @ x.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)
    weights = RNG.normal(size=matrices.shape).astype(dtype)

    def build() -> Any:
        return tf.raw_ops.CholeskyGrad(l=tf.cholesky(given(matrices)), grad=given(weights))

    ((found,), (wanted,)) = both(build, "_back")
    far = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert far < 50 * np.finfo(dtype).eps
    np.testing.assert_array_equal(found, found.swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 3, 16])
def test_small_factors_of_cholesky(both: Both, n: int, dtype: Any) -> None:
    x = RNG.normal(size=(5, 8, n, n))
    matrices = (x @ x.swapaxes(-1, -2) + np.eye(n)).astype(dtype)
    matrices += np.triu(RNG.normal(size=(n, n)), 1).astype(dtype)  # which does not count

    ((found,), (wanted,)) = both(lambda: tf.cholesky(given(matrices)), "_small_cholesky")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan])
def test_what_has_no_factor_is_told(both: Both, value: float) -> None:
    matrices = np.tile(np.eye(4), (9, 1, 1))
    matrices[5, 2, 2] = value

    with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not"):
        both(lambda: tf.cholesky(given(matrices)))


# ---------------------------------------------------------------- weights
@pytest.mark.parametrize(("l1", "l2"), [(0.25, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_weights_shrink(both: Both, l1: float, l2: float) -> None:
    values = RNG.normal(size=400).astype(np.float32)
    values[:8] = [0.0, -0.0, 0.25, -0.25, np.inf, -np.inf, np.nan, 1e-40]

    def build() -> Any:
        weights = tf.get_variable("w", initializer=values, use_resource=False)
        with tf.control_dependencies([tf.assign(weights, given(values))]):
            shrunk = tf.raw_ops.SdcaShrinkL1(weights=[weights._ref()], l1=l1, l2=l2)
        with tf.control_dependencies([shrunk]):
            return [tf.identity(weights)]

    ((found,), (wanted,)) = both(build, "_shrink")
    np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- images
@pytest.mark.parametrize("way", ["BILINEAR", "NEAREST"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3])
def test_warped_images(both: Both, way: str, dtype: Any, count: int) -> None:
    images = RNG.integers(0, 200, (3, 13, 9, 2)).astype(dtype)
    turned = RNG.uniform(-1, 1, (count, 8)) * [0.2, 0.2, 2, 0.2, 0.2, 2, 0.02, 0.02]
    turned = (turned + [1, 0, 0, 0, 1, 0, 0, 0]).astype(np.float32)
    if count > 1:
        turned[0, 6:] = -0.25, 0  # one column is infinitely far away

    def build() -> Any:
        return image_projective_transform_v2_op(
            given(images), given(turned), [11, 14], interpolation=way
        )

    loop = "_near" if way == "NEAREST" else "_whole" if dtype in (np.uint8, np.int32) else "_real"
    ((found,), (wanted,)) = both(build, loop)
    assert found.dtype == wanted.dtype and found.any()
    np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- boxes
@pytest.mark.parametrize("covered", [0.0, 0.4, 0.999])
def test_parts_of_images_that_cover_objects(both: Both, covered: float) -> None:
    low, size = RNG.uniform(0, 0.8, (2, 150, 2)), RNG.uniform(0, 0.2, (2, 150, 2))
    boxes = np.concatenate([low, low + size], axis=2).astype(np.float32)
    boxes[0, 3] = 0.5  # has no pixel

    def build() -> Any:
        return list(
            tf.image.sample_distorted_bounding_box(
                [60, 80, 3], given(boxes), seed=5, min_object_covered=covered, max_attempts=9
            )
        )

    with_loops, _ = both(build, "_corners", "_cover")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opdock_cpu.jit.looped.Looped.__call__", lambda *args, **words: False)
        with tf.Graph().as_default(), tf.Session() as session:
            plain = session.run(build())  # of a stream that begins anew
    for found, wanted in zip(with_loops, plain, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("value", [1.5, -0.1, np.nan])
def test_boxes_outside_of_an_image_are_told(both: Both, value: float) -> None:
    boxes = np.full((1, 90, 4), 0.5, np.float32)
    boxes[0, 70, 2] = value

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in \[0.0, 1.0\]"):
        both(lambda: list(tf.image.sample_distorted_bounding_box([60, 80, 3], given(boxes))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_descending_order(dtype: Any) -> None:
    rows = RNG.integers(-5, 5, (7, 90)).astype(dtype)
    order = descending(rows)
    np.testing.assert_array_equal(order, np.argsort(-rows, axis=1, kind="stable"))
    if rows.dtype.kind == "f":
        rows[2, ::7], rows[3, 1:4] = -np.inf, np.nan
        found = np.take_along_axis(rows, descending(rows), 1)
        assert np.isnan(found[3, :3]).all() and np.isinf(found[2, -13:]).all()


# ---------------------------------------------------------------- neighbours
@pytest.mark.parametrize("k", [1, 5, 40, 99])
@pytest.mark.parametrize("wrong", [False, True])
def test_nearest_centers(both: Both, k: int, wrong: bool) -> None:
    # Whole numbers: many are as near as others, and all distances are exact.
    points, centers = (RNG.integers(-3, 4, (n, 3)).astype(np.float32) for n in (70, 60))
    if wrong:
        centers[4, 1] = np.nan

    def build() -> Any:
        return list(
            tf.raw_ops.NearestNeighbors(points=given(points), centers=given(centers), k=np.int64(k))
        )

    pair = both(build, *(["_pass"] if k <= 32 and not wrong else []))
    for found, wanted in zip(*pair, strict=True):
        np.testing.assert_array_equal(found, wanted)
    far = ((points[:, None] - centers) ** 2).sum(axis=2)
    order = np.argsort(far, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(pair[0][0], order)
    np.testing.assert_array_equal(pair[0][1], np.take_along_axis(far, order, 1))


# ---------------------------------------------------------------- sequences
@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
@pytest.mark.parametrize(("steps", "cells"), [(1, 3), (5, 16), (9, 7)])
def test_gradients_of_sequences(both: Both, op: str, steps: int, cells: int) -> None:
    x, state = RNG.normal(size=(9, 4, 6)), RNG.normal(size=(2, 4, cells))
    w, b = RNG.normal(size=(6 + cells, 4 * cells)) * 0.3, RNG.normal(size=4 * cells)
    arrays = [a.astype(np.float32) for a in (x, *state, w, *np.zeros((3, cells)), b)]
    grads = RNG.normal(size=(7, 9, 4, cells)).astype(np.float32)

    def build() -> Any:
        x, cs, h, w, *peepholes, b = map(given, arrays)
        names = dict(zip(("wci", "wcf", "wco"), peepholes, strict=True))
        found = getattr(tf.raw_ops, op)(
            seq_len_max=np.int64(steps), x=x, cs_prev=cs, h_prev=h, w=w, b=b, **names
        )
        of = [found.cs, found.h]
        return tf.gradients(of, [x, cs, h, w, b], [given(grads[0]), given(grads[1])])

    for found, wanted in zip(*both(build, "_back"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_best_classes(both: Both, merge: bool, dtype: Any) -> None:
    inputs = RNG.integers(-3, 4, (11, 6, 4)).astype(dtype)
    inputs[3, 2, 1:3], inputs[4, 3] = np.nan, np.inf
    lengths = np.array([11, 0, 5, 7, 11, 1], np.int32)

    def build() -> Any:
        (found,), score = tf.nn.ctc_greedy_decoder(given(inputs), given(lengths), merge)
        return [found.indices, found.values, found.dense_shape, score]

    for found, wanted in zip(*both(build, "_greedy"), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- counts and chains
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_bins_of_one_width(both: Both, dtype: Any) -> None:
    values = RNG.integers(-30, 60, 500).astype(dtype)
    if values.dtype.kind == "f":
        values[:3] = np.inf, -np.inf, 49.999996
    ends = np.array([-10, 50], dtype)

    ((found,), (wanted,)) = both(
        lambda: tf.histogram_fixed_width(given(values), given(ends), 7), "_tally"
    )
    assert found.sum() == 500
    np.testing.assert_array_equal(found, wanted)


def test_chains(both: Both) -> None:
    distances = RNG.exponential(size=4000).astype(np.float32)

    def build() -> Any:
        return [
            tf.raw_ops.KMC2ChainInitialization(distances=given(distances[:n]), seed=np.int64(n))
            for n in (1, 2, 63, 64, 65, 4000)
        ]

    for found, wanted in zip(*both(build, "_chain"), strict=True):
        assert found == wanted
