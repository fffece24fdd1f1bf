"""Matrix products: which op is built, types, broadcasting, errors, gradients; norms."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def normal(*shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.standard_normal(shape)
    return out.astype(dtype)


# ---------------------------------------------------------------- which op
def test_matrices_make_matmul_and_batches_make_batch_matmul_v2():
    a = tf.zeros([2, 3])
    assert tf.matmul(a, a, transpose_b=True).op.type == "MatMul"
    batch = tf.matmul(tf.zeros([5, 2, 3]), tf.zeros([3, 4]))
    assert (batch.op.type, batch.op.name, batch.shape.as_list()) == (
        "BatchMatMulV2",
        "MatMul_1",
        [5, 2, 4],
    )
    unknown = tf.placeholder(tf.float32)
    assert tf.matmul(unknown, unknown).op.type == "BatchMatMulV2"
    assert tf.matmul(a, a, transpose_a=True, a_is_sparse=True).op.type == "SparseMatMul"
    mixed = tf.matmul(a, tf.zeros([3, 2], tf.bfloat16))
    assert (mixed.op.type, mixed.dtype) == ("SparseMatMul", tf.float32)
    assert (
        tf.matmul(
            tf.zeros([2, 2], tf.float64), tf.zeros([2, 2], tf.float64), b_is_sparse=True
        ).op.type
        == "MatMul"
    )


def test_attributes():
    op = tf.matmul(tf.zeros([3, 2]), tf.zeros([3, 4]), transpose_a=True, name="product").op
    assert op.name == "product"
    assert (op.get_attr("transpose_a"), op.get_attr("transpose_b")) == (True, False)


def test_only_one_way_to_turn():
    x = tf.zeros([2, 2])
    for side in "ab":
        with pytest.raises(ValueError, match=f"Only one of transpose_{side} and adjoint_{side}"):
            tf.matmul(x, x, **{f"transpose_{side}": True, f"adjoint_{side}": True})


# ---------------------------------------------------------------- values
@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int32, np.int64, np.complex64]
)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_products(dtype, ta, tb):
    a, b = normal(3, 4, dtype=dtype) * dtype(3), normal(4, 5, seed=1, dtype=dtype) * dtype(3)
    out = run(tf.matmul(a.T.copy() if ta else a, b.T.copy() if tb else b, ta, tb))
    assert out.dtype == dtype
    wide = np.complex128 if dtype == np.complex64 else np.float64
    wanted = (a.astype(wide) @ b.astype(wide)).astype(dtype)
    np.testing.assert_allclose(out, wanted, rtol=2e-2 if dtype == np.float16 else 1e-4)


def test_large_products_of_integers_are_exact_or_wrap():
    a = np.random.default_rng(0).integers(-1000, 1000, (40, 50)).astype(np.int32)
    assert np.array_equal(run(tf.matmul(a, a.T.copy())), a @ a.T)
    big = np.full((20, 20), 2**30, np.int32)
    assert np.array_equal(run(tf.matmul(big, big)), big @ big)
    wide = np.full((20, 20), 2**40 + 1, np.int64)
    assert np.array_equal(run(tf.matmul(wide, wide)), wide @ wide)


def test_adjoints_conjugate():
    a = normal(3, 2, dtype=np.complex64)
    np.testing.assert_allclose(run(tf.matmul(a, a, adjoint_a=True)), a.conj().T @ a, rtol=1e-5)
    np.testing.assert_allclose(run(tf.matmul(a, a, transpose_a=True)), a.T @ a, rtol=1e-5)
    batch = normal(4, 3, 2, dtype=np.complex64)
    np.testing.assert_allclose(
        run(tf.matmul(batch, batch, transpose_b=True)),
        batch @ np.swapaxes(batch, 1, 2),
        rtol=1e-4,
        atol=1e-5,
    )


def test_batches_broadcast():
    x, y = normal(2, 1, 3, 4), normal(5, 4, 2, seed=1)
    np.testing.assert_allclose(run(tf.matmul(x, y)), x @ y, rtol=1e-4, atol=1e-5)
    assert tf.matmul(tf.placeholder(tf.float32, [None, 3, 4]), y[0]).shape.as_list() == [None, 3, 2]


def test_empty_products():
    assert run(tf.matmul(tf.zeros([2, 0]), tf.zeros([0, 3]))).tolist() == [[0] * 3] * 2
    assert run(tf.matmul(tf.zeros([0, 2]), tf.zeros([2, 3]))).shape == (0, 3)
    assert run(tf.matmul(tf.zeros([2, 3, 0]), tf.zeros([2, 0, 1]))).tolist() == [[[0]] * 3] * 2


def test_sparse_matmul():
    a, b = normal(2, 3), normal(3, 2, seed=1)
    np.testing.assert_allclose(run(tf.sparse_matmul(a, b, a_is_sparse=True)), a @ b, rtol=1e-5)


def test_matvec_and_trace():
    a, b = normal(2, 3, 4), normal(2, 4, seed=1)
    out = tf.linalg.matvec(a, b)
    assert out.shape == (2, 3)
    np.testing.assert_allclose(run(out), np.einsum("bij,bj->bi", a, b), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(tf.trace(a)), np.trace(a, axis1=1, axis2=2), rtol=1e-5)


# ---------------------------------------------------------------- errors
def test_build_errors():
    with pytest.raises(
        ValueError, match=r"Dimensions must be equal, but are 3 and 4 for 'MatMul' \(op: 'MatMul'\)"
    ):
        tf.matmul(tf.zeros([2, 3]), tf.zeros([4, 5]))
    with pytest.raises(
        TypeError,
        match="Input 'b' of 'MatMul' Op has type float64 that does not match type float32 of",
    ):
        tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2], tf.float64))
    with pytest.raises(TypeError, match="has DataType uint8 not in list of allowed values"):
        tf.matmul(tf.zeros([2, 2], tf.uint8), tf.zeros([2, 2], tf.uint8))
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        tf.matmul(tf.zeros([2, 3, 4]), tf.zeros([3, 4, 4]))


@pytest.mark.parametrize("shape", [None, [None, None]])
def test_run_errors_name_both_shapes(shape):
    a, b = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[4,5\]",
    ) as caught:
        run(tf.matmul(a, b), {a: np.zeros((2, 3)), b: np.zeros((4, 5))})
    assert "MatMul" in str(caught.value) and "test_linalg.py" in str(caught.value)


# ---------------------------------------------------------------- gradients
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(
    ("sx", "sy"),
    [((3, 2), (2, 4)), ((5, 3, 2), (2, 4)), ((3, 2), (5, 2, 4)), ((2, 1, 3, 2), (4, 2, 2))],
)
@pytest.mark.parametrize("turn", ["", "a", "b", "ab"])
@pytest.mark.parametrize("known", [True, False])
def test_gradients(dtype, sx, sy, turn, known):
    x, y = normal(*sx, dtype=dtype), normal(*sy, seed=1, dtype=dtype)
    gx, gy = (
        np.swapaxes(v, -1, -2).conj().copy() if side in turn else v
        for v, side in ((x, "a"), (y, "b"))
    )
    tx, ty = (tf.placeholder(v.dtype, v.shape if known else None) for v in (gx, gy))
    out = tf.matmul(tx, ty, adjoint_a="a" in turn, adjoint_b="b" in turn)
    seed = normal(*(x @ y).shape, seed=2, dtype=dtype)
    got = run(tf.gradients(out, [tx, ty], grad_ys=tf.constant(seed)), {tx: gx, ty: gy})
    for value, gradient, back in ((gx, got[0], "a" in turn), (gy, got[1], "b" in turn)):
        assert gradient.shape == value.shape
        step = normal(*value.shape, seed=3, dtype=dtype)
        moved = np.swapaxes(step, -1, -2).conj() if back else step
        change = (moved @ y) if value is gx else (x @ moved)
        np.testing.assert_allclose(
            np.vdot(gradient, step).real, np.vdot(seed, change).real, rtol=1e-9, atol=1e-9
        )


def test_second_derivative_of_a_product():
    a = tf.constant(normal(2, 2))
    once = tf.gradients(tf.matmul(a, a), a)[0]
    assert run(tf.gradients(once, a)[0]).tolist() == [[4, 4], [4, 4]]


def test_gradients_of_sparse_matmul():
    a, b = tf.constant(normal(2, 3)), tf.constant(normal(3, 2, seed=1))
    wanted = run(tf.gradients(tf.matmul(a, b), [a, b]))
    got = run(tf.gradients(tf.matmul(a, b, a_is_sparse=True), [a, b]))
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


# ---------------------------------------------------------------- tensordot
@pytest.mark.parametrize("axes", [0, 1, 2, [[1], [0]], [[0, 1], [1, 0]], [[-1], [-2]], [2, 1]])
@pytest.mark.parametrize("known", ["all", "rank", "none"])
def test_tensordot(axes, known):
    a, b = normal(2, 3, 3), normal(3, 3, 4, seed=1)
    if axes == [[0, 1], [1, 0]]:
        a, b = normal(2, 3, 5), normal(3, 2, 4, seed=1)
    wanted = np.tensordot(a, b, axes)
    shapes = {"all": (a.shape, b.shape), "rank": ([None] * 3, [None] * 3), "none": (None, None)}[
        known
    ]
    ta, tb = (tf.placeholder(tf.float32, s) for s in shapes)
    out = tf.tensordot(ta, tb, axes)
    np.testing.assert_allclose(run(out, {ta: a, tb: b}), wanted, rtol=1e-4, atol=1e-5)
    if known == "all":
        assert out.shape.as_list() == list(wanted.shape)


def test_tensordot_of_partly_known_shapes_and_bad_axes():
    x = tf.placeholder(tf.float32, [None, 4, 3])
    assert tf.tensordot(x, tf.zeros([3, 5]), 1).shape.as_list() == [None, 4, 5]
    with pytest.raises(ValueError, match="'axes' must be at least 0"):
        tf.tensordot(x, x, -1)
    with pytest.raises(ValueError, match="'axes' must be an integer or have length 2"):
        tf.tensordot(x, x, [1, 2, 3])
    with pytest.raises(
        ValueError, match="Different number of contraction axes 'a' and 'b', 1 != 2"
    ):
        tf.tensordot(x, x, [[0], [0, 1]])
    with pytest.raises(ValueError, match="must not be larger than the number of dimensions"):
        tf.tensordot(tf.zeros([2]), tf.zeros([2]), 2)


# ---------------------------------------------------------------- norms
@pytest.mark.parametrize(
    ("ord", "axis"),
    [
        ("euclidean", None),
        (1, 0),
        (2, 1),
        (np.inf, 1),
        (3, -1),
        ("fro", [0, 1]),
        (1, (0, 1)),
        (2, [0, 1]),
        (np.inf, [1, 0]),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_norm(ord, axis, keep):
    x = normal(3, 4)
    name = {"euclidean": None}.get(ord, ord)
    where = tuple(axis) if isinstance(axis, list) else axis
    if where is None:
        wanted = np.linalg.norm(x.ravel(), name).reshape((1, 1) if keep else ())
    else:
        wanted = np.linalg.norm(x, name, where, keep)
    np.testing.assert_allclose(run(tf.norm(x, ord, axis, keep)), wanted, rtol=1e-5)


def test_norm_arguments():
    x = tf.zeros([2, 2])
    assert tf.norm(x, keep_dims=True).shape == (1, 1)
    with pytest.raises(ValueError, match="'axis' must be None, an integer, or a tuple of 2"):
        tf.norm(x, axis=[0, 0])
    with pytest.raises(ValueError, match="'ord' must be a supported vector norm, got fro"):
        tf.norm(x, "fro", axis=0)
    with pytest.raises(ValueError, match="'ord' must be a supported matrix norm"):
        tf.norm(x, 3, axis=[0, 1])
    normal_, length = tf.linalg.normalize(tf.constant([3.0, 4.0]))
    assert run(length).tolist() == [5] and run(normal_).tolist() == [
        pytest.approx(0.6),
        pytest.approx(0.8),
    ]
