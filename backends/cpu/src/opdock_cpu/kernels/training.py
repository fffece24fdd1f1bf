"""Optimizers' updates of some rows of variables, in place: by generated code, or core's rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import FLOATS, Kernel, KernelTable, NodeSig, checks, codegen
from opdock_cpu.changes import change_rows, replace
from opdock_cpu.jit.row_updates import RowUpdates
from opdock_cpu.kernels.gather import are_below
from opdock_cpu.namespace import namespace

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _check(names: Sequence[str], state: Sequence[Array], grad: Any, indices: Array) -> None:
    """Raises InvalidArgumentError unless there is a gradient for each row that is named."""
    shape = state[0].shape
    for name, value in zip(names[1:], state[1:], strict=True):
        if value.shape != shape:
            raise checks.invalid(
                f"var and {name} do not have the same shape {checks.dims(shape)} "
                f"{checks.dims(value.shape)}"
            )
    if not shape:
        raise checks.invalid("var must be at least 1 dimensional")
    if indices.ndim != 1:
        raise checks.invalid("indices must be one-dimensional")
    if grad.shape != (indices.size, *shape[1:]):
        raise checks.invalid(
            f"grad must be a row of var for each index: got grad.shape {checks.dims(grad.shape)}, "
            f"var.shape {checks.dims(shape)}, indices.shape {checks.dims(indices.shape)}"
        )
    if not are_below(indices, shape[0]):
        at = int(np.argmax((indices < 0) | (indices >= shape[0])))
        raise checks.invalid(f"Index {int(indices[at])} at offset {at} in indices is out of range")


def _matrix(
    cells: Sequence[Any], names: Sequence[str], grad: Any, indices: Array
) -> tuple[int, int]:
    """The shape of the variables as matrices, when all is as it should be."""
    # The values themselves are let go of here: they could not be written else.
    state = [cell.read() for cell in cells]
    _check(names, state, grad, indices)
    shape = state[0].shape
    return shape[0], math.prod(shape[1:])


def _turns(indices: Array) -> Iterator[Array]:
    """Where rows stand that are updated at once: who is named twice has two turns."""
    left = np.arange(indices.size)
    while left.size:
        first = np.sort(np.unique(indices[left], return_index=True)[1])
        yield left[first]
        left = np.delete(left, first)


def _bind(sig: NodeSig) -> Callable[..., Any]:
    update, dtype = codegen.update_of(sig.op), sig.attrs["T"].base_dtype.np
    names = ("var", *update.state)
    count, gradient = len(names), update.inputs.index(update.gradient)
    flags = {name: bool(sig.attrs[name]) for name, _ in update.flags}
    resource = sig.op.startswith("Resource")
    code = RowUpdates(sig) if RowUpdates.writes(sig) else None

    def apply(*inputs: Any) -> Any:
        cells, rest = inputs[:count], list(inputs[count:])
        indices = np.asarray(rest.pop(gradient + 1))
        given = dict(zip(update.inputs, rest, strict=True))
        for name in update.integers:
            given[name] = np.asarray(given[name], dtype)
        with cells[0].lock:
            gradients = given[update.gradient]
            matrix = _matrix(cells, names, gradients, indices)
            if code is not None and code(cells, matrix, given, indices):
                return None if resource else cells[0]
            for turn in _turns(indices):
                given[update.gradient] = gradients[turn]
                some = indices[turn]
                old = [cell.read().take(some, 0, None, "clip") for cell in cells]
                fresh = update.rule(namespace, flags, old, **given)
                for cell, before, after in zip(cells, old, fresh, strict=True):
                    if after is not before:
                        rows = np.reshape(after, (some.size, matrix[1]))
                        change_rows(cell, matrix, replace, some, rows)
        return None if resource else cells[0]

    return apply


for _op in codegen.updates(sparse=True):
    table.add(Kernel(op=_op, bind=_bind, dtypes={"T": FLOATS}, keeps=frozenset()))
