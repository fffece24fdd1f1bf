"""Image files of any format: which it is, and decoding it."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import Assert
from opdock.ops.compare import equal
from opdock.ops.composed.image_adjust import convert_image_dtype
from opdock.ops.control import cond
from opdock.ops.gather import gather
from opdock.ops.image_codec import decode_bmp, decode_gif, decode_jpeg, decode_png
from opdock.ops.support.nn_util import emit

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []


def _begins(contents: Any, mark: bytes, name: str | None) -> Tensor:
    """Whether a file begins with some bytes."""
    start = emit("Substr", contents, 0, len(mark))
    return equal(start, mark, name=name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a file begins as JPEG images do.

    Args:
        contents: a string tensor of rank 0.
        name: a name for the operation.

    Returns:
        A bool tensor of rank 0.
    """
    with name_scope(name, "is_jpeg"):
        return _begins(contents, b"\xff\xd8\xff", name)


def _allowed(channels: int, excluded: tuple[int, ...], form: str, allowed: str) -> Any:
    """A check, when it runs, that a format can have so many channels."""
    message = f"Channels must be in ({allowed}) when decoding {form} images"
    return Assert(convert_to_tensor(channels not in excluded), [message])


@extensible
def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = dtypes.uint8, name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """Decodes a JPEG, PNG, GIF or BMP image, whichever it is.

    Args:
        contents: a string tensor of rank 0: the file.
        channels: 0 or None for those that the image has, 1, 3 or 4.
        dtype: the type of the result, to whose range that of pixels is scaled.
        name: a name for the operation.
        expand_animations: whether a GIF image gives all its frames; else only the first.

    Returns:
        A tensor [height, width, channels], with frames in front for a GIF image if they are
        expanded. Its static shape is not known.

    Raises:
        ValueError: there cannot be so many channels.
        InvalidArgumentError: when run, the file is none of these or broken, or its format cannot
            have so many channels.
    """
    with name_scope(name, "decode_image"):
        if channels not in (None, 0, 1, 3, 4):
            raise ValueError("channels must be in (None, 0, 1, 3, 4)")
        count = channels or 0
        deep = dtypes.uint8 if dtypes.as_dtype(dtype) == dtypes.uint8 else dtypes.uint16

        def bmp() -> Tensor:
            unknown = "Unable to decode bytes as JPEG, PNG, GIF, or BMP"
            checks = [
                Assert(_begins(contents, b"BM", "is_bmp"), [unknown]),
                _allowed(count, (1,), "BMP", "None, 0, 3"),
            ]
            with control_dependencies(checks):
                return convert_image_dtype(decode_bmp(contents), dtype)

        def gif() -> Tensor:
            with control_dependencies([_allowed(count, (1, 4), "GIF", "None, 0, 3")]):
                frames = convert_image_dtype(decode_gif(contents), dtype)
                return frames if expand_animations else gather(frames, 0)

        def png() -> Tensor:
            return convert_image_dtype(decode_png(contents, count, dtype=deep), dtype)

        def jpeg() -> Tensor:
            with control_dependencies([_allowed(count, (4,), "JPEG", "None, 0, 1, 3")]):
                return convert_image_dtype(decode_jpeg(contents, count), dtype)

        def gif_or_bmp() -> Any:
            return cond(_begins(contents, b"GIF", "is_gif"), gif, bmp, name="cond_gif")

        def png_or_other() -> Any:
            is_png = _begins(contents, b"\x89PN", "is_png")
            return cond(is_png, png, gif_or_bmp, name="cond_png")

        return cond(is_jpeg(contents), jpeg, png_or_other, name="cond_jpeg")  # type: ignore[no-any-return]
