"""Updates of rows and slices of variables, of either kind."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.registry import get
from opdock.ops.state import UPDATING, is_resource

__all__ = [
    "scatter_add", "scatter_div", "scatter_max", "scatter_min", "scatter_mul", "scatter_nd_add",
    "scatter_nd_sub", "scatter_nd_update", "scatter_sub", "scatter_update",
]  # fmt: skip

_SCATTERING = {
    **UPDATING,
    "indices": "int32 or int64 row numbers, of any shape; InvalidArgumentError for others than rows"
    " of the variable when it runs.",
    "updates": "a tensor of the variable's type, of shape `indices.shape + ref.shape[1:]`, or a"
    " scalar.",
}
_SCATTERING_ND = {
    **_SCATTERING,
    "indices": "int32 or int64 coordinates in the last dimension, of as many of the variable's"
    " dimensions as that is long.",
    "updates": "a tensor of the variable's type, of shape"
    " `indices.shape[:-1] + ref.shape[indices.shape[-1]:]`.",
}


def _scatter(op: str, ref: Any, indices: Any, updates: Any, locking: bool, name: str | None) -> Any:
    if is_resource(ref):
        done = get(f"Resource{op}")(
            ref.handle, convert_to_tensor(indices, name="indices"),
            convert_to_tensor(updates, ref.dtype.base_dtype), name=name,
        )  # fmt: skip
        return ref._lazy_read(done)
    return get(op)(ref, indices, updates, use_locking=locking, name=name)


@explained(_SCATTERING)
def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets rows `indices` of a variable to `updates`; the result is the variable afterwards."""
    return _scatter("ScatterUpdate", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds `updates` to rows `indices` of a variable; repeated indices add up."""
    return _scatter("ScatterAdd", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts `updates` from rows `indices` of a variable."""
    return _scatter("ScatterSub", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiplies rows `indices` of a variable by `updates`."""
    return _scatter("ScatterMul", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divides rows `indices` of a variable by `updates`."""
    return _scatter("ScatterDiv", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Takes the minimum of rows `indices` of a variable and `updates`."""
    return _scatter("ScatterMin", ref, indices, updates, use_locking, name)


@explained(_SCATTERING)
def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Takes the maximum of rows `indices` of a variable and `updates`."""
    return _scatter("ScatterMax", ref, indices, updates, use_locking, name)


@explained(_SCATTERING_ND)
def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets the slices at the index vectors `indices` of a variable to `updates`."""
    return _scatter("ScatterNdUpdate", ref, indices, updates, use_locking, name)


@explained(_SCATTERING_ND)
def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds `updates` to the slices at the index vectors `indices` of a variable."""
    return _scatter("ScatterNdAdd", ref, indices, updates, use_locking, name)


@explained(_SCATTERING_ND)
def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts `updates` from the slices at the index vectors `indices` of a variable."""
    return _scatter("ScatterNdSub", ref, indices, updates, use_locking, name)
