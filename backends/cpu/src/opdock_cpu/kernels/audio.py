"""Kernels of audio."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, host_ops

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


# ---------------------------------------------------------------- files
@table.binder("DecodeWav")
def decode_wav(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The samples of a file, in as many frames and channels as are wanted."""
    wanted_frames, wanted_channels = sig.attrs["desired_samples"], sig.attrs["desired_channels"]

    def run(contents: Array) -> tuple[Array, Array]:
        if np.ndim(contents):
            shape = checks.dims(contents.shape)
            raise checks.invalid(f"contents must be scalar, got shape {shape}")
        audio, rate = host_ops.decode_wav(np.asarray(contents, object)[()])
        frames, channels = audio.shape
        if wanted_channels >= 0:
            audio = audio[:, np.minimum(np.arange(wanted_channels), channels - 1)]
        if wanted_frames >= 0:
            silence = np.zeros((max(0, wanted_frames - frames), audio.shape[1]), np.float32)
            audio = np.concatenate([audio[:wanted_frames], silence])
        return audio, np.array(rate & 0xFFFFFFFF, np.uint32).view(np.int32)

    return run


@table.kernel("EncodeWav", host_inputs=("sample_rate",))
def encode_wav(ctx: Any, audio: Array, sample_rate: Array) -> Array:
    """A file of samples."""
    if audio.ndim != 2:
        raise checks.invalid(f"audio must be 2-dimensional{checks.dims(audio.shape)}")
    _check_rate(sample_rate)
    out = np.empty((), object)
    out[()] = host_ops.encode_wav(audio, int(sample_rate))
    return out


def _check_rate(sample_rate: Array) -> None:
    if np.ndim(sample_rate):
        raise checks.invalid(
            "Input sample_rate should be a scalar tensor, got "
            f"{checks.dims(sample_rate.shape)} instead."
        )


# ---------------------------------------------------------------- spectra
@table.binder("AudioSpectrogram")
def audio_spectrogram(sig: NodeSig) -> Callable[[Array], Array]:
    """Magnitudes of the Fourier transforms of Hann windows, of each channel."""
    size, stride = sig.attrs["window_size"], sig.attrs["stride"]
    squared = sig.attrs["magnitude_squared"]

    def run(audio: Array) -> Array:
        if audio.ndim != 2:
            raise checks.invalid(f"input must be 2-dimensional{checks.dims(audio.shape)}")
        if size < 2 or stride < 1:
            raise checks.invalid(
                f"Spectrogram initialization failed for window size {size} and stride {stride}"
            )
        hann = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(size) / size)
        width = 1 << (size - 1).bit_length()
        if len(audio) < size:
            return np.zeros((audio.shape[1], 0, 1 + width // 2), np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(audio.T, size, axis=1)[:, ::stride]
        spectrum = np.fft.rfft(windows * hann, width)
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
        return power if squared else np.sqrt(power)

    return run


@table.binder("Mfcc", host_inputs=("sample_rate",))
def mfcc(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Cosine transforms of the logarithms of what bands on the mel scale hear."""
    low, high = sig.attrs["lower_frequency_limit"], sig.attrs["upper_frequency_limit"]
    bands, count = sig.attrs["filterbank_channel_count"], sig.attrs["dct_coefficient_count"]

    def run(spectrogram: Array, sample_rate: Array) -> Array:
        if spectrogram.ndim != 3:
            shape = checks.dims(spectrogram.shape)
            raise checks.invalid(f"spectrogram must be 3-dimensional{shape}")
        _check_rate(sample_rate)
        bins, rate = spectrogram.shape[2], int(sample_rate)
        possible = bands >= 1 and rate > 0 and bins >= 2 and 0 <= low < high
        if not possible or not 1 <= count <= bands:
            raise checks.invalid(
                f"Mfcc initialization failed for channel count {bins} and sample rate {rate}"
            )
        hertz = 0.5 * rate / (bins - 1)
        if int(high / hertz) >= bins:
            # Bands beyond the spectrum: TF warns, and answers zeros.
            return np.zeros((*spectrogram.shape[:2], count), np.float32)
        heard = np.sqrt(spectrogram.astype(np.float64)) @ _mel_bands(bins, hertz, bands, low, high)
        cosines = np.cos(np.outer(np.arange(bands) + 0.5, np.arange(count)) * math.pi / bands)
        out = np.log(np.maximum(heard, 1e-12)) @ (math.sqrt(2 / bands) * cosines)
        return np.asarray(out, np.float32)

    return run


def _mel_bands(bins: int, hertz: float, bands: int, low: float, high: float) -> Array:
    """How much of each bin of a spectrum each band hears, [bins, bands]: triangles that overlap."""
    mel = 1127.0 * np.log1p(np.arange(bins) * hertz / 700.0)
    bottom, top = (1127.0 * math.log1p(limit / 700.0) for limit in (low, high))
    edges = bottom + (top - bottom) / (bands + 1) * np.arange(bands + 2)
    # The constant part of a signal is never heard.
    used = np.arange(int(1.5 + low / hertz), int(high / hertz) + 1)
    # A bin between two edges is on the way down from the first and on the way up to the second.
    right = np.minimum(np.searchsorted(edges[1:], mel[used], side="left"), bands)
    falling = (edges[right + 1] - mel[used]) / (edges[1] - edges[0])
    weights = np.zeros((bins, bands + 2))
    weights[used, right] = falling
    weights[used, right + 1] = 1 - falling
    return weights[:, 1:-1]
