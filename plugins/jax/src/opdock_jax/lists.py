"""Tensor lists in a trace: what loops record for their gradients, as arrays of known capacity.

XLA has no lists, but a loop whose number of turns is known pushes a known number of elements. So a
list is an array of rows, and how many of them count: a number, or in a loop one that follows from
the number of the turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from opdock.plugin import Segment, SegmentNode

MOST_TURNS = 10_000
"""Loops with more turns are not counted before they run."""


@dataclass(frozen=True)
class Rows:
    """A list of arrays of one shape.

    Attributes:
        array: the elements along the first dimension, and room for more; None before the first.
        length: how many there are, apart from `base`.
        base: an array, how many came in earlier turns of the loop that is traced.
    """

    array: Any = None
    length: int = 0
    base: Any = None

    def push(self, element: Any) -> Rows:
        """One more element."""
        if self.base is not None:
            rows = lax.dynamic_update_index_in_dim(self.array, element, self.base + self.length, 0)
        elif self.array is None:
            rows = element[None]
        elif self.length < self.array.shape[0]:
            rows = self.array.at[self.length].set(element)
        else:
            rows = jnp.concatenate([self.array, element[None]])
        return replace(self, array=rows, length=self.length + 1)

    def pop(self) -> tuple[Rows, Any]:
        """Without the last element, and that element."""
        last = self.length - 1
        if self.base is None and last < 0:
            raise NotImplementedError("the list may be empty")
        at = last if self.base is None else self.base + last
        element = lax.dynamic_index_in_dim(self.array, at, 0, keepdims=False)
        return replace(self, length=last), element

    def all(self) -> Any:
        """The elements that count."""
        if self.base is not None or self.array is None:
            raise NotImplementedError("the length of the list is not known")
        return self.array[: self.length]

    def with_room(self, rows: int) -> Rows:
        """With room for so many."""
        more = max(0, rows - self.array.shape[0])
        pads = [(0, more)] + [(0, 0)] * (self.array.ndim - 1)
        return replace(self, array=jnp.pad(self.array, pads))


def _pop(node: SegmentNode, items: Rows, shape: Any) -> tuple[Rows, Any]:
    if items.base is None and items.length == 0 and node.attrs.get("_zeros"):
        dtype = node.results[1].dtype.np
        return items, jnp.zeros(tuple(map(int, shape)), dtype)
    return items.pop()


def _concat(node: SegmentNode, items: Rows, shape: Any, leading: Any) -> tuple[Any, Any]:
    if items.base is None and items.length == 0:
        size = (int(np.sum(leading)), *map(int, np.atleast_1d(shape)[1:]))
        return jnp.zeros(size, node.results[0].dtype.np), leading
    rows = items.all()
    joined = rows.reshape(-1, *rows.shape[2:])
    return joined, np.full(items.length, rows.shape[1], np.int64)


def _split(node: SegmentNode, tensor: Any, shape: Any, lengths: Any) -> Rows:
    sizes = set(np.asarray(lengths).tolist())
    if len(sizes) != 1:
        raise NotImplementedError("the elements of the list differ in shape")
    return Rows(tensor.reshape(len(lengths), *sizes, *tensor.shape[1:]), len(lengths))


def _add(node: SegmentNode, *lists: Rows) -> Rows:
    found = [x for x in lists if x.array is not None and (x.base is not None or x.length)]
    if not found:
        return lists[0]
    if any(x.length != found[0].length or x.base is not found[0].base for x in found):
        raise NotImplementedError("the lists that are added differ in length")
    arrays = [x.array for x in found]
    if len({x.shape for x in arrays}) > 1:
        raise NotImplementedError("the lists that are added differ in capacity")
    return replace(found[0], array=functools.reduce(jnp.add, arrays))


OPS: dict[str, Callable[..., Any]] = {
    "EmptyTensorList": lambda node, shape, limit: Rows(),
    "TensorListPushBack": lambda node, items, element: items.push(element),
    "TensorListPopBack": _pop,
    "TensorListConcatV2": _concat,
    "TensorListSplit": _split,
    "AddN": _add,
}


# ---------------------------------------------------------------- turns
def turns(
    condition: Segment, body: Segment, inputs: list[Any], limit: int | None
) -> tuple[int, dict[int, Any]] | None:
    """How many turns a loop takes, and the last values of its counters; None if unknown.

    Counters are what starts from known numbers and follows from nothing but counters. If the
    condition depends on them alone, they are computed before anything is traced.
    """
    needed = {i for i, x in enumerate(inputs) if is_known(x) and x.ndim == 0}
    while dropped := {i for i in needed if not _behind(body, {i}) <= needed}:
        needed -= dropped
    if not _behind(condition, {0}) <= needed:
        return None
    values = {i: inputs[i] for i in needed}
    with jax.ensure_compile_time_eval():
        for turn in range(MOST_TURNS if limit is None else min(limit, MOST_TURNS) + 1):
            if turn == limit or not bool(_part(condition, values, {0})[0]):
                return turn, values
            values = _part(body, values, needed)
    return None


def is_known(value: Any) -> bool:
    """Whether a value is there while others are traced."""
    return isinstance(value, np.ndarray | np.generic) or (
        isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
    )


def _slots(body: Segment, outputs: set[int]) -> set[int]:
    """All values on which some outputs of a body depend."""
    slots = {body.outputs[i].slot for i in outputs}
    for node in reversed(body.nodes):
        if slots.intersection(node.outputs):
            slots.update(node.inputs)
    return slots


def _behind(body: Segment, outputs: set[int]) -> set[int]:
    """The arguments on which some outputs of a body depend."""
    slots = _slots(body, outputs)
    return {i for i, slot in enumerate(body.params) if slot in slots}


def _part(body: Segment, values: dict[int, Any], outputs: set[int]) -> dict[int, Any]:
    """Some outputs of a body, from the arguments on which they depend."""
    slots = _slots(body, outputs)
    arguments = [values.get(i) for i in range(len(body.params))]

    def call(node: SegmentNode, inputs: list[Any]) -> Any:
        if not slots.intersection(node.outputs) or node.call is None:
            return (None,) * len(node.outputs) if len(node.outputs) != 1 else None
        return node.call(*inputs)

    found = body.walk(arguments, call)
    return {i: found[i] for i in outputs}
