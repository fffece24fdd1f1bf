"""Whole segments as one XLA program: their kernels are traced, and loops and branches are XLA's."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from opdock.plugin import Executable, HeldVariable, Refusal, Segment, SegmentNode, dtypes, errors
from opdock_jax.lists import OPS, Rows, is_known, turns
from opdock_jax.namespace import deferring, namespace


def compile_segment(segment: Segment) -> Executable | Refusal:
    """An XLA program: at once where all shapes are known, else for the shapes that come."""
    trace = Trace(segment, donates=segment.is_static)
    if not segment.is_static:
        return Program(trace, jax.jit(trace))
    with segment.device.computing():
        try:
            lowered = trace.lowered()
            if trace.checks and trace.donates:
                # Where a check fails the kernels run, and need what was there before.
                trace.donates = False
                lowered = trace.lowered()
            return Refusal(nodes=trace.refused) if trace.refused else Program(
                trace, lowered.compile()
            )
        except jax.errors.JaxRuntimeError as e:
            return Refusal(f"XLA: {e}".partition("\n")[0])
        except UnknownError:
            return Refusal(nodes=trace.refused)

_OURS: Final = 3
"""References to a value that only this module holds: two lists and the question."""


class UnknownError(Exception):
    """The trace cannot go on after a node that was refused: nobody knows its results' shapes."""


