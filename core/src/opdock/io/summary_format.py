"""Summary protobufs from arrays: what the summary ops compute."""

from __future__ import annotations

import functools
import io
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opdock import errors
from opdock.io import protos
from opdock.io.tensor_proto import encode_array
from opdock.io.wav_format import encode_wav

Array = np.ndarray[Any, Any]

__all__ = [
    "Histogram", "audio_summary", "histogram", "histogram_summary", "image_summary",
    "merge_summaries", "scalar_summary", "tensor_summary",
]  # fmt: skip


def _fail(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _shape(array: Array) -> str:
    return "[" + ",".join(str(d) for d in array.shape) + "]"


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _one_tag(tags: Array) -> str:
    return _text(np.asarray(tags).reshape(-1)[0])


# ---------------------------------------------------------------- numbers
def scalar_summary(tags: Array, values: Array) -> bytes:
    """A Summary with one value per tag.

    Raises:
        InvalidArgumentError: tags and values have different shapes.
    """
    tags, values = np.asarray(tags, object), np.asarray(values)
    both_single = tags.size == values.size == 1 and tags.ndim <= 1 and values.ndim <= 1
    if tags.shape != values.shape and not both_single:
        which = f" (tag '{_one_tag(tags)}')" if tags.size == 1 else ""
        raise _fail(
            f"tags and values not the same shape: {_shape(tags)} != {_shape(values)}{which}"
        )
    summary = protos.Summary()
    if both_single:  # as nearly always
        summary.value.add(tag=_text(tags.item()), simple_value=float(values.item()))
    else:
        for tag, value in zip(tags.reshape(-1), values.reshape(-1), strict=True):
            summary.value.add(tag=_text(tag), simple_value=float(value))
    return summary.SerializeToString()  # type: ignore[no-any-return]


@functools.cache
def bucket_limits() -> Array:
    """The upper limits of TF's histogram buckets: 10 % apart from 1e-12 to 1e20, both signs."""
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(sys.float_info.max)
    return np.array([-v for v in reversed(positive)] + [0.0] + positive)


class Histogram:
    """A histogram that values are added to: finite numbers, in TF's buckets."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(bucket_limits()), np.int64)
        self._least, self._most = sys.float_info.max, -sys.float_info.max
        self._sum = self._squares = 0.0

    def add(self, values: Array) -> None:
        """Counts values of any shape."""
        flat = np.asarray(values).astype(np.float64).reshape(-1)
        if not flat.size:
            return
        limits = bucket_limits()
        self._least = min(self._least, float(flat.min()))
        self._most = max(self._most, float(flat.max()))
        # In the order and precision of one running sum, so that the digits are TF's.
        with np.errstate(over="ignore"):
            self._sum = float(np.add.accumulate(np.append(self._sum, flat))[-1])
            self._squares = float(np.add.accumulate(np.append(self._squares, flat * flat))[-1])
        which = np.minimum(np.searchsorted(limits, flat, side="right"), len(limits) - 1)
        self._counts += np.bincount(which, minlength=len(limits))

    def proto(self) -> Any:
        """The HistogramProto; runs of empty buckets become one."""
        proto, limits, counts = protos.HistogramProto(), bucket_limits(), self._counts
        proto.min, proto.max = self._least, self._most
        proto.num, proto.sum = float(counts.sum()), self._sum
        proto.sum_squares = self._squares
        last = -1
        for i in np.flatnonzero(counts):
            if i - 1 > last:
                proto.bucket_limit.append(float(limits[i - 1]))
                proto.bucket.append(0.0)
            proto.bucket_limit.append(float(limits[i]))
            proto.bucket.append(float(counts[i]))
            last = int(i)
        if last < len(limits) - 1:
            proto.bucket_limit.append(float(limits[-1]))
            proto.bucket.append(0.0)
        return proto


def histogram(values: Array) -> Any:
    """The HistogramProto of finite values."""
    made = Histogram()
    made.add(values)
    return made.proto()


def histogram_summary(tag: Array, values: Array, node: str) -> bytes:
    """A Summary with the histogram of `values`.

    Raises:
        InvalidArgumentError: the tag is no scalar, or a value is NaN or infinite.
    """
    if np.asarray(tag).size != 1:
        raise _fail("tags must be scalar")
    flat = np.asarray(values)
    if flat.dtype.kind not in "iub":
        wide = flat.astype(np.float64)
        finite = np.isfinite(wide)
        if not finite.all():
            # The first bad value decides, as in a loop over them.
            first = wide.reshape(-1)[np.argmin(finite.reshape(-1))]
            kind = "Nan" if np.isnan(first) else "Infinity"
            raise _fail(f"{kind} in summary histogram for: {node}")
    summary = protos.Summary()
    summary.value.add(tag=_one_tag(tag)).histo.CopyFrom(histogram(flat))
    return summary.SerializeToString()  # type: ignore[no-any-return]


# ---------------------------------------------------------------- media
def image_summary(tag: Array, tensor: Array, max_images: int, bad_color: Sequence[int]) -> bytes:
    """A Summary with PNG images of a batch [batch, height, width, 1, 3 or 4].

    Bytes are shown as they are. Floats are scaled per image: to 0..255 when none is negative,
    else around 128; pixels that are not finite get `bad_color`.

    Raises:
        InvalidArgumentError: the tag is no scalar or the shape is not that of images.
    """
    tensor = np.asarray(tensor)
    if np.asarray(tag).size != 1:
        raise _fail("tags must be scalar")
    if tensor.ndim != 4 or tensor.shape[3] not in (1, 3, 4):
        raise _fail(f"Tensor must be 4-D with last dim 1, 3, or 4, not {_shape(tensor)}")
    batch, height, width, depth = tensor.shape
    if height * width >= 1 << 31 or batch >= 1 << 31:
        raise _fail(f"image too large for int: {_shape(tensor)}")
    if height * width == 0 and batch:
        raise _fail(f"an image of shape {_shape(tensor)} has no pixels")
    if len(bad_color) < depth:
        raise _fail(f"expected depth <= {len(bad_color)}, got {depth}")
    summary = protos.Summary()
    for i in range(min(batch, max_images)):
        pixels = tensor[i]
        if pixels.dtype != np.uint8:
            pixels = _normalized(pixels, np.asarray(bad_color[:depth], np.uint8))
        value = summary.value.add(tag=_numbered(_one_tag(tag), "image", i, max_images))
        value.image.height, value.image.width = height, width
        value.image.colorspace = depth
        value.image.encoded_image_string = _png(pixels)
    return summary.SerializeToString()  # type: ignore[no-any-return]


def _numbered(tag: str, kind: str, index: int, maximum: int) -> str:
    return f"{tag}/{kind}/{index}" if maximum > 1 else f"{tag}/{kind}"


def _normalized(pixels: Array, bad: Array) -> Array:
    values = pixels.astype(np.float64 if pixels.dtype == np.float64 else np.float32)
    finite = np.isfinite(values).all(axis=2)
    good = values[finite]
    scale, offset = 0.0, 0.0
    if good.size:
        low, high = float(good.min()), float(good.max())
        offset = 128.0 if low < 0 else 0.0
        largest = max(abs(low), abs(high)) if low < 0 else high
        if largest >= 1e-6:
            scale = (127.0 if low < 0 else 255.0) / largest
    out = np.empty(pixels.shape, np.uint8)
    kind = values.dtype.type
    out[finite] = (good * kind(scale) + kind(offset)).astype(np.uint8)
    out[~finite] = bad
    return out


def _png(pixels: Array) -> bytes:
    from PIL import Image

    # Pillow tells grey, RGB and RGBA apart by the shape.
    flat = np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    out = io.BytesIO()
    Image.fromarray(flat).save(out, format="PNG")
    return out.getvalue()


def audio_summary(tag: Array, tensor: Array, sample_rate: Any, max_outputs: int) -> bytes:
    """A Summary with 16-bit WAV clips of [batch, frames] or [batch, frames, channels] in -1..1.

    Raises:
        InvalidArgumentError: the tag is no scalar, the rank is neither, or the rate not positive.
    """
    tensor = np.asarray(tensor)
    if np.asarray(tag).size != 1:
        raise _fail("tag must be scalar")
    if tensor.ndim not in (2, 3):
        raise _fail(f"Tensor must be 3-D or 2-D, got: {_shape(tensor)}")
    rate = float(np.asarray(sample_rate).reshape(-1)[0])
    if not rate > 0:
        raise _fail("sample_rate must be > 0")
    summary = protos.Summary()
    for i in range(min(tensor.shape[0], max_outputs)):
        clip = tensor[i] if tensor.ndim == 3 else tensor[i][:, None]
        frames, channels = clip.shape
        if frames == 0 or channels == 0:
            raise _fail(f"an audio clip of shape {_shape(clip)} has no samples")
        contents = encode_wav(clip, max(1, round(rate)))
        value = summary.value.add(tag=_numbered(_one_tag(tag), "audio", i, max_outputs))
        audio = value.audio
        audio.sample_rate, audio.num_channels, audio.length_frames = rate, channels, frames
        audio.encoded_audio_string = contents
        audio.content_type = "audio/wav"
    return summary.SerializeToString()  # type: ignore[no-any-return]


def _wav(samples: Array, rate: int) -> bytes:
    """A WAV file of [frames, channels] 16-bit samples; a rate below 1 Hz is written as 0."""
    data = samples.tobytes()
    channels, width = samples.shape[1], samples.itemsize
    form = struct.pack(
        "<HHIIHH", 1, channels, rate, rate * channels * width, channels * width, 8 * width
    )
    parts = b"WAVE" + _chunk(b"fmt ", form) + _chunk(b"data", data)
    return _chunk(b"RIFF", parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content


# ---------------------------------------------------------------- tensors, merging
def tensor_summary(tag: Any, tensor: Array, metadata: bytes, node: str = "") -> bytes:
    """A Summary with a tensor and its plugin's metadata.

    Raises:
        InvalidArgumentError: the tag is no scalar, or the metadata is no SummaryMetadata.
    """
    summary = protos.Summary()
    value = summary.value.add()
    if node:
        value.node_name = node
    else:
        if np.asarray(tag).size != 1:
            raise _fail("tag must be scalar")
        value.tag = _one_tag(np.asarray(tag, object))
    value.tensor.CopyFrom(encode_array(np.asarray(tensor)))
    if metadata:
        try:
            value.metadata.ParseFromString(metadata)
        except Exception as e:  # protobuf's DecodeError lies in another module in each version
            raise _fail(f"serialized_summary_metadata is no SummaryMetadata: {e}") from None
    return summary.SerializeToString()  # type: ignore[no-any-return]


def merge_summaries(inputs: Iterable[Array]) -> bytes:
    """One Summary with the values of all.

    Raises:
        InvalidArgumentError: an input is no Summary, or two values have the same tag.
    """
    merged = protos.Summary()
    for array in inputs:
        for data in np.asarray(array, object).reshape(-1):
            try:
                merged.MergeFromString(data)
            except Exception:  # protobuf's DecodeError lies in another module in each version
                raise _fail("Could not parse one of the summary inputs") from None
    tags: set[str] = set()
    for value in merged.value:
        if value.tag and value.tag in tags:
            raise _fail(f"Duplicate tag {value.tag} found in summary inputs")
        tags.add(value.tag)
    return merged.SerializeToString()  # type: ignore[no-any-return]
