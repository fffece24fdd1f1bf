"""Short-time spectra: framing, STFT and its inverse, mel scale (`tf.signal.*`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, minimum, pow
from opdock.ops.array import rank, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.signal_windows import _resized, dct, hann_window
from opdock.ops.elementary import ceil, log, rsqrt, square
from opdock.ops.fft import irfft, rfft
from opdock.ops.fill import linspace
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.joining import concat, stack
from opdock.ops.matrix import transpose
from opdock.ops.padding import pad
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import get
from opdock.ops.select import one_hot
from opdock.ops.tiling import roll, tile

__all__: list[str] = []


def _number(value: Any, name: str) -> Any:
    """A Python integer when the value is known, else a scalar int32 tensor."""
    tensor = convert_to_tensor(value, dtypes.int32, name)
    shapes.with_rank(tensor.raw_shape, 0)
    known = constant_value(tensor)
    return tensor if known is None else int(known)


@extensible
def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0,
    axis: int = -1, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Cuts a dimension into (overlapping) frames.

    Args:
        signal: a tensor of rank 1 or more.
        frame_length: the length of a frame, a scalar int32.
        frame_step: the distance between the starts of two frames, a scalar int32.
        pad_end: pad the end, so that a frame starts at every step; else incomplete frames are
            dropped.
        pad_value: what to pad with.
        axis: the dimension to cut.
        name: a name for the operation.

    Returns:
        A tensor whose dimension `axis` is replaced by [number of frames, frame_length].

    Raises:
        ValueError: `signal` is a scalar, or the lengths or `pad_value` are none.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        static = shapes.with_rank_at_least(signal.raw_shape, 1)
        length, step = _number(frame_length, "frame_length"), _number(frame_step, "frame_step")
        shapes.with_rank(convert_to_tensor(pad_value).raw_shape, 0)
        axis = axis if static is None else axis % len(static)
        known = None if static is None else static[axis]
        size = known if known is not None else shape(signal)[axis]
        if pad_end:
            count = -(-size // step)
            signal = _pad_end(signal, axis, length + step * (count - 1) - size, pad_value)
        else:
            count = 1 + (size - length) // step
        count = max(count, 0) if isinstance(count, int) else maximum(count, 0)
        return _frames(signal, axis, length, step, count)


def _frames(signal: Tensor, axis: int, length: Any, step: Any, count: Any) -> Tensor:
    """Frames of a signal that is long enough for all of them.

    They are gathered in pieces as long as what length and step have in common, of a tensor that is
    made of such pieces: fewer indices, and a gradient that is dense as the signal is.
    """
    piece = math.gcd(length, step) if isinstance(length, int) and isinstance(step, int) else 1
    static = signal.raw_shape
    outer: Any
    size: Any
    inner: Any
    if static is None:
        dims = shape(signal)
        outer, size, inner = dims[:axis], dims[axis], dims[axis:][1:]
    else:
        known = [shape(signal)[i] if n is None else n for i, n in enumerate(static)]
        outer, size, inner = known[:axis], known[axis], known[axis + 1 :]
    pieces = size // piece
    if not isinstance(pieces, int) or pieces * piece != size:
        whole = _joined(outer, [pieces * piece], inner)
        signal = get("Slice")(signal, get("ZerosLike")(shape(signal)), whole)
    cut = reshape(signal, _joined(outer, [pieces, piece], inner))
    starts = reshape(range_(count) * (step // piece), [-1, 1])
    chosen = starts + reshape(range_(length // piece), [1, -1])
    frames = gather(cut, chosen, axis=axis if axis >= 0 else axis - 1)
    return reshape(frames, _joined(outer, [count, length], inner))


def _joined(outer: Any, middle: list[Any], inner: Any) -> Any:
    """A shape of three parts, lists or, of tensors of unknown rank, vectors."""
    if isinstance(outer, list):
        return [*outer, *middle, *inner]
    return concat([outer, middle, inner], 0)


def _pad_end(x: Tensor, axis: int, amount: Any, value: Any) -> Tensor:
    amount = max(amount, 0) if isinstance(amount, int) else maximum(amount, 0)
    if x.raw_shape is None:
        places = one_hot(axis % rank(x), rank(x), dtype=dtypes.int32)
        return pad(x, stack([places * 0, places * amount], 1), constant_values=value)
    paddings = [[0, amount if i == axis % len(x.raw_shape) else 0] for i in range(len(x.raw_shape))]
    return pad(x, paddings, constant_values=value)


@extensible
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Puts frames back into one signal, adding where they overlap.

    Args:
        signal: a tensor of shape [..., frames, frame_length].
        frame_step: the distance between the starts of two frames, a scalar int32.
        name: a name for the operation.

    Returns:
        A tensor of shape [..., (frames - 1) * frame_step + frame_length].

    Raises:
        ValueError: the rank of `signal` is below 2, or the step is no integer.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        static = shapes.with_rank_at_least(signal.raw_shape, 2)
        step_tensor = convert_to_tensor(frame_step, name="frame_step")
        if not step_tensor.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step_tensor.dtype}")
        step = _number(frame_step, "frame_step")
        dims = shape(signal)

        def size(axis: int) -> Any:
            known = None if static is None else static[axis]
            return dims[axis] if known is None else known

        def shaped(x: Tensor, *last: Any, name: str | None = None) -> Tensor:
            """`x` with other dimensions after the outer ones."""
            if static is None:
                return reshape(x, concat([dims[:-2], stack(last)], 0), name=name)
            outer = [dims[i] if d is None else d for i, d in enumerate(static[:-2])]
            return reshape(x, [*outer, *last], name=name)

        frames, length = size(-2), size(-1)
        if isinstance(step, int) and step == length:
            return shaped(signal, frames * length, name="fast_path")
        parts = -(-length // step)
        # Every frame becomes `parts` pieces of one step. A grid with one row more than fits makes
        # each column of pieces slide by one when it is read as rows of one less.
        x = _pad_end(_pad_end(signal, -2, parts, 0), -1, parts * step - length, 0)
        x = _columns_first(reshape(x, [-1, frames + parts, parts, step]))
        x = shaped(x, (frames + parts) * parts, step)
        x = x[..., : (frames + parts - 1) * parts, :]
        x = reduce_sum(shaped(x, parts, frames + parts - 1, step), -3)
        x = shaped(x, (frames + parts - 1) * step)
        return x[..., : (frames - 1) * step + length]


def _columns_first(x: Tensor) -> Tensor:
    """Dimensions -3 and -2 of 4 exchanged."""
    return transpose(x, [0, 2, 1, 3])


def _power_of_two(value: Any) -> Any:
    """The smallest power of two that is not below `value`."""
    if isinstance(value, int):
        return 2 ** math.ceil(math.log2(value)) if value > 0 else 1

    exponent = ceil(log(cast(value, dtypes.float32)) / math.log(2.0))
    return cast(pow(2.0, exponent), dtypes.int32)


@extensible
def stft(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window, pad_end: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The short-time Fourier transform: spectra of windowed frames.

    Args:
        signals: a float32 tensor of shape [..., samples].
        frame_length: the length of a frame in samples.
        frame_step: the distance between frames in samples.
        fft_length: the length of the transform; by default the power of two that holds a frame.
        window_fn: called as window_fn(frame_length, dtype=...) for the window; None for none.
        pad_end: pad the signal, so that a frame starts at every step.
        name: a name for the operation.

    Returns:
        A complex64 tensor of shape [..., frames, fft_length / 2 + 1].
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        length, step = _number(frame_length, "frame_length"), _number(frame_step, "frame_step")
        size = _power_of_two(length) if fft_length is None else _number(fft_length, "fft_length")
        frames = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return rfft(frames, [size])


@extensible
def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Signals from short-time spectra, overlapped and added.

    Args:
        stfts: a complex64 tensor of shape [..., frames, fft_length / 2 + 1].
        frame_length: the length of a frame in samples.
        frame_step: the distance between frames in samples.
        fft_length: the length of the transform; by default the power of two that holds a frame.
        window_fn: called for the window; see `tf.signal.inverse_stft_window_fn`.
        name: a name for the operation.

    Returns:
        A float32 tensor of shape [..., samples].
    """
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        length, step = _number(frame_length, "frame_length"), _number(frame_step, "frame_step")
        size = _power_of_two(length) if fft_length is None else _number(fft_length, "fft_length")
        frames = _resized(irfft(stfts, [size]), length)
        if window_fn is not None:
            window = window_fn(length, dtype=stfts.dtype.real_dtype)
            frames = frames * window
        return overlap_and_add(frames, step)


