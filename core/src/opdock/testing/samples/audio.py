"""Samples of audio."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_RATE = np.array(16000, np.int32)


def _file(channels: int, frames: int = 5) -> Any:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(8000)
        numbers = np.arange(frames * channels, dtype="<i2") * 977 - 9000
        file.writeframes(numbers.tobytes())
    return _scalar(out.getvalue())


def _scalar(data: bytes) -> Any:
    out = np.empty((), object)
    out[()] = data
    return out


@samples("DecodeWav")
def files(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One channel and two, cut and extended."""
    for channels in (1, 2):
        for wanted, frames in ((-1, -1), (1, 3), (3, 7)):
            attrs = {"desired_channels": wanted, "desired_samples": frames}
            yield Sample([_file(channels)], attrs, f"{channels}-as{wanted}x{frames}")


@samples("EncodeWav")
def clips(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Samples within the range, beyond it, and between two steps."""
    within = np.array([[0.0, 0.5], [-0.25, 0.1]], np.float32)
    beyond = np.array([[1.0], [-1.0], [7.0], [-7.0], [0.5 / 32768], [-1.5 / 32768]], np.float32)
    for tag, audio in (("within", within), ("beyond", beyond)):
        yield Sample([audio, _RATE], {}, tag)


@samples("AudioSpectrogram")
def spectrograms(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Windows of a power of two and not, too long ones, several channels."""
    audio = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    for size, stride in ((8, 4), (6, 5), (2, 1), (20, 3), (21, 3)):
        for squared in (False, True):
            attrs = {"window_size": size, "stride": stride, "magnitude_squared": squared}
            yield Sample([audio], attrs, f"{size}-{stride}-{squared}", tol=(1e-5, 1e-5),
                         tol_reason="sums of cosines")  # fmt: skip


@samples("Mfcc")
def coefficients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few bands and many, other limits."""
    power = np.random.default_rng(1).uniform(0, 9, (2, 3, 129)).astype(np.float32)
    for tag, attrs in (
        ("few", {"filterbank_channel_count": 4, "dct_coefficient_count": 4}),
        ("many", {"filterbank_channel_count": 20, "dct_coefficient_count": 7}),
        ("limits", {"filterbank_channel_count": 10, "dct_coefficient_count": 10,
                    "lower_frequency_limit": 300.0, "upper_frequency_limit": 7000.0}),
    ):  # fmt: skip
        yield Sample([power, _RATE], attrs, tag, tol=(1e-5, 1e-5), tol_reason="sums of cosines")


@error_samples("DecodeWav")
def broken() -> Iterable[ErrorSample]:
    """Another format, a file cut off, several files."""
    data = _file(1)[()]
    yield ErrorSample([_scalar(b"RIFX" + data[4:])], {}, match="Expected RIFF but found RIFX")
    yield ErrorSample([_scalar(data[:50])], {}, match="Data too short")
    yield ErrorSample([_scalar(data[:36])], {}, match="No data chunk found")
    yield ErrorSample([_scalar(data[:20] + b"\3" + data[21:])], {}, match="Bad audio format")
    yield ErrorSample([_scalar(data[:34] + b"\x08" + data[35:])], {}, match="only read 16-bit")


@error_samples("EncodeWav")
def silence() -> Iterable[ErrorSample]:
    """No samples; no rate."""
    none = np.zeros((0, 1), np.float32)
    yield ErrorSample([none, _RATE], {}, match="num_frames must be positive")
    one, zero = np.zeros((1, 1), np.float32), np.array(0, np.int32)
    yield ErrorSample([one, zero], {}, match="sample_rate must be in")


@error_samples("AudioSpectrogram")
def windows() -> Iterable[ErrorSample]:
    """A window of one sample."""
    attrs = {"window_size": 1, "stride": 1}
    audio = np.zeros((4, 1), np.float32)
    yield ErrorSample([audio], attrs, match="initialization failed for window size 1 and stride 1")


@error_samples("Mfcc")
def bands() -> Iterable[ErrorSample]:
    """More coefficients than bands."""
    attrs = {"filterbank_channel_count": 3, "dct_coefficient_count": 4}
    power = np.zeros((1, 1, 9), np.float32)
    yield ErrorSample([power, _RATE], attrs, match="Mfcc initialization failed")
