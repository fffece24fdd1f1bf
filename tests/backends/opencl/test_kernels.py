"""Kernels where the conformance samples are too small to reach every path."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

pytestmark = pytest.mark.usefixtures("opencl")


def both(build):
    """What a graph computes on the OpenCL device and on the CPU, with no fallback."""
    out = []
    for name in ("/device:OPENCL:0", "/device:CPU:0"):
        with tf.Graph().as_default(), tf.device(name):
            tf.set_random_seed(7)
            fetches = build()
            with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as sess:
                sess.run(tf.global_variables_initializer())
                out.append(sess.run(fetches))
    return out


def agree(build, rtol=1e-4, atol=1e-5):
    got, want = both(build)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol, atol)


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_large_products_with_ragged_edges(ta, tb, dtype):
    a = normal(*((61, 77) if ta else (77, 61)), dtype=dtype)
    b = normal(*((45, 61) if tb else (61, 45)), dtype=dtype)
    agree(lambda: [tf.matmul(a, b, transpose_a=ta, transpose_b=tb)])


def test_broadcast_batches_of_large_products():
    a, b = normal(3, 1, 40, 50), normal(2, 50, 33)
    agree(lambda: [tf.matmul(a, b)])


def test_long_reductions_take_several_passes():
    x = normal(3, 70001)
    agree(lambda: [tf.reduce_sum(x, 1), tf.reduce_max(x, 1), tf.reduce_mean(x), tf.nn.l2_loss(x)])
    agree(lambda: [tf.reduce_sum(x, 0), tf.argmax(x, 1), tf.argmin(x, 0)])


@pytest.mark.parametrize("shape", [(3, 9001), (40, 8), (5, 7, 23), (17, 16, 33), (1, 15)])
def test_copies_of_lines_of_any_length(shape):
    x = normal(*shape)
    last = len(shape) - 1
    agree(
        lambda: (
            tf.transpose(tf.constant(x)), tf.reverse(tf.constant(x), [last]),
            tf.tile(tf.constant(x), [2] * len(shape)),
            tf.pad(tf.constant(x), [[1, 2]] * len(shape)),
            tf.concat([tf.constant(x)] * 3, last), tf.constant(x)[..., ::-2],
        ),
        rtol=0, atol=0,
    )  # fmt: skip


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 2]])
@pytest.mark.parametrize("shape", [(3, 5, 364), (2, 3000, 17), (33, 2, 16), (40, 3, 15)])
def test_neighbours_are_folded_side_by_side(shape, axes):
    x = normal(*shape)
    x[1, 1, 3] = np.nan
    whole = np.random.default_rng(1).integers(-9, 9, shape).astype(np.int32)
    agree(
        lambda: (
            tf.reduce_sum(tf.constant(x), axes), tf.reduce_max(tf.constant(x), axes),
            tf.reduce_sum(tf.constant(whole), axes), tf.reduce_min(tf.constant(whole), axes),
            tf.reduce_all(tf.constant(whole > -9), axes), tf.reduce_mean(tf.constant(x), axes),
        ),
        rtol=1e-3, atol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b"),
    [((40, 33), (33,)), ((20, 1, 17), (1, 18, 17)), ((64, 20), (64, 1)), ((2, 99), (99,))],
)
def test_lines_of_a_broadcast(a, b):
    x, y = normal(*a), normal(*b)
    agree(
        lambda: (
            tf.constant(x) - tf.constant(y), tf.maximum(tf.constant(y), tf.constant(x)),
            tf.floordiv(tf.cast(tf.constant(x) * 9, tf.int32), tf.ones(b, tf.int32) * 3),
        )
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_less_one_are_exact_near_zero(dtype):
    x = np.array([0, -0.0, 1e-30, -1e-7, 1e-4, -0.4999, 0.5, -0.5, 3, -80, np.inf, -np.inf, np.nan])
    rtol = 1e-6 if dtype is np.float32 else 1e-14
    agree(lambda: (tf.math.expm1(tf.constant(x, dtype)),), rtol=rtol, atol=0)


def test_wide_and_narrow_softmax():
    x = normal(5, 1000)
    agree(lambda: [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.softmax(x[:, :3])])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolution_and_gradients(padding):
    x, w = normal(2, 13, 11, 6), normal(3, 3, 6, 20)

    def build():
        image, weights = tf.constant(x), tf.constant(w)
        y = tf.nn.conv2d(image, weights, [1, 2, 1, 1], padding)
        return [y, *tf.gradients(tf.reduce_sum(y * y), [image, weights])]

    agree(build, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lines", [True, False])
def test_convolution_of_a_batch_in_parts(monkeypatch, lines):
    from opdock_ckernels.families import conv
    from opdock_opencl.device import OpenCLDevice

    monkeypatch.setattr(conv, "_AT_ONCE", {True: 1 << 14, False: 1 << 14})
    monkeypatch.setattr(OpenCLDevice, "takes_lines", lines)
    test_convolution_and_gradients("SAME")
    test_convolution_and_gradients("VALID")


def test_random_bits_are_those_of_the_cpu():
    got, want = both(
        lambda: [
            tf.random_uniform([1001], seed=1),
            tf.random_normal([1001], seed=2),
            tf.truncated_normal([1001], seed=3),
            tf.random_uniform([7], dtype=tf.float64, seed=4),
            tf.random_uniform([9], dtype=tf.float16, seed=5),
        ]
    )
    for a, b in zip(got, want, strict=True):
        # Two math libraries may round the last bit of a logarithm or sine differently.
        np.testing.assert_array_max_ulp(a, b, 1)


def test_errors_that_a_kernel_finds():
    def fails(build, match):
        with tf.Graph().as_default(), tf.device("/device:OPENCL:0"), tf.Session() as sess:
            x = tf.placeholder(tf.int32, [2])
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                sess.run(build(x), {x: [0, 9]})

    fails(lambda x: tf.floordiv(5, x), "Integer division by zero")
    fails(lambda x: tf.gather(tf.constant([1.0, 2.0]), x), r"indices\[1\] = 9 is not in \[0, 2\)")


def test_training_stays_on_the_device():
    data = normal(32, 5)

    def build():
        w = tf.Variable(np.ones((5, 1), np.float32))
        loss = tf.reduce_mean(tf.square(tf.matmul(data, w) - 1))
        with tf.control_dependencies([tf.train.AdamOptimizer(0.1).minimize(loss)]):
            return [w.read_value() if hasattr(w, "read_value") else tf.identity(w), loss]

    agree(build)


@pytest.mark.parametrize("outputs", [1, 3, 7, 20, 40, 70])
@pytest.mark.parametrize(
    ("shape", "window", "strides", "rates", "padding"),
    [
        ((3, 9, 14, 5), (3, 2), (1, 1), (1, 1), "SAME"),
        ((2, 13, 8, 4), (3, 3), (1, 1), (2, 3), "VALID"),
        ((2, 12, 9, 3), (5, 1), (2, 3), (1, 1), "SAME"),
        ((4, 7, 7, 16), (1, 1), (1, 1), (1, 1), "VALID"),
        ((2, 6, 6, 2), (2, 2), (1, 1), (1, 1), [[0, 0], [2, 0], [1, 3], [0, 0]]),
        ((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), "SAME"),
    ],
)
def test_windows_are_multiplied_where_they_lie(shape, window, strides, rates, padding, outputs):
    x, w = normal(*shape), normal(*window, shape[-1], outputs)

    def build():
        image, weights = tf.constant(x), tf.constant(w)
        y = tf.nn.conv2d(image, weights, [1, *strides, 1], padding, dilations=[1, *rates, 1])
        return [y, *tf.gradients(tf.reduce_sum(y * y), [image, weights])]

    agree(build, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n"), [(1, 3), (5, 8), (13, 33), (50, 17), (100, 48), (7, 65)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_are_as_wide_as_the_product(m, n, dtype):
    a, b = (
        normal(m, 40_000 // (m * n) + 9, dtype=dtype),
        normal(40_000 // (m * n) + 9, n, dtype=dtype),
    )
    agree(lambda: [tf.matmul(a, b), tf.matmul(tf.transpose(b), a, transpose_b=True)], atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(1, 0, 2), (9, 4, 30), (3,) * 19, (5000, 1, 4097)])
def test_pieces_are_joined_and_cut_by_one_kernel(axis, sizes):
    shapes = [[2, 3, 2] for _ in sizes]
    for shape, n in zip(shapes, sizes, strict=True):
        shape[axis] = n
    pieces = [np.random.default_rng(1).normal(size=n).astype(np.float32) for n in shapes]

    def build():
        whole = tf.concat([tf.constant(piece) for piece in pieces], axis)
        rows = tf.unstack(tf.transpose(whole, [1, 0, 2]), axis=1)
        return [whole, *tf.split(whole, sizes, axis), *rows[:3]]

    agree(build, rtol=0, atol=0)


@pytest.mark.parametrize("value", [0, 7])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
@pytest.mark.parametrize("pads", [[[0, 0]] * 3, [[1, 2], [0, 0], [3, 1]], [[0, 0], [2, 1], [0, 0]]])
def test_margins_are_written_with_what_is_in_them(pads, dtype, value):
    arrays = [np.arange(np.prod(s)).reshape(s).astype(dtype) for s in ((2, 3, 4), (4, 5, 17))]
    agree(lambda: [tf.pad(tf.constant(x), pads, constant_values=value) for x in arrays], 0, 0)
    agree(lambda: [tf.pad(tf.zeros([0, 3, 2], dtype), pads)], 0, 0)
