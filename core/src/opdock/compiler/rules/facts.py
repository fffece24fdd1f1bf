"""Facts: entries of a shape that are known although the whole shape is not."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rules, Site, constant

_UNKNOWN: Final = -1


def _entry(node: Node, site: Site) -> Value | None:
    """`tf.shape(x)[1]` and `tf.shape(x)[1:]`, where those dimensions are known."""
    source = site.source(node.inputs[0], "Shape")
    bounds = [constant(v) for v in node.inputs[1:]]
    if source is None or source.inputs[0].shape is None:
        return None
    if any(b is None or b.size != 1 for b in bounds):
        return None
    if node.attrs["ellipsis_mask"] or node.attrs["new_axis_mask"]:
        return None
    begin, end, step = (int(b.reshape(())) for b in bounds if b is not None)
    known = np.array([_UNKNOWN if d is None else d for d in source.inputs[0].shape], np.int64)
    if node.attrs["shrink_axis_mask"]:
        picked = known[begin] if -len(known) <= begin < len(known) else _UNKNOWN
    else:
        first = None if node.attrs["begin_mask"] else begin
        picked = known[first : None if node.attrs["end_mask"] else end : step]
    # What has no room for a size is an error, in the step.
    if np.any((picked == _UNKNOWN) | (picked > np.iinfo(node.out_dtypes[0].np).max)):
        return None
    return site.const(picked, node.out_dtypes[0], "")


RULES: Final[Rules] = {"StridedSlice": (_entry,)}