class Trace:
    """The function of buffers that JAX traces.

    Attributes:
        donates: whether XLA may write over the values of variables that are updated.
        refused: the nodes that cannot be traced, and why.
        checks: whether a kernel checks values.
    """

    def __init__(self, segment: Segment, donates: bool) -> None:
        self.segment, self.donates = segment, donates
        self.refused: dict[SegmentNode, str] = {}
        self.checks = False

    def lowered(self) -> Any:
        """The program before XLA compiles it, where all shapes are known."""
        place = jax.sharding.SingleDeviceSharding(self.segment.device.place)

        def like(value: Any) -> Any:
            return jax.ShapeDtypeStruct(value.shape, value.dtype.np, sharding=place)

        state = [like(v) if v.read else None for v in self.segment.variables]
        places = jax.ShapeDtypeStruct((len(self.segment.streams), 6), jnp.uint32)
        inputs = [like(v) for v in self.segment.inputs]
        return jax.jit(self, donate_argnums=1).lower(inputs, *self.split(state), places)

    def split(self, state: Any) -> tuple[list[Any], list[Any]]:
        """The values of variables that XLA may write over, and the others."""
        updated = [v.read and v.written and self.donates for v in self.segment.variables]
        own = [x if mine else None for x, mine in zip(state, updated, strict=True)]
        return own, [None if mine else x for x, mine in zip(state, updated, strict=True)]

    def __call__(
        self, inputs: Any, own: Any, others: Any, places: Any
    ) -> tuple[Any, Any, Any]:
        """Results, new values of variables, and whether a kernel's check of values fails."""
        state = [b if a is None else a for a, b in zip(own, others, strict=True)]
        words = places.astype(jnp.int64)
        with deferring() as checks:
            results, fresh = self.segment.run(inputs, state, words, self.call)
        failed = functools.reduce(jnp.logical_or, checks) if checks else None
        self.checks = bool(checks)
        return results, fresh, failed

    def call(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """The outputs of a node; of one that cannot be traced something like them."""
        try:
            if node.op in OPS and (gives_list(node) or any(isinstance(x, Rows) for x in inputs)):
                return OPS[node.op](node, *inputs)
            if node.call is not None:
                # What is known already may decide how often a later loop turns.
                early = bool(inputs) and all(map(is_known, inputs))
                with jax.ensure_compile_time_eval() if early else contextlib.nullcontext():
                    return node.call(*inputs)
            return (self.loop if "cond" in node.bodies else self.branch)(node, inputs)
        except UnknownError:
            raise
        except Exception as e:
            self.refused[node] = f"{type(e).__name__}: {e}".partition("\n")[0]
            if gives_list(node) or not all(r.is_static for r in node.results):
                raise UnknownError from e
            return single([jnp.zeros(r.shape, r.dtype.np) for r in node.results])

    # ------------------------------------------------------------ control flow
    def branch(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """One of two functions, as XLA decides."""
        sides = [node.bodies["then_branch"], node.bodies["else_branch"]]
        carry = Carry(inputs[1:], sides)
        through = [functools.partial(carry.through, side, self.call) for side in sides]
        if carry.lists:
            raise NotImplementedError("a branch changes a list")
        out = lax.cond(jnp.reshape(inputs[0], ()), *through, carry.values())
        return single(carry.settled(out))

    def loop(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """A loop of XLA."""
        condition, body = node.bodies["cond"], node.bodies["body"]
        limit = node.attrs.get("_maximum_iterations")
        counted = turns(condition, body, inputs, limit)
        count, known = counted or (None, {})
        if count == 0:
            return single(inputs)
        carry = Carry(inputs, [body])
        if carry.lists:
            if count is None:
                raise NotImplementedError("how often the loop turns is not known beforehand")
            carry.make_room(body, self.call, count)

        def goes_on(state: Any) -> Any:
            turn, values = state
            (more,), _, failed = carry.through(condition, self.call, values)
            if failed is not values[2]:
                raise NotImplementedError("the condition of the loop checks values")
            more = jnp.reshape(more, ())
            return more if limit is None else more & (turn < limit)

        def once(state: Any) -> Any:
            turn, values = state
            return turn + 1, carry.through(body, self.call, values, turn)

        _, out = lax.while_loop(goes_on, once, (jnp.int64(0), carry.values()))
        results = carry.settled(out, count)
        return single([known.get(i, x) for i, x in enumerate(results)])


class Carry:
    """What goes through a loop or a branch: arrays, variables that it writes, failed checks.

    Attributes:
        inputs: of the node; lists with room for what a loop adds to them.
        written: the indices of the variables that are written.
        steps: of each list, by its index, how much longer a turn makes it.
    """

    def __init__(self, inputs: list[Any], bodies: Sequence[Segment]) -> None:
        self.inputs = list(inputs)
        self.written = sorted({
            body.params.index(v.slot) for body in bodies for v in body.variables if v.written
        })  # fmt: skip
        self.lists = [i for i, x in enumerate(inputs) if isinstance(x, Rows)]
        self.steps = dict.fromkeys(self.lists, 0)
        self.outputs: list[Any] = []

    def make_room(self, body: Segment, call: Any, count: int) -> None:
        """Makes the lists as large as a loop will make them: its first turn tells by how much."""
        before = [self.inputs[i].read() for i in self.written]
        jax.eval_shape(functools.partial(self.through, body, call), self.values())
        for i, value in zip(self.written, before, strict=True):
            self.inputs[i].write(value)
        for i in self.lists:
            old, new = self.inputs[i], self.outputs[i]
            self.steps[i] = new.length - old.length
            if new.array is None or old.base is not None:
                continue
            room = new.array.shape[0] + max(0, self.steps[i]) * (count - 1)
            if old.array is None:
                empty = jnp.zeros((0, *new.array.shape[1:]), new.array.dtype)
                old = dataclasses.replace(old, array=empty)
            self.inputs[i] = old.with_room(room)

    def values(self) -> tuple[Any, Any, Any]:
        """The values before the first turn."""
        state = [self.inputs[i].read() for i in self.written]
        return arrays_of(self.inputs), state, jnp.bool_(False)

    def through(
        self, body: Segment, call: Any, values: Any, turn: Any = None
    ) -> tuple[Any, Any, Any]:
        """The values after a body, in a turn of a loop or otherwise."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        given = with_arrays(self.inputs, arrays)
        for i in self.lists if turn is not None else ():
            base = turn * self.steps[i]
            base = base if given[i].base is None else base + given[i].base
            given[i] = dataclasses.replace(given[i], base=base)
        with deferring() as checks:
            self.outputs = list(body.walk(given, call))
        fresh = [strong(self.inputs[i].read()) for i in self.written]
        return arrays_of(self.outputs), fresh, functools.reduce(jnp.logical_or, checks, failed)

    def settled(self, values: Any, count: int | None = None) -> list[Any]:
        """The outputs of the node after the last of so many turns."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        namespace.defer(failed)
        outputs = with_arrays(self.outputs, arrays)
        for i in self.lists:
            old, step = self.inputs[i], self.steps[i]
            if outputs[i].length != old.length + step:
                raise NotImplementedError("the turns add differently to a list")
            length = old.length + step * (count or 0)
            outputs[i] = dataclasses.replace(outputs[i], base=old.base, length=length)
        return outputs


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """What XLA gets of some values: arrays, and those of lists."""
    found = (x.array if isinstance(x, Rows) else x for x in values)
    return [strong(x) for x in found if x is not None and not isinstance(x, HeldVariable)]


def with_arrays(values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """The values with other arrays in place of those of `arrays_of`."""
    rest = iter(arrays)

    def other(x: Any) -> Any:
        if isinstance(x, HeldVariable) or (isinstance(x, Rows) and x.array is None):
            return x
        return dataclasses.replace(x, array=next(rest)) if isinstance(x, Rows) else next(rest)

    return [other(x) for x in values]


def gives_list(node: SegmentNode) -> bool:
    """Whether a result is a list."""
    return any(r.dtype is dtypes.variant for r in node.results)


def strong(x: Any) -> Any:
    """An array of its own type whatever it meets, as what goes through a loop has to be."""
    return lax.convert_element_type(x, x.dtype)


def single(results: list[Any]) -> Any:
    """The results as a kernel gives them."""
    return results[0] if len(results) == 1 else tuple(results)


class Program:
    """A traced segment, as the runtime calls it."""

    def __init__(self, trace: Trace, run: Any) -> None:
        self.device, self.trace, self.run = trace.segment.device, trace, run
        self.donates = trace.donates

    def __call__(self, inputs: Any, state: Any, places: Any) -> tuple[Any, Any]:
        """Runs once; results may not be finished yet, unless kernels check values.

        Raises:
            UnimplementedError: a check fails: the kernels themselves say what is wrong. Or shapes
                that became known make a program that cannot be traced.
        """
        with self.device.computing():
            own, others = self.trace.split(state)
            if self.donates:
                own = [self.alone(own, i) for i in range(len(own))]
            try:
                results, fresh, failed = self.run(list(inputs), own, others, places)
            except UnknownError:
                failed = True
        if self.trace.refused:
            raise errors.UnimplementedError(None, None, str(self.trace.refused))
        if failed is not None and bool(failed):
            raise errors.UnimplementedError(None, None, "a kernel's check of values failed")
        return results, fresh

    def alone(self, own: list[Any], i: int) -> Any:
        """A value that nobody else refers to: a fetch or another step may still hold it."""
        if own[i] is None or sys.getrefcount(own[i]) <= _OURS:
            return own[i]
        return jnp.array(own[i], copy=True)
