"""Scattering at coordinates of a new tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, REALS, KernelTable, NodeSig, as_dtype, checks
from opdock_cpu import picking
from opdock_cpu.folds import fold_onto

__all__ = ["combine", "flat_positions", "table"]

Array = npt.NDArray[Any]

table = KernelTable()
_BOOL = frozenset({as_dtype("bool")})
_TEXT = frozenset({as_dtype("string")})
_UFUNCS: dict[str, np.ufunc] = {
    "TensorScatterAdd": np.add,
    "ScatterNdNonAliasingAdd": np.add,
    "TensorScatterSub": np.subtract,
    "TensorScatterMin": np.minimum,
    "TensorScatterMax": np.maximum,
}


def flat_positions(indices: Array, shape: tuple[int, ...]) -> Array:
    """Coordinates as flat positions in the leading dimensions of `shape`.

    Raises:
        InvalidArgumentError: a coordinate is out of range.
    """
    depth = indices.shape[-1]
    rows = indices.reshape(math.prod(indices.shape[:-1]), depth)
    found = picking.places(rows, shape[:depth]) if rows.size >= picking.MANY else None
    if found is not None:
        return found
    limits = np.array(shape[:depth], np.int64)
    outside = ((rows < 0) | (rows >= limits)).any(axis=1)
    if outside.any():
        raise checks.outside(indices, shape)
    flat = np.zeros(rows.shape[0], np.int64)
    for i in range(depth):
        flat *= shape[i]
        flat += rows[:, i]
    return flat


def _prepare(
    indices: Array, updates: Any, shape: tuple[int, ...]
) -> tuple[Array, Array, tuple[int, int]]:
    """(flat positions, updates as rows, the output as a matrix's shape)."""
    checks.check_updates(indices, updates, shape)
    depth = indices.shape[-1]
    flat = flat_positions(indices, shape)
    width = math.prod(shape[depth:])
    rows = np.reshape(updates, (flat.size, width))
    return flat, rows, (math.prod(shape[:depth]), width)


def combine(ufunc: np.ufunc, out: Array, flat: Array, rows: Array) -> None:
    """`out[flat] = ufunc(out[flat], rows)`, repeated positions included; `out` is a matrix."""
    if out.shape[1] == 1:
        ufunc.at(out[:, 0], flat, rows[:, 0])
        return
    fold_onto(ufunc, out, np.ones(len(out), np.bool_), rows, flat)


@table.binder("ScatterNd", T=NUMBERS | _BOOL | _TEXT, out=True, host_inputs=("shape",))
def scatter_nd(sig: NodeSig) -> Callable[..., Array]:
    """Updates added up in a tensor of zeros, strings one after the other in one of empty ones."""
    dtype = sig.out_dtypes[0].np
    zero = b"" if sig.out_dtypes[0].name == "string" else 0
    ufunc = np.logical_or if dtype == np.bool_ else np.add

    def run(indices: Array, updates: Any, shape: Any, out: Array | None) -> Array:
        wanted = checks.scattered_shape(shape)
        flat, rows, matrix = _prepare(indices, updates, wanted)
        if out is None:
            out = np.full(wanted, zero, dtype)
        else:
            out.fill(zero)
        if flat.size:
            combine(ufunc, out.reshape(matrix), flat, rows)
        return out

    return run


def _start(tensor: Any, out: Array | None) -> Array:
    if out is None:
        return np.array(tensor, order="C")
    out[...] = tensor
    return out


@table.binder("TensorScatterUpdate", out=True)
def tensor_scatter_update(sig: NodeSig) -> Callable[..., Array]:
    """Values replaced; of repeated coordinates the last wins."""

    def run(tensor: Any, indices: Array, updates: Any, out: Array | None) -> Array:
        flat, rows, matrix = _prepare(indices, updates, tensor.shape)
        out = _start(tensor, out)
        if flat.size:
            out.reshape(matrix)[flat] = rows
        return out

    return run


def _combiner(sig: NodeSig) -> Callable[..., Array]:
    ufunc = _UFUNCS[sig.op]
    if sig.out_dtypes[0].is_bool:
        ufunc = np.logical_or

    def run(tensor: Any, indices: Array, updates: Any, out: Array | None) -> Array:
        flat, rows, matrix = _prepare(indices, updates, tensor.shape)
        out = _start(tensor, out)
        if flat.size:
            combine(ufunc, out.reshape(matrix), flat, rows)
        return out

    return run


@table.binder("TensorScatterAdd", "TensorScatterSub", T=NUMBERS, out=True)
def tensor_scatter_sum(sig: NodeSig) -> Callable[..., Array]:
    """Values added or subtracted; repeated coordinates add up."""
    return _combiner(sig)


@table.binder("ScatterNdNonAliasingAdd", T=NUMBERS | _BOOL, out=True)
def scatter_nd_non_aliasing_add(sig: NodeSig) -> Callable[..., Array]:
    """Values added to the input; repeated coordinates add up."""
    return _combiner(sig)


@table.binder("TensorScatterMin", "TensorScatterMax", T=REALS, out=True)
def tensor_scatter_extremum(sig: NodeSig) -> Callable[..., Array]:
    """The extremum of the old value and all updates."""
    return _combiner(sig)
