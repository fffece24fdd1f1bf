"""Portable kernels of dilation, systems, factors, histograms and sparse cells, case by case.

They run on the strictest array namespace; the samples of the conformance suite are run on it in
`test_portable_array.py`.
"""

from __future__ import annotations

import re

import array_api_compat.numpy
import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdock import errors
from opdock.dtypes import as_dtype, int32
from opdock.kernels.portable import (
    decompositions,
    histogram,
    matrix_functions,
    morphology,
    sparse_math,
    tridiagonal,
)
from opdock.kernels.select.signature import NodeSig
from opdock.testing.harness.oracle import reference_value

FLOATING = st.sampled_from([np.float32, np.float64, np.complex64, np.complex128])
seeds = st.integers(0, 2**32 - 1)


def compute(binder, op, attrs, *args, host=(), out=None, xp=strict):
    """The outputs as NumPy arrays; `host` are the places of arguments that stay as they are."""
    types = [as_dtype(a.dtype) for a in args]
    outs = types[-1:] if out is None else out
    sig = NodeSig(op, "node", attrs, [None] * len(args), types, [None] * len(outs), outs)
    with strict.ArrayAPIStrictFlags(api_version="2023.12"), np.errstate(all="ignore"):
        given = [a if i in host else xp.asarray(a) for i, a in enumerate(args)]
        found = binder(xp, sig)(*given)
        found = found if isinstance(found, tuple) else (found,)
        return [np.asarray(v) for v in found]


def normal(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def epsilon(dtype):
    return float(np.finfo(dtype).eps)


# ---------------------------------------------------------------- dilation
def dilate(which, attrs, *args, xp=strict):
    binders = {
        "": morphology.dilation2d,
        "BackpropInput": morphology.dilation2d_backprop_input,
        "BackpropFilter": morphology.dilation2d_backprop_filter,
    }
    (out,) = compute(binders[which], "Dilation2D" + which, attrs, *args, xp=xp)
    return out


def pairs(low, high):
    return st.tuples(st.integers(low, high), st.integers(low, high))


@given(
    seeds, st.tuples(st.integers(0, 3), st.integers(3, 6), st.integers(3, 6), st.integers(1, 2)),
    pairs(1, 3), pairs(1, 3), pairs(1, 2), st.sampled_from(["SAME", "VALID"]),
    st.sampled_from([np.float32, np.int8, np.uint8]),
)  # fmt: skip
def test_dilation_and_where_its_gradients_go(seed, shape, window, strides, rates, padding, dtype):
    if padding == "VALID":
        rates = tuple(r if 1 + r * (k - 1) <= n else 1 for r, k, n in zip(rates, window, shape[1:]))
    attrs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
    rng = np.random.default_rng(seed)
    # Few numbers, so that there are ties; the first of a window wins.
    x, kernel = (rng.integers(0, 3, s).astype(dtype) for s in (shape, (*window, shape[3])))
    best = dilate("", attrs, x, kernel)
    (wanted,) = reference_value("Dilation2D", attrs, [x, kernel])
    np.testing.assert_array_equal(best, wanted)
    grad = rng.integers(0, 3, best.shape).astype(dtype)
    for which, like in (("BackpropInput", x), ("BackpropFilter", kernel)):
        back = dilate(which, attrs, x, kernel, grad)
        (wanted,) = reference_value("Dilation2D" + which, attrs, [x, kernel, grad])
        assert back.dtype == dtype and back.shape == like.shape
        np.testing.assert_array_equal(back, np.asarray(wanted).astype(dtype))


PLAIN = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_padding_never_wins(dtype):
    lowest = -128 if dtype == np.int8 else -np.inf
    x, kernel = np.full((1, 1, 1, 1), lowest, dtype), np.zeros((3, 3, 1), dtype)
    kernel[1, 1] = 1
    assert dilate("", PLAIN, x, kernel).item() == lowest + 1
    back = dilate("BackpropFilter", PLAIN, x, kernel, np.ones_like(x))
    assert back[1, 1] == 1 and back.sum() == 1


def test_sums_of_half_precision_are_exact():
    grad = np.full((1, 1, 4096, 1), 1, np.float16)
    x, kernel = np.zeros_like(grad), np.zeros((1, 1, 1), np.float16)
    # The standard does not have the type, but namespaces do.
    total = dilate("BackpropFilter", PLAIN, x, kernel, grad, xp=array_api_compat.numpy)
    assert total.dtype == np.float16 and total.item() == 4096


@pytest.mark.parametrize(("shapes", "message"), [
    ([(3, 3, 1), (2, 2, 1)], "input must be 4-dimensional"),
    ([(1, 3, 3, 1), (2, 2)], "filter must be 3-dimensional"),
    ([(1, 3, 3, 2), (2, 2, 1)], "must have the same depth: 2 vs 1"),
])  # fmt: skip
def test_dilation_of_what_does_not_fit(shapes, message):
    args = [np.zeros(s, np.float32) for s in shapes]
    with pytest.raises(errors.InvalidArgumentError, match=message):
        dilate("", PLAIN, *args)


def test_a_gradient_of_another_size():
    x, kernel = np.zeros((1, 3, 3, 1), np.float32), np.zeros((2, 2, 1), np.float32)
    for which in ("BackpropInput", "BackpropFilter"):
        with pytest.raises(errors.InvalidArgumentError, match="out_backprop has incompatible size"):
            dilate(which, PLAIN, x, kernel, np.zeros((1, 2, 3, 1), np.float32))


# ---------------------------------------------------------------- three diagonals
def tridiagonal_solve(diagonals, rhs, pivoting=True):
    attrs = {"partial_pivoting": pivoting}
    bind = tridiagonal.tridiagonal_solve
    (out,) = compute(bind, "TridiagonalSolve", attrs, diagonals, rhs)
    return out


@given(seeds, st.sampled_from([(), (3,), (2, 1)]), st.integers(1, 9), st.integers(1, 3), FLOATING)
def test_three_diagonals(seed, batch, n, columns, dtype):
    rng = np.random.default_rng(seed)
    diagonals, rhs = normal(rng, (*batch, 3, n), dtype), normal(rng, (*batch, n, columns), dtype)
    matrix = np.zeros((*batch, n, n), dtype)
    for i in range(n):
        matrix[..., i, i] = diagonals[..., 1, i]
        if i + 1 < n:
            matrix[..., i, i + 1] = diagonals[..., 0, i]
            matrix[..., i + 1, i] = diagonals[..., 2, i + 1]
    # What is outside of the matrix is not read.
    diagonals[..., 0, -1] = diagonals[..., 2, 0] = np.nan
    out = tridiagonal_solve(diagonals, rhs)
    assert out.dtype == dtype
    # Backward stable: the residual is small whatever the condition.
    size = np.abs(matrix).max() * np.abs(out).max() + np.abs(rhs).max()
    assert np.abs(matrix @ out - rhs).max() <= 50 * n * epsilon(dtype) * size


def test_only_pivoting_gets_past_a_zero():
    diagonals, rhs = np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 2.0]]), np.array([[4.0], [7.0]])
    np.testing.assert_allclose(tridiagonal_solve(diagonals, rhs), [[-2.5], [4.0]])
    with pytest.raises(errors.InvalidArgumentError, match="requires pivoting"):
        tridiagonal_solve(diagonals, rhs, pivoting=False)


