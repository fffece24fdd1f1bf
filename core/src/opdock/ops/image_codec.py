"""Encoded images: JPEG, PNG, GIF and BMP, both ways where TF goes both ways."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_JPEG = (
    "channels: int = 0, ratio: int = 1, fancy_upscaling: bool = true, "
    "try_recover_truncated: bool = false, acceptable_fraction: float = 1.0, "
    "dct_method: string = ''"
)

decode_jpeg_op = define_op("DecodeJpeg", "contents: string -> image: uint8", _JPEG)
decode_and_crop_jpeg_op = define_op(
    "DecodeAndCropJpeg", "contents: string, crop_window: int32 -> image: uint8", _JPEG
)
decode_png_op = define_op(
    "DecodePng", "contents: string -> image: dtype",
    "channels: int = 0, dtype: {uint8, uint16} = DT_UINT8",
)  # fmt: skip
decode_gif_op = define_op("DecodeGif", "contents: string -> image: uint8")
decode_bmp_op = define_op("DecodeBmp", "contents: string -> image: uint8", "channels: int = 0")
extract_jpeg_shape_op = define_op(
    "ExtractJpegShape", "contents: string -> image_shape: output_type",
    "output_type: {int32, int64} = DT_INT32",
)  # fmt: skip
encode_jpeg_op = define_op(
    "EncodeJpeg", "image: uint8 -> contents: string",
    "format: {'', 'grayscale', 'rgb'} = '', quality: int = 95, progressive: bool = false, "
    "optimize_size: bool = false, chroma_downsampling: bool = true, "
    "density_unit: {'in', 'cm'} = 'in', x_density: int = 300, y_density: int = 300, "
    "xmp_metadata: string = ''",
)  # fmt: skip
encode_jpeg_variable_quality_op = define_op(
    "EncodeJpegVariableQuality", "images: uint8, quality: int32 -> contents: string"
)
encode_png_op = define_op(
    "EncodePng", "image: T -> contents: string",
    "compression: int = -1, T: {uint8, uint16} = DT_UINT8",
)  # fmt: skip
for _op in (
    decode_jpeg_op,
    decode_and_crop_jpeg_op,
    decode_png_op,
    decode_gif_op,
    decode_bmp_op,
    extract_jpeg_shape_op,
    encode_jpeg_op,
    encode_jpeg_variable_quality_op,
    encode_png_op,
):
    _op.not_differentiable()


# ---------------------------------------------------------------- shapes
def _channels(sig: ShapeSig) -> int | None:
    shapes.with_rank(sig.shapes[0], 0)
    channels: int = sig.attrs["channels"]
    if channels < 0:
        raise ValueError(f"channels must be non-negative, got {channels}")
    return channels or None


@decode_jpeg_op.shape
@decode_png_op.shape
@decode_bmp_op.shape
def _decoded_shape(sig: ShapeSig) -> Shape:
    return (None, None, _channels(sig))


@decode_and_crop_jpeg_op.shape
def _cropped_shape(sig: ShapeSig) -> Shape:
    channels = _channels(sig)
    array_util.with_dim(array_util.vector_length(sig.shapes[1]), 4)
    height, width = (sig.const_shape(1) or (None,) * 4)[2:]
    return (height, width, channels)


@decode_gif_op.shape
def _frames_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return (None, None, None, 3)


@extract_jpeg_shape_op.shape
def _jpeg_shape_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return (3,)


@encode_jpeg_op.shape
@encode_jpeg_variable_quality_op.shape
@encode_png_op.shape
def _encoded_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 3)
    return ()


# ---------------------------------------------------------------- public functions
_WORDS = {
    "contents": "a string tensor of rank 0: the encoded image.",
    "channels": "how many channels to decode to; 0 or None for those that the image has.",
    "ratio": "1, 2, 4 or 8: by how much to make the image smaller.",
    "fancy_upscaling": "whether to interpolate colours, which have fewer pixels than brightness.",
    "try_recover_truncated": "whether to decode what there is of a file that is cut off.",
    "acceptable_fraction": "how much of its lines such a file must have.",
    "dct_method": '"INTEGER_FAST", "INTEGER_ACCURATE" or "": as TensorFlow chose, fast.',
    "name": "a name for the operation.",
    "image": "a tensor of shape [height, width, channels].",
    "raises": "InvalidArgumentError: when run, for what is no such image.",
}
"""What the functions here take."""


def _attrs(**given: Any) -> dict[str, Any]:
    """The attributes that have a value: None stands for the default."""
    return {name: value for name, value in given.items() if value is not None}


@extensible
@explained(_WORDS, returns="A uint8 tensor [height, width, channels].")
def decode_jpeg(
    contents: Any, channels: int | None = 0, ratio: int | None = 1,
    fancy_upscaling: bool | None = True, try_recover_truncated: bool | None = False,
    acceptable_fraction: float | None = 1, dct_method: str | None = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Decodes a JPEG image, and PNG and GIF ones too, as TensorFlow does."""
    attrs = _attrs(
        channels=channels, ratio=ratio, fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated, acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )  # fmt: skip
    return decode_jpeg_op(contents, **attrs, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    crop_window="int32 [4]: y, x, height and width of the part to decode.",
    returns="A uint8 tensor [height, width, channels].",
)
def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: int | None = 0, ratio: int | None = 1,
    fancy_upscaling: bool | None = True, try_recover_truncated: bool | None = False,
    acceptable_fraction: float | None = 1, dct_method: str | None = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Decodes a part of a JPEG image."""
    attrs = _attrs(
        channels=channels, ratio=ratio, fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated, acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )  # fmt: skip
    return decode_and_crop_jpeg_op(contents, crop_window, **attrs, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    dtype="tf.uint8 or tf.uint16.",
    returns="A tensor [height, width, channels] of type `dtype`.",
)
def decode_png(
    contents: Any, channels: int | None = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """Decodes a PNG image, and JPEG and GIF ones too, as TensorFlow does."""
    return decode_png_op(contents, **_attrs(channels=channels, dtype=dtype), name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, returns="A uint8 tensor [frames, height, width, 3].")
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decodes all frames of a GIF image; of a JPEG or PNG one the only one there is."""
    return decode_gif_op(contents, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, returns="A uint8 tensor [height, width, channels].")
