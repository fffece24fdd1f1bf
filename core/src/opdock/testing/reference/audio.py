"""Oracle of audio: sample by sample and bin by bin."""

from __future__ import annotations

import cmath
import io
import math
import wave
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@reference("DecodeWav")
def decode_wav(attrs: Attrs, contents: Array) -> tuple[Array, Array]:
    """What Python's own reader finds."""
    with wave.open(io.BytesIO(bytes(contents[()]))) as file:
        channels, rate = file.getnchannels(), file.getframerate()
        frames = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels)
    wanted = attrs.get("desired_samples", -1), attrs.get("desired_channels", -1)
    shape = [have if want < 0 else want for have, want in zip(frames.shape, wanted, strict=True)]
    out = np.zeros(shape, np.float64)
    for at in np.ndindex(*shape):
        if at[0] < len(frames):
            out[at] = frames[at[0], min(at[1], channels - 1)] / 32768
    return out, np.array(rate, np.int32)


@reference("EncodeWav")
def encode_wav(attrs: Attrs, audio: Array, sample_rate: Array) -> Array:
    """What Python's own writer makes of samples that are rounded one by one."""
    whole = [math.copysign(math.floor(abs(v) * 32768 + 0.5), v) for v in audio.reshape(-1).tolist()]
    samples = np.array([min(max(v, -32768), 32767) for v in whole], "<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(audio.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        file.writeframes(samples.tobytes())
    result = np.empty((), object)
    result[()] = out.getvalue()
    return result


@reference("AudioSpectrogram")
def audio_spectrogram(attrs: Attrs, audio: Array) -> Array:
    """The sum that defines a Fourier transform, of each window."""
    size, stride = attrs["window_size"], attrs["stride"]
    width = 1
    while width < size:
        width *= 2
    starts = range(0, len(audio) - size + 1, stride)
    out = np.zeros((audio.shape[1], len(starts), width // 2 + 1))
    for channel, row, bin_ in np.ndindex(*out.shape):
        total = sum(
            audio[starts[row] + i, channel] * (0.5 - 0.5 * math.cos(2 * math.pi * i / size))
            * cmath.exp(-2j * math.pi * i * bin_ / width)
            for i in range(size)
        )  # fmt: skip
        out[channel, row, bin_] = abs(total) ** (2 if attrs.get("magnitude_squared") else 1)
    return out


@reference("Mfcc")
def mfcc(attrs: Attrs, spectrogram: Array, sample_rate: Array) -> Array:
    """Band by band: a triangle up from the center of the band before, down to that of the next."""

    def mel(hertz: float) -> float:
        return 1127.0 * math.log1p(hertz / 700.0)

    low, high = attrs.get("lower_frequency_limit", 20.0), attrs.get("upper_frequency_limit", 4000.0)
    bands, count = attrs["filterbank_channel_count"], attrs["dct_coefficient_count"]
    hertz = 0.5 * int(sample_rate) / (spectrogram.shape[2] - 1)
    edges = [mel(low) + (mel(high) - mel(low)) / (bands + 1) * i for i in range(bands + 2)]
    out = np.zeros((*spectrogram.shape[:2], count))
    for at in np.ndindex(*spectrogram.shape[:2]):
        logs = []
        for band in range(bands):
            left, center, right = edges[band : band + 3]
            heard = 0.0
            for i in range(int(1.5 + low / hertz), int(high / hertz) + 1):
                up, down = (mel(i * hertz) - left, right - mel(i * hertz))
                share = min(up / (center - left), down / (right - center))
                heard += math.sqrt(spectrogram[(*at, i)]) * max(share, 0.0)
            logs.append(math.log(max(heard, 1e-12)))
        for i in range(count):
            turns = [math.cos(math.pi / bands * i * (j + 0.5)) for j in range(bands)]
            out[(*at, i)] = math.sqrt(2 / bands) * float(np.dot(turns, logs))
    return out
