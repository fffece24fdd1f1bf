"""Padding: a convolution pads its input itself, so the padded copy need not exist.

The terms that the padding adds are zeros either way; in which order they add up is the kernel's.
"""

from __future__ import annotations

from typing import Any, Final

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rules, Site, constant, uniform


def _into_convolution(node: Node, site: Site) -> Value | None:
    padded = site.source(node.inputs[0], "Pad", "PadV2")
    if padded is None or node.attrs["padding"] == "SAME":
        return None
    if padded.op == "PadV2" and uniform(padded.inputs[2]) != 0:
        return None
    pads = _spatial(padded, node.attrs["data_format"])
    if pads is None:
        return None
    given = node.attrs.get("explicit_paddings") or [0] * 8
    explicit = [a + b for a, b in zip(pads, given, strict=True)]
    attrs: dict[str, Any] = {**node.attrs, "padding": "EXPLICIT", "explicit_paddings": explicit}
    inputs = [padded.inputs[0], *node.inputs[1:]]
    return site.make(node.op, inputs, attrs, shape=node.out_shapes[0])


def _spatial(padded: Node, data_format: str) -> list[int] | None:
    """The paddings before and after each dimension, if only height and width are padded."""
    pads = constant(padded.inputs[1])
    if pads is None or pads.shape != (4, 2) or data_format not in ("NHWC", "NCHW"):
        return None
    space = {data_format.index("H"), data_format.index("W")}
    if any(pads[i].any() for i in range(4) if i not in space) or (pads < 0).any():
        return None
    return [int(p) for p in pads.reshape(-1)]


RULES: Final[Rules] = {
    # The gradient of the filter reads the same padded input as the convolution.
    "Conv2D": (_into_convolution,),
    "Conv2DBackpropFilter": (_into_convolution,),
}