def decode_bmp(contents: Any, channels: int | None = 0, name: str | None = None) -> Tensor:
    """Decodes a BMP image of 8, 24 or 32 bits a pixel."""
    return decode_bmp_op(contents, **_attrs(channels=channels), name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    output_type="tf.int32 or tf.int64.",
    returns="A tensor [3]: height, width, channels.",
)
def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The shape of a JPEG image, from its header alone."""
    return extract_jpeg_shape_op(contents, **_attrs(output_type=output_type), name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    format='"grayscale" or "rgb"; "" for what the channels say.',
    quality="0 to 100.",
    progressive="whether the file shows the whole image early.",
    optimize_size="whether to spend time on a smaller file without loss.",
    chroma_downsampling="whether colours get fewer pixels than brightness.",
    density_unit='what densities are counted by: "in" or "cm".',
    x_density="pixels by unit, across.",
    y_density="pixels by unit, down.",
    xmp_metadata="metadata to write along.",
    returns="A string tensor of rank 0.",
    raises="InvalidArgumentError: when run, for an image of another rank or number of channels.",
)
def encode_jpeg(
    image: Any, format: str | None = "", quality: int | None = 95,
    progressive: bool | None = False, optimize_size: bool | None = False,
    chroma_downsampling: bool | None = True, density_unit: str | None = "in",
    x_density: int | None = 300, y_density: int | None = 300,
    xmp_metadata: str | bytes | None = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Encodes a uint8 image as JPEG."""
    attrs = _attrs(
        format=format, quality=quality, progressive=progressive, optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling, density_unit=density_unit, x_density=x_density,
        y_density=y_density, xmp_metadata=xmp_metadata,
    )  # fmt: skip
    return encode_jpeg_op(image, **attrs, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    compression="0 (none) to 9 (slow); -1 for zlib's own choice.",
    returns="A string tensor of rank 0.",
    raises="InvalidArgumentError: when run, for an image of another rank or number of channels.",
)
def encode_png(image: Any, compression: int | None = -1, name: str | None = None) -> Tensor:
    """Encodes a uint8 or uint16 image of 1 to 4 channels as PNG."""
    return encode_png_op(image, **_attrs(compression=compression), name=name)  # type: ignore[no-any-return]