def test_one_singular_matrix_of_a_batch_is_an_error():
    diagonals = np.ones((2, 3, 3))
    diagonals[0, 1] = 5
    diagonals[1] = 0
    with pytest.raises(errors.InvalidArgumentError, match="The matrix is not invertible"):
        tridiagonal_solve(diagonals, np.ones((2, 3, 1)))


@pytest.mark.parametrize(("shapes", "message"), [
    ([(2, 4), (4, 1)], "Expected 3 diagonals got 2"),
    ([(3, 4), (5, 1)], "same number of left-hand sides and right-hand sides, got 4 and 5"),
    ([(2, 3, 4), (4, 1)], "must have the same outer dimensions"),
])  # fmt: skip
def test_diagonals_that_do_not_fit(shapes, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        tridiagonal_solve(*(np.ones(s) for s in shapes))


# ---------------------------------------------------------------- LU and the exponential
def lu(x):
    return compute(decompositions.lu, "Lu", {}, x, out=[as_dtype(x.dtype), int32])


@given(seeds, st.sampled_from([(), (3,), (2, 2)]), st.sampled_from([1, 2, 7, 33, 50]), FLOATING)
def test_lu(seed, batch, n, dtype):
    x = normal(np.random.default_rng(seed), (*batch, n, n), dtype)
    packed, order = lu(x)
    assert packed.dtype == dtype and order.dtype == np.int32
    assert np.array_equal(np.sort(order, axis=-1), np.broadcast_to(np.arange(n), order.shape))
    lower = np.tril(packed, -1) + np.eye(n)
    assert np.abs(lower).max() <= 1 + 10 * epsilon(dtype)
    rows = np.take_along_axis(x, order[..., None], -2)
    np.testing.assert_allclose(lower @ np.triu(packed), rows, atol=100 * n * epsilon(dtype))


@pytest.mark.parametrize("n", [2, 20])
def test_one_singular_factor_of_a_batch_is_an_error(n):
    x = np.stack([np.eye(n), np.ones((n, n))])
    with pytest.raises(errors.InvalidArgumentError, match="Input is not invertible"):
        lu(x)


def exponential(x):
    (out,) = compute(matrix_functions.matrix_exponential, "MatrixExponential", {}, x)
    return out


@given(seeds, st.integers(1, 6), FLOATING, st.floats(-4, 1.2))
def test_exponentials_of_self_adjoint_matrices(seed, n, dtype, scale):
    rng = np.random.default_rng(seed)
    x = normal(rng, (n, n), dtype)
    x = ((x + np.conj(x.T)) * 10**scale / n).astype(dtype)
    values, vectors = np.linalg.eigh(x.astype(np.complex128))
    wanted = (vectors * np.exp(values)) @ np.conj(vectors.T)
    out = exponential(x)
    assert out.dtype == dtype
    error = 20 * n * epsilon(dtype) * (1 + np.abs(x).max() * n)
    np.testing.assert_allclose(out, wanted, rtol=0, atol=error * np.abs(wanted).max())


def test_each_matrix_of_a_batch_is_squared_as_often_as_it_needs():
    x = np.array([0.0, 1e-9, 3.0, 700.0, np.inf, np.nan]).reshape(6, 1, 1)
    got = exponential(x)
    assert got[0] == 1 and np.isnan(got[4:]).all()
    np.testing.assert_allclose(got[:4], np.exp(x[:4]), rtol=1e-12)
    nilpotent = np.array([[0.0, 1e6], [0.0, 0.0]])
    np.testing.assert_allclose(exponential(nilpotent), [[1, 1e6], [0, 1]])


# ---------------------------------------------------------------- histograms
def count(values, limits, nbins):
    args = values, np.asarray(limits, values.dtype), np.array(nbins, np.int32)
    bind = histogram.histogram_fixed_width
    (out,) = compute(bind, "HistogramFixedWidth", {}, *args, host=(1, 2), out=[int32])
    return out


@given(seeds, st.integers(0, 40), st.integers(1, 9), st.sampled_from([np.float64, np.int64]))
def test_every_value_is_in_one_bin(seed, n, nbins, dtype):
    values = np.random.default_rng(seed).integers(-20, 40, n).astype(dtype)
    got = count(values, [-4, 28], nbins)
    assert got.sum() == n
    # Bins are closed below: a value on an edge is in the upper one.
    edges = -4 + 32 / nbins * np.arange(1, nbins)
    place = np.searchsorted(edges, values, side="right")
    if 32 % nbins == 0:
        assert got.tolist() == np.bincount(place, minlength=nbins).tolist()


def test_values_without_end_are_in_the_outer_bins():
    values = np.array([[-np.inf, np.inf], [-1e38, 3e38]], np.float32)
    assert count(values, [0, 1], 3).tolist() == [2, 0, 2]


# ---------------------------------------------------------------- sparse and dense
def cellwise(way, indices, values, shape, dense):
    indices, shape = np.asarray(indices, np.int64), np.asarray(shape, np.int64)
    args = (indices, np.asarray(values), shape, np.asarray(dense, np.asarray(values).dtype))
    (out,) = compute(sparse_math.sparse_dense, f"SparseDenseCwise{way}", {}, *args, host=(2,))
    return out


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_cells_of_a_broadcast_operand(seed, shape, data):
    kept = data.draw(st.lists(st.booleans(), max_size=len(shape)), "which dimensions are not 1")
    lead = len(shape) - len(kept)
    rng = np.random.default_rng(seed)
    dense = rng.integers(-9, 9, [n if k else 1 for n, k in zip(shape[lead:], kept, strict=True)])
    dense[dense == 0] = 5
    indices = np.stack([rng.integers(0, n, 5) for n in shape], 1)
    values = rng.integers(-9, 9, 5)
    seen = np.broadcast_to(dense, shape)[tuple(indices.T)]
    ways = {"Add": values + seen, "Mul": values * seen, "Div": np.trunc(values / seen)}
    for way, wanted in ways.items():
        assert cellwise(way, indices, values, shape, dense).tolist() == wanted.tolist()


def test_cells_that_do_not_exist():
    for cell in ([2, 1], [0, 3], [0, -1]):
        message = re.escape(f"indices[1] = {cell} is out of bounds for [2,3]")
        with pytest.raises(errors.InvalidArgumentError, match=message):
            cellwise("Add", [[0, 0], cell], [1, 1], [2, 3], np.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(4,), (2, 1, 3), (3, 3), (2, 2)])
def test_operands_that_do_not_broadcast_to_the_sparse_shape(shape):
    with pytest.raises(errors.InvalidArgumentError, match=r"dense to sparse only.*\[2,3\] vs. \["):
        cellwise("Mul", [[0, 0]], [1], [2, 3], np.zeros(shape))


def test_values_and_cells_have_one_number():
    with pytest.raises(errors.InvalidArgumentError, match="a row for each value"):
        cellwise("Mul", [[0, 0], [1, 1]], [1], [2, 3], np.zeros((2, 3)))
    with pytest.raises(errors.InvalidArgumentError, match="a column for each dimension"):
        cellwise("Mul", [[0]], [1], [2, 3], np.zeros((2, 3)))


def test_division_of_whole_numbers_by_zero():
    with pytest.raises(errors.InvalidArgumentError, match="Integer division by zero"):
        cellwise("Div", [[1]], [1], [2], [1, 0])
    # A zero that no cell meets is none.
    assert cellwise("Div", [[0]], [-7], [2], [2, 0]).tolist() == [-3]
