"""The blocks that indexed kernels are built of, at sizes where every pass of theirs runs."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock_ckernels.ordering import find, largest, sort
from opdock_ckernels.prefix import offsets
from opdock_ckernels.scattering import scatter
from opdock_ckernels.segments import fold_segments

SIZES = [1, 63, 64, 65, 1000, 5003]


def _draw(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32])
def test_rows_are_sorted_and_equals_keep_their_order(opencl, n, dtype):
    x = _draw().integers(-20, 20, (3, n)).astype(dtype)
    values, at = (opencl.download(a) for a in sort(opencl, opencl.upload(x)))
    order = np.argsort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(at, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_descending_order_keeps_equals_in_order_too(opencl):
    x = _draw().integers(0, 9, 300).astype(np.int32)
    _, at = sort(opencl, opencl.upload(x), descending=True)
    np.testing.assert_array_equal(opencl.download(at), np.argsort(-x, kind="stable"))


def test_nan_is_beyond_every_number(opencl):
    x = _draw().normal(size=200).astype(np.float32)
    x[[3, 77, 150]] = np.nan
    values, at = (opencl.download(a) for a in sort(opencl, opencl.upload(x)))
    np.testing.assert_array_equal(values, np.sort(x))
    assert at[-3:].tolist() == [3, 77, 150]
    _, at = sort(opencl, opencl.upload(x), descending=True)
    assert opencl.download(at)[:3].tolist() == [3, 77, 150]


@pytest.mark.parametrize(("n", "k"), [(5, 5), (64, 3), (65, 64), (1000, 1), (5003, 100)])
def test_the_largest_of_each_row(opencl, n, k):
    x = _draw().integers(-50, 50, (3, n)).astype(np.float32)
    values, at = (opencl.download(a) for a in largest(opencl, opencl.upload(x), k))
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(at, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("side", ["left", "right"])
def test_values_are_found_in_sorted_rows(opencl, side):
    rows = np.sort(_draw().integers(0, 50, (2, 90)), axis=1).astype(np.float32)
    values = _draw(1).integers(-5, 55, (2, 40)).astype(np.float32)
    found = find(
        opencl, opencl.upload(rows), opencl.upload(values), np.dtype(np.int64), side == "right"
    )
    expected = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
    np.testing.assert_array_equal(opencl.download(found), expected)


@pytest.mark.parametrize("n", SIZES)
def test_running_totals(opencl, n):
    counts = _draw().integers(0, 5, n).astype(np.int32)
    before, total = offsets(opencl, opencl.upload(counts))
    np.testing.assert_array_equal(opencl.download(before), np.cumsum(counts) - counts)
    assert opencl.read_int(total) == counts.sum()


@pytest.mark.parametrize("how", ["Update", "Sub", "Div"])
def test_updates_of_one_place_follow_each_other(opencl, how):
    at = _draw().integers(0, 7, 400).astype(np.int32)
    updates = _draw(1).uniform(1, 1.01, (400, 3)).astype(np.float32)
    expected = np.ones((9, 3), np.float32)
    for i, row in zip(at, updates, strict=True):
        expected[i] = {"Update": row, "Sub": expected[i] - row, "Div": expected[i] / row}[how]
    out = opencl.upload(np.ones((9, 3), np.float32))
    scatter(opencl, how, out, opencl.upload(at), opencl.upload(updates), 3)
    np.testing.assert_array_equal(opencl.download(out), expected)


@pytest.mark.parametrize("how", ["sum", "max"])
@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32])
def test_long_segments_are_folded_in_parts(opencl, how, dtype):
    ids = np.sort(_draw().integers(0, 3, 4000)).astype(np.int32)
    ids[ids == 1] = 2
    x = _draw(1).integers(-3, 4, (4000, 2)).astype(dtype)
    found = fold_segments(
        opencl, how, opencl.upload(ids), opencl.upload(x), (4, 2), gap="7", last="acc + count % 2"
    )
    fold = {"sum": np.sum, "max": np.max}[how]
    expected = [
        fold(x[ids == s].astype(np.float64), axis=0) + (ids == s).sum() % 2
        if s in (0, 2) else [7, 7]
        for s in range(4)
    ]  # fmt: skip
    np.testing.assert_array_equal(opencl.download(found), np.array(expected).astype(dtype))


def test_results_lie_in_planned_buffers_from_step_to_step(opencl):
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        x = tf.placeholder(tf.float32, (40, 50))
        y = tf.transpose(tf.nn.relu(x - 1.0) * 2.0)
        z = tf.reduce_sum(tf.concat([y[1:], tf.tile(y[:1], [3, 1])], 0), 1)
        out = z + 0.0
        with tf.Session() as sess:
            for seed in range(3):
                value = _draw(seed).normal(size=(40, 50)).astype(np.float32)
                turned = (np.maximum(value - 1, 0) * 2).T
                expected = np.concatenate([turned[1:], np.tile(turned[:1], (3, 1))]).sum(1)
                np.testing.assert_allclose(sess.run(out, {x: value}), expected, rtol=1e-5)
            summary = sess.explain(out).summary()
    assert "; 0 bytes planned" not in summary


def test_elements_of_a_tensor_array_stay_on_the_device(opencl):
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        x = tf.placeholder(tf.float32, (4, 3))
        array = tf.TensorArray(tf.float32, 4).unstack(x)
        total = array.read(1) + array.read(3)
        kept = tf.TensorArray(tf.float32, 2).write(0, total).write(1, total * 2.0).stack()
        grad = tf.gradients(kept, x)[0]
        with tf.Session() as sess:
            value = np.arange(12, dtype=np.float32).reshape(4, 3)
            got, slope = sess.run([kept, grad], {x: value})
            report = sess.explain([kept, grad])
    np.testing.assert_array_equal(got, [value[1] + value[3], 2 * (value[1] + value[3])])
    np.testing.assert_array_equal(slope, np.array([[0], [3], [0], [3]]) * np.ones((4, 3)))
    arrays = [line for line in str(report).splitlines() if " TensorArray" in line]
    assert arrays and all("OPENCL:0" in line for line in arrays)
