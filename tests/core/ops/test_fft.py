"""Fourier transforms: values, lengths, shapes, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def normal(*shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.standard_normal(shape)
    return out.astype(dtype)


AXES = {1: (-1,), 2: (-2, -1), 3: (-3, -2, -1)}
FORWARD = {1: "fft", 2: "fft2d", 3: "fft3d"}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_transforms(rank, dtype):
    x = normal(2, 4, 3, 6, dtype=dtype)
    t = tf.constant(x)
    tolerance = 1e-4 if dtype == np.complex64 else 1e-10
    forward = getattr(tf, FORWARD[rank])(t)
    backward = getattr(tf.signal, "i" + FORWARD[rank])(t)
    assert (forward.op.type, forward.dtype) == (FORWARD[rank].upper(), tf.as_dtype(dtype))
    np.testing.assert_allclose(
        run(forward), np.fft.fftn(x, axes=AXES[rank]), rtol=tolerance, atol=tolerance * 20
    )
    np.testing.assert_allclose(
        run(backward), np.fft.ifftn(x, axes=AXES[rank]), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("delta", [None, 0, 1, 3, -1, -2])
def test_real_transforms(rank, delta):
    x = normal(2, 4, 5, 6)
    lengths = None if delta is None else [n + delta for n in x.shape[-rank:]]
    name = "r" + FORWARD[rank]
    forward = getattr(tf.signal, name)(x, lengths)
    wanted = np.fft.rfftn(x, lengths, AXES[rank])
    np.testing.assert_allclose(run(forward), wanted, rtol=1e-4, atol=1e-4)
    assert forward.shape.as_list() == list(wanted.shape)
    spectrum = normal(2, 4, 5, 6, dtype=np.complex64)
    backward = getattr(tf.signal, "i" + name)(spectrum, lengths)
    wanted = np.fft.irfftn(spectrum, lengths, AXES[rank])
    np.testing.assert_allclose(run(backward), wanted, rtol=1e-4, atol=1e-4)
    assert backward.shape.as_list() == list(wanted.shape) and backward.dtype == tf.float32


def test_lengths_of_unknown_shapes():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.complex64, [None, None])
    assert run(tf.signal.rfft(x), {x: np.zeros((2, 7))}).shape == (2, 4)
    inverse = tf.signal.irfft(y)
    assert inverse.shape.as_list() == [None, None]
    assert run(inverse, {y: np.zeros((2, 5))}).shape == (2, 8)
    length = tf.placeholder(tf.int32, [1])
    assert tf.signal.rfft(tf.zeros([3, 8]), length).shape.as_list() == [3, None]


@pytest.mark.parametrize("known", [True, False])
def test_short_inputs_are_padded_in_the_graph_as_tensorflows_kernels_need_it(known):
    values = normal(2, 3, 4)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant(values) if known else tf.placeholder(tf.float32)
        feeds = {} if known else {x: values}
        there = tf.signal.rfft2d(x, [5, 8])
        back = tf.signal.irfft2d(there, [7, 12])
        reads = [op.inputs[0] for op in graph.get_operations() if op.type in ("RFFT2D", "IRFFT2D")]
        shapes = [session.run(r, feeds).shape for r in reads]
        assert shapes == [(2, 5, 8), (2, 7, 7)]
        found = session.run(back, feeds)
    spectrum = np.fft.rfftn(values, [5, 8], (1, 2))
    wanted = np.fft.irfftn(np.pad(spectrum, [(0, 0), (0, 2), (0, 2)]), [7, 12], (1, 2))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_input_that_is_long_enough_is_not_padded():
    with tf.Graph().as_default() as graph:
        tf.signal.irfft(tf.signal.rfft(tf.zeros([2, 8]), [6]), [6])
        assert not [op for op in graph.get_operations() if op.type == "Pad"]


def test_empty_input_and_errors():
    assert run(tf.fft(tf.zeros([0, 4], tf.complex64))).shape == (0, 4)
    assert run(tf.signal.rfft(tf.zeros([2, 4]), [0])).shape == (2, 0)
    with pytest.raises(ValueError, match="Shape must be at least rank 2 but is rank 1"):
        tf.fft2d(tf.zeros([4], tf.complex64))
    with pytest.raises(ValueError, match=r"Shape \(4,\) must have rank at least 2"):
        tf.signal.rfft2d(tf.zeros([4]))
    with pytest.raises(ValueError, match="Dimension must be 1 but is 2"):
        tf.signal.rfft(tf.zeros([4]), [1, 2])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("delta", [0, 2, -1])
@pytest.mark.parametrize("known", [True, False])
def test_gradients(rank, delta, known):
    lengths = [n + delta for n in (4, 3, 6)[-rank:]]
    for dtype, fn in (
        (np.complex64, lambda t: getattr(tf, FORWARD[rank])(t)),
        (np.complex64, lambda t: getattr(tf, "i" + FORWARD[rank])(t)),
        (np.float32, lambda t: getattr(tf.signal, "r" + FORWARD[rank])(t, lengths)),
        (np.complex64, lambda t: getattr(tf.signal, "ir" + FORWARD[rank])(t, lengths)),
    ):
        value, step = normal(4, 3, 6, dtype=dtype), normal(4, 3, 6, dtype=dtype, seed=1)
        x = tf.placeholder(dtype, value.shape if known else None)
        out = fn(x)
        with tf.Session() as session:
            # The transforms are linear, so the derivative along `step` is the transform of it.
            moved = session.run(out, {x: step})
            weights = normal(*moved.shape, dtype=moved.dtype, seed=2)
            slope = tf.gradients(out, x, grad_ys=tf.constant(weights))[0]
            got = session.run(slope, {x: value})
        assert got.shape == value.shape and got.dtype == dtype
        np.testing.assert_allclose(
            np.vdot(got, step).real, np.vdot(weights, moved).real, rtol=2e-3, atol=1e-2
        )


def test_the_lengths_of_a_transform_are_a_vector():
    for transform in (tf.signal.rfft, tf.signal.irfft2d):
        with pytest.raises(ValueError, match=r"Shape \(1, 1\) must have rank 1"):
            transform(np.zeros([2, 2], np.float32), [[1]])


@pytest.mark.parametrize(
    "name, size, lengths, words",
    [
        ("RFFT", [2, 3], [5], "Input dimension 1 must have length of at least 5 but got: 3"),
        ("RFFT2D", [2, 3], [4, 3], "Input dimension 0 must have length of at least 4 but got: 2"),
        ("RFFT3D", [1, 0, 3], [1, 9, 5], "Input dimension 2 must .* at least 5 but got: 3"),
        ("IRFFT", [3], [6], "Input dimension 0 must have length of at least 4 but got: 3"),
        ("IRFFT2D", [2, 3], [3, 4], "Input dimension 0 must have length of at least 3 but got: 2"),
    ],
)
def test_an_op_pads_nothing(name, size, lengths, words):
    x = tf.placeholder(tf.complex64 if name.startswith("I") else tf.float32)
    out = getattr(tf.raw_ops, name)(input=x, fft_length=lengths)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(out, {x: np.zeros(size)})


def test_an_op_takes_what_is_just_long_enough():
    spectrum = np.arange(3.0).astype(np.complex64)
    with tf.Session() as session:
        for length in (4, 5):
            got = session.run(tf.raw_ops.IRFFT(input=spectrum, fft_length=[length]))
            np.testing.assert_allclose(got, np.fft.irfft(spectrum, length), atol=1e-6)
        assert session.run(tf.raw_ops.RFFT(input=np.zeros(0), fft_length=[5])).shape == (3,)
