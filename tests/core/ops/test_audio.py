"""Audio: files there and back, and summaries in the same format."""

from __future__ import annotations

from typing import Any

import numpy as np

import opdock as tf
from opdock.mapping import resolve


def test_a_file_there_and_back() -> None:
    audio = np.round(np.sin(np.arange(40.0)).reshape(20, 2) * 32768) / 32768
    contents = tf.audio.encode_wav(audio.astype(np.float32), 44100)
    back, rate = tf.audio.decode_wav(contents)
    short, _ = tf.audio.decode_wav(contents, desired_channels=1, desired_samples=3)
    assert contents.shape == () and short.shape == (3, 1)
    assert back.shape.as_list() == [None, None]
    with tf.Session() as sess:
        samples, per_second, first = sess.run([back, rate, short])
    assert per_second == 44100
    np.testing.assert_array_equal(samples, audio.astype(np.float32))
    np.testing.assert_array_equal(first, samples[:3, :1])


def test_a_summary_holds_the_same_file() -> None:
    clip = np.array([[[0.5], [-2.0], [1.0]]], np.float32)
    file = tf.audio.encode_wav(clip[0], 8000)
    with tf.Session() as sess:
        text, want = sess.run([tf.summary.audio("a", clip, 8000), file])
    assert tf.Summary.FromString(text).value[0].audio.encoded_audio_string == want


def contrib_audio(name: str) -> Any:
    """What programs take from the module where TF kept the ops for speech."""
    return resolve.lookup("contrib.framework.python.ops.audio_ops", name)


def test_a_tone_is_heard_in_its_band() -> None:
    tone = np.sin(2 * np.pi * 1000 / 16000 * np.arange(1024, dtype=np.float32))[:, None]
    spectrum = contrib_audio("audio_spectrogram")(tone, window_size=512, stride=256)
    coefficients = contrib_audio("mfcc")(spectrum, 16000)
    assert spectrum.shape == (1, 3, 257) and coefficients.shape == (1, 3, 13)
    with tf.Session() as sess:
        loud = sess.run(spectrum)
        assert (loud.argmax(2) == 1000 * 512 // 16000).all()
        assert np.isfinite(sess.run(coefficients)).all()
