"""What gathers pick."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Gather")
def gather(attrs: Attrs, params: Array, indices: Array) -> Array:
    """Rows."""
    out = np.empty((*indices.shape, *params.shape[1:]), params.dtype)
    for place in np.ndindex(*indices.shape):
        out[place] = params[int(indices[place])]
    return out


@reference("GatherV2")
def gather_v2(attrs: Attrs, params: Array, indices: Array, axis: Array) -> Array:
    """Slices along a dimension, for each entry of the batch."""
    batch = attrs["batch_dims"]
    if batch < 0:
        batch += indices.ndim
    at = int(axis) % params.ndim
    inner = indices.shape[batch:]
    out = np.empty((*params.shape[:at], *inner, *params.shape[at + 1 :]), params.dtype)
    for outer in np.ndindex(*params.shape[:at]):
        for place in np.ndindex(*inner):
            out[(*outer, *place)] = params[(*outer, int(indices[(*outer[:batch], *place)]))]
    return out


@reference("GatherNd")
def gather_nd(attrs: Attrs, params: Array, indices: Array) -> Array:
    """Slices at coordinates."""
    out = np.empty((*indices.shape[:-1], *params.shape[indices.shape[-1] :]), params.dtype)
    for place in np.ndindex(*indices.shape[:-1]):
        out[place] = params[tuple(int(i) for i in indices[place])]
    return out
