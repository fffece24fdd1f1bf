"""Portable kernels of spectra of sound, computed in double precision as TF's are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import complex128, float64
from opdock.kernels.array_api import device_ints, dims, invalid
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_sample_rate(sample_rate: Any) -> None:
    """Raises InvalidArgumentError unless the rate is one number."""
    if np.ndim(sample_rate):
        raise invalid(
            f"Input sample_rate should be a scalar tensor, got {dims(sample_rate.shape)} instead."
        )


def _constant(xp: Any, values: Array, like: Any) -> Any:
    return xp.asarray(values, dtype=xp.float64, device=getattr(like, "device", None))


@portable("AudioSpectrogram", extension="fft", computes_in=(float64, complex128))
def audio_spectrogram(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Magnitudes of the Fourier transforms of Hann windows, of each channel."""
    size, stride = sig.attrs["window_size"], sig.attrs["stride"]
    squared = sig.attrs["magnitude_squared"]

    def run(audio: Any) -> Any:
        if len(audio.shape) != 2:
            raise invalid(f"input must be 2-dimensional{dims(audio.shape)}")
        if size < 2 or stride < 1:
            raise invalid(
                f"Spectrogram initialization failed for window size {size} and stride {stride}"
            )
        frames, channels = audio.shape
        width = 1 << (size - 1).bit_length()
        if frames < size or not channels:
            count = max(0, 1 + (frames - size) // stride)
            shape = (channels, count, 1 + width // 2)
            return xp.zeros(shape, dtype=xp.float32, device=getattr(audio, "device", None))
        starts = np.arange(0, frames - size + 1, stride)
        places = (starts[:, None] + np.arange(size)).reshape(-1)
        sound = xp.astype(xp.matrix_transpose(audio), xp.float64)
        windows = xp.take(sound, device_ints(xp, places, audio), axis=1)
        windows = xp.reshape(windows, (channels, len(starts), size))
        hann = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(size) / size)
        spectrum = xp.fft.rfft(windows * _constant(xp, hann, audio), n=width)
        real, imaginary = xp.real(spectrum), xp.imag(spectrum)
        power = xp.astype(real * real + imaginary * imaginary, xp.float32)
        return power if squared else xp.sqrt(power)

    return run


@portable("Mfcc", host_inputs=("sample_rate",), computes_in=float64)
def mfcc(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """Cosine transforms of the logarithms of what bands on the mel scale hear."""
    low, high = sig.attrs["lower_frequency_limit"], sig.attrs["upper_frequency_limit"]
    bands, count = sig.attrs["filterbank_channel_count"], sig.attrs["dct_coefficient_count"]

    def run(spectrogram: Any, sample_rate: Any) -> Any:
        if len(spectrogram.shape) != 3:
            raise invalid(f"spectrogram must be 3-dimensional{dims(spectrogram.shape)}")
        check_sample_rate(sample_rate)
        bins, rate = spectrogram.shape[2], int(sample_rate)
        possible = bands >= 1 and rate > 0 and bins >= 2 and 0 <= low < high
        if not possible or not 1 <= count <= bands:
            raise invalid(
                f"Mfcc initialization failed for channel count {bins} and sample rate {rate}"
            )
        hertz = 0.5 * rate / (bins - 1)
        if int(high / hertz) >= bins:
            # Bands beyond the spectrum: TF warns, and answers zeros.
            shape = (*spectrogram.shape[:2], count)
            return xp.zeros(shape, dtype=xp.float32, device=getattr(spectrogram, "device", None))
        weights = _constant(xp, _mel_bands(bins, hertz, bands, low, high), spectrogram)
        heard = xp.matmul(xp.sqrt(xp.astype(spectrogram, xp.float64)), weights)
        cosines = np.cos(np.outer(np.arange(bands) + 0.5, np.arange(count)) * math.pi / bands)
        cosines = _constant(xp, math.sqrt(2 / bands) * cosines, spectrogram)
        return xp.astype(xp.matmul(xp.log(xp.clip(heard, 1e-12, None)), cosines), xp.float32)

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
