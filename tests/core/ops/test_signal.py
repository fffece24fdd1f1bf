"""Windows, cosine transforms, short-time spectra, the mel scale."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
@pytest.mark.parametrize("periodic", [False, True])
def test_windows(length, periodic):
    span = length + (periodic and length % 2 == 0) - 1
    ramp = np.cos(2 * np.pi * np.arange(length) / max(span, 1))
    for fn, a, b in ((tf.signal.hann_window, 0.5, 0.5), (tf.signal.hamming_window, 0.54, 0.46)):
        wanted = np.ones(1) if length == 1 else a - b * ramp
        np.testing.assert_allclose(run(fn(length, periodic)), wanted, atol=1e-6)
        fed = tf.placeholder(tf.int32, [])
        np.testing.assert_allclose(run(fn(fed, periodic), {fed: length}), wanted, atol=1e-6)
    assert tf.signal.hann_window(4, dtype=tf.float64).dtype == tf.float64
    with pytest.raises(ValueError, match="dtype must be a floating point type"):
        tf.signal.hann_window(4, dtype=tf.int32)


def cosines(x, kind, norm):
    """The transform by its definition."""
    n = x.shape[-1]
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    if kind == 1:
        matrix = 2 * np.cos(np.pi * k * j / (n - 1))
        matrix[:, [0, -1]] /= 2
    elif kind == 2:
        matrix = 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
    else:
        matrix = 2 * np.cos(np.pi * j * (2 * k + 1) / (2 * n))
        matrix[:, 0] /= 2
    if norm == "ortho":
        weights = np.full(n, np.sqrt(1 / (2 * n)))
        weights[0] = np.sqrt(1 / (4 * n))
        if kind == 2:
            matrix = matrix * weights[:, None]
        else:
            weights[0] = np.sqrt(1 / n)
            matrix = matrix * weights
    return x @ matrix.T


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("known", [True, False])
def test_dct(kind, norm, known):
    if kind == 1 and norm:
        with pytest.raises(ValueError, match="Normalization is not supported for the Type-I DCT"):
            tf.signal.dct(tf.zeros([4]), type=1, norm=norm)
        return
    x = normal(2, 7)
    t = tf.placeholder(tf.float32, x.shape if known else [None, None])
    out = tf.signal.dct(t, type=kind, norm=norm)
    np.testing.assert_allclose(run(out, {t: x}), cosines(x, kind, norm), rtol=1e-4, atol=1e-4)
    back = run(tf.signal.idct(out, type=kind, norm=norm), {t: x})
    factor = 1 if norm == "ortho" else 2 * (7 - 1) if kind == 1 else 2 * 7
    np.testing.assert_allclose(back / factor, x, rtol=1e-3, atol=1e-4)


def test_dct_lengths_and_errors():
    x = normal(2, 6)
    np.testing.assert_allclose(
        run(tf.signal.dct(x, n=4)), cosines(x[:, :4], 2, None), rtol=1e-4, atol=1e-4
    )
    padded = np.pad(x, [(0, 0), (0, 2)])
    np.testing.assert_allclose(
        run(tf.signal.dct(x, n=8)), cosines(padded, 2, None), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(ValueError, match="Only Types I, II and III"):
        tf.signal.dct(x, type=4)
    with pytest.raises(NotImplementedError, match="axis must be -1"):
        tf.signal.dct(x, axis=0)
    with pytest.raises(ValueError, match="Unknown normalization"):
        tf.signal.dct(x, norm="full")
    with pytest.raises(ValueError, match="n should be a positive integer"):
        tf.signal.dct(x, n=0)


def test_frames():
    x = np.arange(10, dtype=np.float32)
    assert run(tf.signal.frame(x, 4, 3)).tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    padded = run(tf.signal.frame(x, 4, 3, pad_end=True, pad_value=-1))
    assert padded.tolist()[-1] == [9, -1, -1, -1]
    rows = tf.signal.frame(x.reshape(5, 2), 2, 2, axis=0)
    assert rows.shape == (2, 2, 2) and run(rows)[1].tolist() == [[4, 5], [6, 7]]
    assert run(tf.signal.frame(x, 20, 1)).shape == (0, 20)
    fed = tf.placeholder(tf.float32, [None])
    assert run(tf.signal.frame(fed, 4, 2), {fed: x}).shape == (4, 4)


@pytest.mark.parametrize(("length", "step"), [(4, 4), (4, 2), (5, 2), (5, 3), (3, 5)])
@pytest.mark.parametrize("known", [True, False])
def test_overlap_and_add(length, step, known):
    frames = normal(2, 6, length)
    wanted = np.zeros((2, 5 * step + length), np.float32)
    for i in range(6):
        wanted[:, i * step : i * step + length] += frames[:, i]
    t = tf.placeholder(tf.float32, frames.shape if known else [None, None, None])
    np.testing.assert_allclose(
        run(tf.signal.overlap_and_add(t, step), {t: frames}), wanted, rtol=1e-5, atol=1e-6
    )


def test_stft_is_undone_by_its_inverse():
    x = normal(3, 400)
    spectra = tf.signal.stft(x, 64, 16, fft_length=128)
    assert spectra.shape.as_list() == [3, 22, 65] and spectra.dtype == tf.complex64
    window = tf.signal.inverse_stft_window_fn(16)
    again = run(tf.signal.inverse_stft(spectra, 64, 16, fft_length=128, window_fn=window))
    np.testing.assert_allclose(again[:, 64:320], x[:, 64:320], rtol=1e-3, atol=1e-4)
    assert tf.signal.stft(x, 50, 25).shape.as_list() == [3, 15, 33]
    framed = np.stack([x[:, i * 25 : i * 25 + 50] for i in range(15)], 1)
    bare = run(tf.signal.stft(x, 50, 25, window_fn=None))
    np.testing.assert_allclose(bare, np.fft.rfft(framed, 64), rtol=1e-3, atol=1e-3)
    assert run(tf.signal.stft(x, 50, 25, pad_end=True)).shape == (3, 16, 33)


def test_mel_scale():
    matrix = run(tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, 125.0, 3800.0))
    mel = 1127.0 * np.log1p(np.linspace(0, 4000, 129)[1:] / 700)
    edges = np.linspace(*(1127.0 * np.log1p(np.array([125.0, 3800.0]) / 700)), 22)
    rising = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    wanted = np.pad(np.maximum(0, np.minimum(rising, falling)), [(1, 0), (0, 0)])
    np.testing.assert_allclose(matrix, wanted, atol=1e-3)
    for bad, message in (
        ({"num_mel_bins": 0}, "num_mel_bins must be positive"),
        ({"lower_edge_hertz": -1.0}, "lower_edge_hertz must be non-negative"),
        ({"lower_edge_hertz": 3900.0}, ">= upper_edge_hertz"),
        ({"sample_rate": 0}, "sample_rate must be positive"),
        ({"upper_edge_hertz": 5000.0}, "must not be larger than the Nyquist frequency"),
        ({"dtype": tf.int32}, "dtype must be a floating point type"),
    ):
        with pytest.raises(ValueError, match=message):
            tf.signal.linear_to_mel_weight_matrix(**bad)


def test_mfccs():
    x = normal(2, 3, 8)
    wanted = cosines(x, 2, None) / np.sqrt(16)
    np.testing.assert_allclose(
        run(tf.signal.mfccs_from_log_mel_spectrograms(x)), wanted, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("axes", [None, 0, -1, [0, 1]])
def test_shifts(axes):
    x = normal(4, 5)
    where = tuple(axes) if isinstance(axes, list) else axes
    assert np.array_equal(run(tf.signal.fftshift(x, axes)), np.fft.fftshift(x, where))
    assert np.array_equal(run(tf.signal.ifftshift(x, axes)), np.fft.ifftshift(x, where))


@pytest.mark.parametrize(("length", "step"), [(4, 2), (4, 3), (2, 3), (12, 1)])
def test_the_gradient_of_frames_is_as_dense_as_the_signal(length, step):
    x = tf.constant(np.arange(22.0).reshape(11, 2))
    frames = tf.signal.frame(x, length, step, axis=0)
    (gradient,) = tf.gradients(frames, x)
    assert isinstance(gradient, tf.Tensor)
    starts = range(0, 11 - length + 1, step)
    counts = [sum(s <= i < s + length for s in starts) for i in range(11)]
    assert run(gradient).tolist() == [[n, n] for n in counts]


def test_frames_of_an_unknown_rank():
    x, step = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    rows = np.arange(10.0).reshape(2, 5)
    padded = tf.signal.frame(x, 3, 2, pad_end=True, pad_value=9)
    assert run(padded, {x: rows})[0].tolist() == [[0, 1, 2], [2, 3, 4], [4, 9, 9]]
    columns = tf.signal.frame(x, 3, 2, axis=0)
    assert run(columns, {x: rows.T}).shape == (2, 3, 2)
    whole = tf.signal.overlap_and_add(x, step)
    assert whole.shape.ndims is None
    got = run(whole, {x: np.ones([4, 3, 5]), step: 2})
    assert got.tolist() == [[1, 1, 2, 2, 3, 2, 2, 1, 1]] * 4


def test_frames_side_by_side_are_a_reshape():
    assert tf.signal.overlap_and_add(tf.ones([3, 5]), 5).op.name == "overlap_and_add/fast_path"


@pytest.mark.parametrize(
    "arguments", [(1.0, 1, 1), ([1.0], [1], 1), ([1.0], 1, [1]), ([1.0], 1, 1, True, [1])]
)
def test_what_cannot_be_framed(arguments):
    with pytest.raises(ValueError, match="rank"):
        tf.signal.frame(*arguments)
