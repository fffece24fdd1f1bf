"""Convolutions with the resize, or the mirrored margins, of their images before them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor
from opdock.transforms.patterns import ANY, Match, Pattern, replace
from opdock.transforms.registry import Context

__all__ = ["AFTER_PAD", "AFTER_RESIZE", "AFTER_RESIZE_AND_PAD", "fuse_images"]

_RESIZE: Final = Pattern("ResizeBilinear", name="resize")

AFTER_RESIZE: Final = Pattern("Conv2D", _RESIZE, ANY)
AFTER_PAD: Final = Pattern("Conv2D", Pattern("MirrorPad", ANY, ANY, name="pad"), ANY)
AFTER_RESIZE_AND_PAD: Final = Pattern("Conv2D", Pattern("MirrorPad", _RESIZE, ANY, name="pad"), ANY)


def fuse_images(graph_def: Any, context: Context, *patterns: Pattern) -> Any:
    """Makes one node of a convolution and what its images go through before.

    What else uses the images between them still finds them.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        patterns: of the three above, in the order in which they are tried.
    """
    editor = Editor(graph_def, context.ends)
    for pattern in patterns:
        replace(editor, pattern, lambda match: _fuse(editor, match))
    return editor.result()


def _fuse(editor: Editor, match: Match) -> bool:
    conv, pad, resize = match[""], match.get("pad"), match.get("resize")
    # The fused op has neither other attributes nor half-pixel centres.
    if not _is_plain(conv) or (resize is not None and attribute(resize, "half_pixel_centers")):
        return False
    made = type(conv)(name=conv.name, op="FusedPadConv2D", device=conv.device)
    for key in ("T", "strides", "padding"):
        made.attr[key].CopyFrom(conv.attr[key])
    images: list[str] = []
    if pad is None:
        name = editor.unique(f"{conv.name}_dummy_paddings")
        margins = editor.constant(name, np.zeros((4, 2), np.int32))
        made.attr["mode"].s = b"REFLECT"
    else:
        margins = pad.input[1]
        made.attr["mode"].CopyFrom(pad.attr["mode"])
        images = list(pad.input[:1])
    if resize is not None:
        images = list(resize.input[:2])
        made.op = "FusedResizeAndPadConv2D"
        made.attr["resize_align_corners"].b = attribute(resize, "align_corners")
    made.input.extend([*images, margins, conv.input[1]])
    editor.put(made)
    return True


def _is_plain(conv: Any) -> bool:
    """Whether a convolution has no attribute but those of the ops with images before it."""
    rates = set(attribute(conv, "dilations"))
    is_padded = attribute(conv, "padding") == "EXPLICIT"
    return attribute(conv, "data_format") == "NHWC" and rates <= {1} and not is_padded
