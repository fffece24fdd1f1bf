"""Audio: WAV files, spectrograms, and the coefficients that speech recognition reads."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.shapes import Shape

# The public ones are in tf.audio.
__all__: list[str] = []

decode_wav_op = define_op(
    "DecodeWav", "contents: string -> audio: float, sample_rate: int32",
    "desired_channels: int = -1, desired_samples: int = -1",
).not_differentiable()  # fmt: skip
encode_wav_op = define_op(
    "EncodeWav", "audio: float, sample_rate: int32 -> contents: string"
).not_differentiable()
audio_spectrogram_op = define_op(
    "AudioSpectrogram", "input: float -> spectrogram: float",
    "window_size: int, stride: int, magnitude_squared: bool = false",
).not_differentiable()  # fmt: skip
mfcc_op = define_op(
    "Mfcc", "spectrogram: float, sample_rate: int32 -> output: float",
    "upper_frequency_limit: float = 4000, lower_frequency_limit: float = 20, "
    "filterbank_channel_count: int = 40, dct_coefficient_count: int = 13",
).not_differentiable()  # fmt: skip


@decode_wav_op.shape
def _decode_wav_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    dims = []
    for what in ("samples", "channels"):
        wanted = sig.attrs[f"desired_{what}"]
        if wanted < -1:
            raise ValueError(f"{what} must be non-negative, got {wanted}")
        dims.append(None if wanted == -1 else wanted)
    return [tuple(dims), ()]


@encode_wav_op.shape
def _encode_wav_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 2)
    shapes.with_rank(sig.shapes[1], 0)
    return ()


@audio_spectrogram_op.shape
def _spectrogram_shape(sig: ShapeSig) -> Shape:
    length, channels = shapes.with_rank(sig.shapes[0], 2)
    window, stride = sig.attrs["window_size"], sig.attrs["stride"]
    if window < 2 or stride < 1:
        # The step says what is wrong.
        return (channels, None, None)
    rows = None if length is None else max(0, 1 + (length - window) // stride)
    return (channels, rows, 1 + (1 << (window - 1).bit_length()) // 2)


@mfcc_op.shape
def _mfcc_shape(sig: ShapeSig) -> Shape:
    channels, rows, _ = shapes.with_rank(sig.shapes[0], 3)
    shapes.with_rank(sig.shapes[1], 0)
    return (channels, rows, sig.attrs["dct_coefficient_count"])


@extensible
def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """The samples of a 16-bit PCM WAV file.

    Args:
        contents: a scalar string, the file.
        desired_channels: how many channels to make: the first ones, or the last one repeated.
        desired_samples: how many frames to make: the first ones, or silence after the last.
        name: a name for the operation.

    Returns:
        (audio, sample_rate): a float32 tensor [frames, channels] of values in -1..1, and an int32
        scalar.

    Raises:
        InvalidArgumentError: at run time, when the file is another one, or broken.
    """
    return decode_wav_op(
        contents, desired_channels=desired_channels, desired_samples=desired_samples, name=name
    )


@extensible
def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """A 16-bit PCM WAV file of samples.

    Args:
        audio: a float32 tensor [frames, channels]; values beyond -1..1 are cut off.
        sample_rate: an int32 scalar, frames a second.
        name: a name for the operation.

    Returns:
        A scalar string.

    Raises:
        InvalidArgumentError: at run time, when there are no samples, or too many for a file.
    """
    contents: Tensor = encode_wav_op(audio, sample_rate, name=name)
    return contents


def audio_spectrogram(
    input: Any, window_size: int, stride: int, magnitude_squared: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """How loud each frequency is, in windows of a Hann shape one after the other.

    Args:
        input: a float32 tensor [frames, channels].
        window_size: frames of a window; its Fourier transform is as long as the next power of two.
        stride: frames from one window to the next.
        magnitude_squared: give powers, not magnitudes.
        name: a name for the operation.

    Returns:
        A float32 tensor [channels, windows, frequencies].

    Raises:
        InvalidArgumentError: at run time, when a window has one frame, or the stride none.
    """
    attrs = {
        "window_size": window_size, "stride": stride, "magnitude_squared": magnitude_squared,
    }  # fmt: skip
    spectrogram: Tensor = audio_spectrogram_op(input, name=name, **attrs)
    return spectrogram


def mfcc(
    spectrogram: Any, sample_rate: Any, upper_frequency_limit: float = 4000,
    lower_frequency_limit: float = 20, filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Mel-frequency cepstral coefficients: what speech recognition reads of a spectrogram.

    Args:
        spectrogram: a float32 tensor [channels, windows, frequencies] of powers.
        sample_rate: an int32 scalar, frames a second.
        upper_frequency_limit: hertz, the highest that count.
        lower_frequency_limit: hertz, the lowest that count.
        filterbank_channel_count: bands of the mel scale.
        dct_coefficient_count: coefficients, at most as many as bands.
        name: a name for the operation.

    Returns:
        A float32 tensor [channels, windows, coefficients].

    Raises:
        InvalidArgumentError: at run time, when bands, limits or rate make no sense.
    """
    attrs = {
        "upper_frequency_limit": upper_frequency_limit,
        "lower_frequency_limit": lower_frequency_limit,
        "filterbank_channel_count": filterbank_channel_count,
        "dct_coefficient_count": dct_coefficient_count,
    }
    coefficients: Tensor = mfcc_op(spectrogram, sample_rate, name=name, **attrs)
    return coefficients
