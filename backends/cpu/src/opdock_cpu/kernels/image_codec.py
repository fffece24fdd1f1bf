"""CPU kernels of encoded images, by core's `host_ops`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, host_ops

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()

_FORMATS: Final = {
    "DecodeJpeg": "JPEG",
    "DecodeAndCropJpeg": "JPEG",
    "DecodePng": "PNG",
    "DecodeGif": "GIF",
}
_MAX: Final = (1 << 31) - 1


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _contents(value: Any) -> bytes:
    """The file; InvalidArgumentError when there are several."""
    array = np.asarray(value, object)
    if array.ndim:
        raise checks.invalid(f"contents must be scalar, got shape {checks.dims(array.shape)}")
    item = array[()]
    return item.encode() if isinstance(item, str) else bytes(item)


def _scalar(value: bytes) -> Array:
    out = np.empty((), object)
    out[()] = value
    return out


# ---------------------------------------------------------------- decoding
def _channels(sig: NodeSig) -> int:
    channels: int = sig.attrs.get("channels", 0)
    if channels not in (0, 1, 3, 4):
        raise checks.invalid(f"channels must be 0, 1, 3, or 4, got {channels}")
    return channels


def _options(sig: NodeSig) -> Any:
    """How JPEG images are decoded; InvalidArgumentError where the attributes say no such way."""
    attrs = sig.attrs
    if "ratio" not in attrs:
        return None
    if attrs["ratio"] not in (1, 2, 4, 8):
        raise checks.invalid(f"ratio must be 1, 2, 4, or 8, got {attrs['ratio']}")
    method = _text(attrs["dct_method"])
    if method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise checks.invalid("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
    return host_ops.JpegOptions(
        ratio=attrs["ratio"],
        fancy=attrs["fancy_upscaling"],
        recover=attrs["try_recover_truncated"],
        fast=method != "INTEGER_ACCURATE",
    )


def _window(value: Array) -> tuple[int, int, int, int]:
    if value.ndim != 1:
        raise checks.invalid(f"crop_window must be 1-D, got shape {checks.dims(value.shape)}")
    if value.size != 4:
        raise checks.invalid(f"crop_size must have four elements {checks.dims(value.shape)}")
    y, x, height, width = checks.ints(value)
    return y, x, height, width


@table.binder("DecodeJpeg", "DecodeAndCropJpeg", "DecodePng", "DecodeGif")
def decode_image(sig: NodeSig) -> Callable[..., Array]:
    """The pixels of a JPEG, PNG or GIF image: each op takes all three, as in TensorFlow."""
    wanted = _FORMATS[sig.op]
    bits = 16 if sig.out_dtypes[0].base_dtype is dtypes.uint16 else 8
    # What attributes say wrongly is an error of each run.
    settings = functools.cache(lambda: (_channels(sig), _options(sig)))

    def run(contents: Array, window: Array | None = None) -> Array:
        channels, options = settings()
        part = None if window is None else _window(window)
        pixels: Array = host_ops.decode_image(
            _contents(contents), wanted, channels, bits, options, part
        )
        return pixels

    return run


@table.binder("DecodeBmp")
def decode_bmp(sig: NodeSig) -> Callable[[Array], Array]:
    """The pixels of a BMP image."""
    channels = sig.attrs["channels"]

    def run(contents: Array) -> Array:
        if channels not in (0, 1, 3, 4):
            raise checks.invalid(f"channels must be 0, 1, 3 or 4, got {channels}")
        pixels: Array = host_ops.decode_bmp(_contents(contents), channels)
        return pixels

    return run


@table.binder("ExtractJpegShape")
def extract_jpeg_shape(sig: NodeSig) -> Callable[[Array], Array]:
    """Height, width and channels, without decoding."""
    element = sig.out_dtypes[0].np
    return lambda contents: np.array(host_ops.jpeg_shape(_contents(contents)), element)


# ---------------------------------------------------------------- encoding
def _check_image(image: Array) -> None:
    if image.ndim != 3:
        raise checks.invalid(f"image must be 3-dimensional{checks.dims(image.shape)}")
    if image.size >= _MAX:
        raise checks.invalid("Cannot encode images with >= max int32 elements")


def _check_colors(image: Array) -> None:
    if image.shape[2] not in (1, 3):
        raise checks.invalid(f"image must have 1 or 3 channels, got {checks.dims(image.shape)}")


def _check_quality(quality: int) -> None:
    if not 0 <= quality <= 100:
        raise checks.invalid(f"quality must be in [0,100], got {quality}")


@table.binder("EncodeJpeg")
def encode_jpeg(sig: NodeSig) -> Callable[[Array], Array]:
    """An image as a JPEG file."""
    attrs = sig.attrs
    form, quality = _text(attrs["format"]), attrs["quality"]
    metadata = attrs["xmp_metadata"]

    def run(image: Array) -> Array:
        _check_quality(quality)
        _check_image(image)
        wanted = {"grayscale": 1, "rgb": 3}.get(form)
        if wanted is None:
            _check_colors(image)
        elif image.shape[2] != wanted:
            raise checks.invalid(
                f"format {form} expects {wanted} channels, got {checks.dims(image.shape)}"
            )
        encoded: bytes = host_ops.encode_jpeg(
            image, quality, attrs["progressive"], attrs["optimize_size"],
            attrs["chroma_downsampling"], 2 if _text(attrs["density_unit"]) == "cm" else 1,
            (attrs["x_density"], attrs["y_density"]),
            metadata if isinstance(metadata, bytes) else metadata.encode(),
        )  # fmt: skip
        return _scalar(encoded)

    return run


@table.binder("EncodeJpegVariableQuality")
def encode_jpeg_variable_quality(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """An image as a JPEG file, of a quality that is known when it runs."""

    def run(image: Array, quality: Array) -> Array:
        _check_image(image)
        if np.ndim(quality):
            raise checks.invalid(f"quality must be scalar: {checks.dims(np.shape(quality))}")
        _check_quality(int(quality))
        _check_colors(image)
        return _scalar(host_ops.encode_jpeg(image, int(quality)))

    return run


@table.binder("EncodePng")
def encode_png(sig: NodeSig) -> Callable[[Array], Array]:
    """An image as a PNG file."""
    compression = sig.attrs["compression"]

    def run(image: Array) -> Array:
        if image.ndim != 3:
            raise checks.invalid(f"image must be 3-dimensional{checks.dims(image.shape)}")
        if image.size >= _MAX:
            raise checks.invalid("image cannot have >= int32 max elements")
        if image.shape[1] * image.shape[2] >= _MAX // 2:
            raise checks.invalid("image too wide to encode")
        if not 1 <= image.shape[2] <= 4:
            raise checks.invalid(f"image must have 1, 2, 3, or 4 channels, got {image.shape[2]}")
        return _scalar(host_ops.encode_png(image, compression))

    return run