@extensible
def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """A window function for `inverse_stft` that undoes the window of `stft` exactly.

    Args:
        frame_step: the distance between frames in samples.
        forward_window_fn: the window function that `stft` used.
        name: a name for the operations.

    Returns:
        A function of (frame_length, dtype).
    """
    step = _number(frame_step, "frame_step")

    def window(frame_length: Any, dtype: Any) -> Tensor:
        """The forward window over the sum of its squares in all overlapping frames."""
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length = _number(frame_length, "frame_length")
            forward = forward_window_fn(length, dtype=dtype)
            parts = -(-length // step)
            squares = _pad_end(square(forward), 0, parts * step - length, 0)
            total = reduce_sum(reshape(squares, [parts, step]), 0, keepdims=True)
            total = reshape(tile(total, [parts, 1]), [parts * step])
            out: Tensor = forward / total[:length]
            return out

    return window


# ---------------------------------------------------------------- mel scale
def _hertz_to_mel(frequencies: Any) -> Tensor:
    return 1127.0 * log(1.0 + frequencies / 700.0)


@extensible
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix that takes a spectrum to the mel scale.

    Args:
        num_mel_bins: the number of bands.
        num_spectrogram_bins: the number of bins of the spectrum, fft_size / 2 + 1.
        sample_rate: samples per second.
        lower_edge_hertz: the lower end of the lowest band.
        upper_edge_hertz: the upper end of the highest band.
        dtype: a floating-point type.
        name: a name for the operation.

    Returns:
        A tensor of shape [num_spectrogram_bins, num_mel_bins].

    Raises:
        ValueError: an argument is out of its range.
    """
    dtype = dtypes.as_dtype(dtype)
    with name_scope(name, "linear_to_mel_weight_matrix") as scope:
        _check_mel(num_mel_bins, sample_rate, lower_edge_hertz, upper_edge_hertz, dtype)
        rate = cast(sample_rate, dtype)
        low = convert_to_tensor(lower_edge_hertz, dtype)
        high = convert_to_tensor(upper_edge_hertz, dtype)
        zero = convert_to_tensor(0.0, dtype)
        # The bin of frequency zero belongs to no band.
        frequencies = linspace(zero, rate / 2.0, num_spectrogram_bins)[1:]
        bins = reshape(_hertz_to_mel(frequencies), [-1, 1])
        edges = linspace(_hertz_to_mel(low), _hertz_to_mel(high), num_mel_bins + 2)
        lower, center, upper = (
            reshape(edges[i : i + num_mel_bins], [1, num_mel_bins]) for i in range(3)
        )
        rising = (bins - lower) / (center - lower)
        falling = (upper - bins) / (upper - center)
        weights = maximum(zero, minimum(rising, falling))
        return pad(weights, [[1, 0], [0, 0]], name=scope)


def _check_mel(bins: int, rate: Any, low: float, high: float, dtype: dtypes.DType) -> None:
    if bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {bins}")
    if low < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {low}")
    if low >= high:
        raise ValueError(f"lower_edge_hertz {low:.1f} >= upper_edge_hertz {high:.1f}")
    if not isinstance(rate, Tensor):
        if rate <= 0.0:
            raise ValueError(f"sample_rate must be positive. Got: {rate}")
        if high > rate / 2:
            raise ValueError(
                "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
                f"Got {high} for sample_rate: {rate}"
            )
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")


@extensible
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients, scaled as HTK does.

    Args:
        log_mel_spectrograms: a float32 tensor of shape [..., num_mel_bins].
        name: a name for the operation.

    Returns:
        A float32 tensor of the same shape.

    Raises:
        ValueError: there are no bins.
    """
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = convert_to_tensor(log_mel_spectrograms)
        bins = None if x.raw_shape is None else x.raw_shape[-1]
        if bins == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {x}")
        out = dct(x, type=2)
        count = cast(bins if bins is not None else shape(x)[-1], out.dtype)
        return out * rsqrt(2.0 * count)


# ---------------------------------------------------------------- centre of the spectrum
@extensible
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the frequency zero to the centre.

    Args:
        x: a tensor.
        axes: the dimension or dimensions to shift; all by default.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    return _shifted(x, axes, name, "fftshift", inverse=False)


@extensible
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Undoes `fftshift` (which differs for odd sizes).

    Args:
        x: a tensor.
        axes: the dimension or dimensions to shift; all by default.
        name: a name for the operation.

    Returns:
        A tensor of the type and shape of `x`.
    """
    return _shifted(x, axes, name, "ifftshift", inverse=True)


def _shifted(x: Any, axes: Any, name: str | None, default: str, inverse: bool) -> Tensor:
    with name_scope(name, default) as scope:
        x = convert_to_tensor(x)
        if axes is None:
            axes = list(range(len(x.raw_shape or ())))
        elif isinstance(axes, int):
            axes = [axes]
        axes = [a % len(x.raw_shape) if x.raw_shape is not None else a for a in axes]
        half = gather(shape(x), axes) // 2
        return roll(x, -half if inverse else half, axes, scope)
