"""Pools: windows that are known are attributes; what follows a gradient moves before it.

Most backends' pools take their windows when they are bound. What comes after the gradient of a
maximum pool has less to do before it.

A pooled maximum is the value of the element that won, so relu's gradient asks the same of both.
Each window hands its gradient to one element, so sums over all windows are sums over all elements.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rules, Site, constant

_FORWARD: Final = {"MaxPoolGrad": "MaxPool", "MaxPool3DGrad": "MaxPool3D"}
_GEOMETRY: Final = ("ksize", "strides", "padding", "data_format")
_MASKS: Final = ("ReluGrad", "Relu6Grad")


def _pool_gradient(value: Value, site: Site) -> Node | None:
    """The gradient of a maximum pool behind a value, if its maxima are those of its own input."""
    node = site.source(value, *_FORWARD)
    if node is None:
        return None
    pooled = site.source(node.inputs[1], _FORWARD[node.op])
    if pooled is None or pooled.inputs[0] != node.inputs[0]:
        return None
    same = all(pooled.attrs[name] == node.attrs[name] for name in _GEOMETRY)
    return node if same else None


def _mask_first(node: Node, site: Site) -> Value | None:
    pool = _pool_gradient(node.inputs[0], site)
    if pool is None or pool.inputs[0] != node.inputs[1]:
        return None
    x, maxima, gradient = pool.inputs
    masked = site.make(node.op, [gradient, maxima], dict(node.attrs), suffix="/of_maxima")
    return site.make(pool.op, [x, maxima, masked], dict(pool.attrs), shape=node.out_shapes[0])


def _sum_first(node: Node, site: Site) -> Value | None:
    """A sum over whole images of what a pool's gradient made of masked gradients."""
    pool = _pool_gradient(node.inputs[0], site)
    # Unmasked, a window of NaNs may have no winner: its gradient must not reach the sum.
    if pool is None or not _is_mask(pool, site):
        return None
    data_format = pool.attrs["data_format"]
    channel = data_format.index("C")
    if pool.attrs["ksize"][channel] != 1:
        return None
    if node.op == "Sum" and not _sums_space(node, len(data_format), channel):
        return None
    if node.op == "BiasAddGrad" and not _same_channels(node.attrs["data_format"], data_format):
        return None
    inputs = [pool.inputs[2], *node.inputs[1:]]
    return site.make(node.op, inputs, dict(node.attrs), shape=node.out_shapes[0])


def _is_mask(pool: Node, site: Site) -> bool:
    mask = site.source(pool.inputs[2], *_MASKS)
    return mask is not None and mask.inputs[1] == pool.inputs[1]


def _sums_space(node: Node, rank: int, channel: int) -> bool:
    axes: Any = constant(node.inputs[1])
    if axes is None:
        return False
    summed = {int(a) % rank for a in np.reshape(axes, -1)}
    return summed >= set(range(1, rank)) - {channel}


def _same_channels(ours: str, theirs: str) -> bool:
    return (ours[1] == "C") == (theirs[1] == "C")


def _known_windows(node: Node, site: Site) -> Value | None:
    """The op that has its windows as attributes, where the inputs that say them are constants."""
    *data, size, steps = node.inputs
    attrs, rank = dict(node.attrs), len(node.attrs["data_format"])
    for name, value in (("ksize", size), ("strides", steps)):
        known = constant(value)
        if known is None or known.shape != (rank,) or np.any(known < 1):
            return None  # the kernel says what is wrong with them
        attrs[name] = [int(n) for n in known]
    return site.make(node.op.removesuffix("V2"), data, attrs, shape=node.out_shapes[0])


RULES: Final[Rules] = {
    **dict.fromkeys(("MaxPoolV2", "MaxPoolGradV2", "MaxPoolGradGradV2"), (_known_windows,)),
    **dict.fromkeys(_MASKS, (_mask_first,)),
    "BiasAddGrad": (_sum_first,),
    "Sum": (_sum_first,),
}
