"""Optimizers' updates of some rows of variables: core's rules on these rows, written in place."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import FLOATS, Kernel, KernelTable, NodeSig, checks, codegen, dtypes, heard
from opdock_cpu.changes import change_rows, replace
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.generated import Generated
from opdock_cpu.jit.training import line_of
from opdock_cpu.kernels.gather import are_below
from opdock_cpu.namespace import namespace

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
_GENERATED: Final = frozenset({
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
})  # fmt: skip
_MANY: Final = 1 << 15
"""Steps times elements from which generated code is quicker than NumPy's passes."""
_SHAPES: Final = 16
"""So many shapes are kept where they change."""
Rule = Callable[[list[Array], Mapping[str, Any]], Sequence[Array]]


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


def _rows(cells: Sequence[Any], names: Sequence[str], grad: Any, indices: Array) -> Any:
    """The rows of the variables, and the shape of these as matrices."""
    # The values themselves are let go of here: they could not be written else.
    state = [cell.read() for cell in cells]
    _check(names, state, grad, indices)
    shape = state[0].shape
    matrix = shape[0], math.prod(shape[1:])
    return [value.take(indices, 0, None, "clip") for value in state], matrix


def _rule(sig: NodeSig) -> Rule:
    """What becomes of the rows of the state: one pass of generated code, or NumPy's for few."""
    update, dtype = codegen.update_of(sig.op), sig.attrs["T"].base_dtype
    flags = {name: bool(sig.attrs[name]) for name, _ in update.flags}
    names, count = ("var", *update.state, *update.inputs), 1 + len(update.state)

    def plain(old: list[Array], given: Mapping[str, Any]) -> Sequence[Array]:
        fresh: Sequence[Array] = update.rule(namespace, flags, old, **given)
        return fresh

    if dtype not in _GENERATED or not llvm.available():
        return plain
    if render.renders(line_of(sig, update.usual)) is not True:
        return plain
    always = render.renders(line_of(sig)) is True

    @functools.lru_cache(maxsize=_SHAPES)
    @heard
    def program(as_usual: bool, *shapes: tuple[int, ...]) -> Generated | None:
        line = line_of(sig, update.usual if as_usual else ())
        if math.prod(shapes[0]) * len(line.steps) < _MANY:
            return None
        inputs = [(dtype, shape) for shape in shapes]
        return Generated(line, names, inputs, shapes[0], [(dtype, shapes[0])] * count)

    def rule(old: list[Array], given: Mapping[str, Any]) -> Sequence[Array]:
        values = [*old, *given.values()]
        as_usual = all(given[name] == value for name, value in update.usual)
        code = program(as_usual, *map(np.shape, values)) if as_usual or always else None
        if code is None:
            return plain(old, given)
        fresh: Sequence[Array] = code(values, None)
        return fresh

    return rule


def _bind(sig: NodeSig) -> Callable[..., Any]:
    update, dtype = codegen.update_of(sig.op), sig.attrs["T"].base_dtype.np
    names = ("var", *update.state)
    count, gradient = len(names), update.inputs.index(update.gradient)
    rule, resource = _rule(sig), sig.op.startswith("Resource")

    def apply(*inputs: Any) -> Any:
        cells, rest = inputs[:count], list(inputs[count:])
        indices = np.asarray(rest.pop(gradient + 1))
        given = dict(zip(update.inputs, rest, strict=True))
        for name in update.integers:
            given[name] = np.asarray(given[name], dtype)
        with cells[0].lock:
            old, matrix = _rows(cells, names, given[update.gradient], indices)
            fresh = rule(old, given)
            for cell, before, after in zip(cells, old, fresh, strict=True):
                if after is not before:
                    rows = np.reshape(after, (indices.size, matrix[1]))
                    change_rows(cell, matrix, replace, indices, rows)
        return None if resource else cells[0]

    return apply


for _op in codegen.updates(sparse=True):
    table.add(Kernel(op=_op, bind=_bind, dtypes={"T": FLOATS}, keeps=frozenset()))
