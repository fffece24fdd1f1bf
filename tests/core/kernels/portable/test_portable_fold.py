"""Portable kernels under the strict standard: folds of rows, slices, pools."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

from opdock.dtypes import float32, int32, resource
from opdock.graph.nodes import registry
from opdock.kernels.portable import pool
from opdock.kernels.portable.segment import fold, fold_runs, sum_at
from opdock.kernels.portable.slicing import forwards
from opdock.kernels.select.restrict import restrict
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel
from opdock_cpu.namespace import namespace as cpu


@pytest.mark.parametrize("n", [1, 2, 7, 64, 100])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_fold_takes_the_rows_of_each_id(n, count):
    rng = np.random.default_rng(n * count)
    rows, ids = rng.integers(-9, 9, (n, 3)), rng.integers(-1, count, n)
    found, present = fold(xp, xp.add, xp.asarray(rows), xp.asarray(ids), count)
    for i in range(count):
        assert bool(present[i]) == (i in ids)
        if i in ids:
            assert [int(v) for v in found[i, :]] == rows[ids == i].sum(axis=0).tolist()


def test_fold_keeps_the_order_of_rows():
    rows = xp.asarray([[1], [2], [3], [4]])
    found, _ = fold(
        xp, lambda first, second: 10 * first + second, rows[:2, :], xp.asarray([0, 0]), 1
    )
    assert int(found[0, 0]) == 12


@pytest.mark.parametrize("namespace", [xp, cpu], ids=["strict", "cpu"])
@pytest.mark.parametrize("starts", [[0], [0, 1, 2, 3, 4, 5], [0, 2, 5]])
def test_runs_are_folded_one_by_one(namespace, starts):
    values = np.array([3.0, -1, np.nan, 4, -7, 2])
    given = namespace.asarray(values)
    parts = np.split(values, starts[1:])
    for combine, wanted in ((namespace.maximum, np.max), (namespace.add, np.sum)):
        found = fold_runs(namespace, combine, given, np.array(starts))
        np.testing.assert_array_equal(np.array(found), [wanted(p) for p in parts])


def test_sums_of_nothing_are_zero():
    assert sum_at(xp, xp.zeros((0, 2)), xp.zeros((0,), dtype=xp.int64), 3).shape == (3, 2)
    total = sum_at(xp, xp.asarray([[5.0]]), xp.asarray([2]), 4)
    assert [float(v) for v in total[:, 0]] == [0.0, 0.0, 5.0, 0.0]


@pytest.mark.parametrize("index", [
    (slice(None, None, -1), 2, slice(4, 0, -3)),
    (slice(1, 3), None, slice(None), slice(3, None, -2)),
    (slice(0, 2, -1), slice(None), slice(None)),
    (1, None, slice(None, None, -2), slice(0, 4)),
])  # fmt: skip
def test_negative_steps_become_flips(index):
    array = np.arange(60).reshape(3, 4, 5)
    plain, flips = forwards(index, array.shape)
    assert all(not isinstance(p, slice) or (p.step or 1) > 0 for p in plain)
    np.testing.assert_array_equal(np.flip(array[plain], flips), array[index])


def test_a_variables_handle_does_not_count_as_a_value_of_the_device():
    kernel = Kernel(op="ResourceScatterAdd", fn=lambda *a: None, dtypes={"dtype": {float32}})
    assert registry.get("ResourceScatterAdd").definition.inputs[0].dtype is resource
    assert restrict(kernel, frozenset({float32})) is None  # its indices are int32 or int64
    kept = restrict(kernel, frozenset({float32, int32}))
    assert kept is not None
    assert kept.dtypes["Tindices"] == {int32}


def pool_sig(op, inputs):
    attrs = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": "SAME",
             "data_format": "NHWC", "T": float32}  # fmt: skip
    kinds = [float32] * inputs
    return NodeSig(op, "pool", attrs, [None] * len(kinds), kinds, [None], [float32])


def test_pools_keep_to_the_standard():
    x = np.random.default_rng(1).normal(size=(2, 5, 4, 3)).astype(np.float32)
    best = pool.max_pool(xp, pool_sig("MaxPool", 1))(xp.asarray(x))
    padded = np.pad(x, [(0, 0), (0, 1), (1, 1), (0, 0)], constant_values=-np.inf)
    seen = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (1, 2))[:, ::2]
    np.testing.assert_array_equal(np.asarray(best), seen.max(axis=(-2, -1)))

    back = pool.max_pool_grad(xp, pool_sig("MaxPoolGrad", 3))(xp.asarray(x), best, best)
    np.testing.assert_allclose(np.asarray(back).sum(), np.asarray(best).sum(), rtol=1e-5)

    mean = pool.avg_pool(xp, pool_sig("AvgPool", 1))(xp.asarray(x))
    wanted = seen.mean(axis=(-2, -1), where=np.isfinite(seen))
    np.testing.assert_allclose(np.asarray(mean), wanted, rtol=1e-5)
