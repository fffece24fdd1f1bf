"""Oracle of the ops on variables: old values in, new values out, then what the op returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]
Combine = Callable[[Any, Any], Any]


@reference("Assign", "AssignVariableOp")
def assign(attrs: Attrs, ref: Array, value: Array) -> Array:
    """The new value."""
    return value


@reference("AssignAdd", "AssignAddVariableOp")
def assign_add(attrs: Attrs, ref: Array, value: Array) -> Array:
    """The sum."""
    return ref + value


@reference("AssignSub", "AssignSubVariableOp")
def assign_sub(attrs: Attrs, ref: Array, value: Array) -> Array:
    """The difference."""
    return ref - value


@reference("CountUpTo", "ResourceCountUpTo")
def count_up_to(attrs: Attrs, ref: Array) -> tuple[Array, Array]:
    """One more in the variable; the value before it as the result."""
    return ref + 1, ref


@reference("ReadVariableOp")
def read_variable(attrs: Attrs, resource: Array) -> tuple[Array, Array]:
    """The value."""
    return resource, resource


@reference("IsVariableInitialized", "VarIsInitializedOp")
def is_initialized(attrs: Attrs, ref: Array) -> tuple[Array, Array]:
    """True: a sample's variables have values."""
    return ref, np.array(True)


@reference("DisableCopyOnRead")
def disable_copy_on_read(attrs: Attrs, resource: Array) -> Array:
    """Nothing happens to the value."""
    return resource


@reference("VariableShape")
def variable_shape(attrs: Attrs, resource: Array) -> tuple[Array, Array]:
    """The dimensions."""
    return resource, np.array(resource.shape, np.int64)


@reference("ResourceGather")
def resource_gather(attrs: Attrs, resource: Array, indices: Array) -> tuple[Array, Array]:
    """Slices of the value, after `batch_dims` leading dimensions that go together."""
    lead = attrs["batch_dims"]
    if lead == 0:
        return resource, resource[indices]
    out = np.zeros(indices.shape + resource.shape[lead + 1 :], resource.dtype)
    for where in np.ndindex(*indices.shape):
        out[where] = resource[where[:lead] + (indices[where],)]
    return resource, out


@reference("ResourceGatherNd")
def resource_gather_nd(attrs: Attrs, resource: Array, indices: Array) -> tuple[Array, Array]:
    """Slices of the value at coordinates."""
    depth = indices.shape[-1]
    out = np.zeros(indices.shape[:-1] + resource.shape[depth:], resource.dtype)
    for where in np.ndindex(*indices.shape[:-1]):
        out[where] = resource[tuple(indices[where])]
    return resource, out


# ---------------------------------------------------------------- parts of values
def quotient(x: Any, y: Any) -> Any:
    """The quotient; of integers truncated towards zero."""
    if np.asarray(x).dtype.kind in "iu":
        return np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
    return x / y


COMBINE: dict[str, Combine] = {
    "Update": lambda old, new: new,
    "Add": lambda old, new: old + new,
    "Sub": lambda old, new: old - new,
    "Mul": lambda old, new: old * new,
    "Div": quotient,
    "Min": np.minimum,
    "Max": np.maximum,
}


def scatter(combine: Combine) -> Callable[..., Array]:
    """Each index names a slice of the variable, which its update changes; one after the other."""

    def run(attrs: Attrs, ref: Array, indices: Array, updates: Array) -> Array:
        out = ref.copy()
        values = np.broadcast_to(updates, indices.shape + ref.shape[1:])
        for where in np.ndindex(*indices.shape):
            row = indices[where]
            out[row] = combine(out[row], values[where])
        return out

    return run


def scatter_nd(combine: Combine) -> Callable[..., Array]:
    """The same where the last dimension of the indices is a position in several dimensions."""

    def run(attrs: Attrs, ref: Array, indices: Array, updates: Array) -> Array:
        out = ref.copy()
        for where in np.ndindex(*indices.shape[:-1]):
            place = tuple(int(i) for i in indices[where])
            out[place] = combine(out[place], updates[where])
        return out

    return run


for _name, _combine in COMBINE.items():
    reference(f"Scatter{_name}", f"ResourceScatter{_name}")(scatter(_combine))
for _name in ("Update", "Add", "Sub"):
    _fn = scatter_nd(COMBINE[_name])
    reference(f"ScatterNd{_name}", f"ResourceScatterNd{_name}")(_fn)
