"""Whole segments as one XLA program: their kernels are traced, and loops and branches are XLA's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from opdock.plugin import Executable, HeldVariable, Refusal, Segment, SegmentNode, errors
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
            if node.call is not None:
                return node.call(*inputs)
            return (self.loop if "cond" in node.bodies else self.branch)(node, inputs)
        except UnknownError:
            raise
        except Exception as e:
            self.refused[node] = f"{type(e).__name__}: {e}".partition("\n")[0]
            if not all(r.is_static for r in node.results):
                raise UnknownError from e
            return single([jnp.zeros(r.shape, r.dtype.np) for r in node.results])

    # ------------------------------------------------------------ control flow
    def branch(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """One of two functions, as XLA decides."""
        sides = [node.bodies["then_branch"], node.bodies["else_branch"]]
        carry = Carry(inputs[1:], sides)
        through = [functools.partial(carry.through, side, self.call) for side in sides]
        return carry.settled(lax.cond(jnp.reshape(inputs[0], ()), *through, carry.values()))

    def loop(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """A loop of XLA."""
        condition, body = node.bodies["cond"], node.bodies["body"]
        carry, limit = Carry(inputs, [body]), node.attrs.get("_maximum_iterations")

        def goes_on(state: Any) -> Any:
            count, values = state
            (more,), _, failed = carry.through(condition, self.call, values)
            if failed is not values[2]:
                raise NotImplementedError("the condition of the loop checks values")
            more = jnp.reshape(more, ())
            return more if limit is None else more & (count < limit)

        def turn(state: Any) -> Any:
            count, values = state
            return count + 1, carry.through(body, self.call, values)

        _, out = lax.while_loop(goes_on, turn, (jnp.int64(0), carry.values()))
        return carry.settled(out)


class Carry:
    """What goes through a loop or a branch: arrays, variables that it writes, failed checks."""

    def __init__(self, inputs: list[Any], bodies: Sequence[Segment]) -> None:
        self.inputs = inputs
        self.written = sorted({
            body.params.index(v.slot) for body in bodies for v in body.variables if v.written
        })  # fmt: skip
        self.outputs: list[Any] = []

    def values(self) -> tuple[Any, Any, Any]:
        """The values before the first turn."""
        arrays = [strong(x) for x in self.inputs if not isinstance(x, HeldVariable)]
        return arrays, [self.inputs[i].read() for i in self.written], jnp.bool_(False)

    def through(self, body: Segment, call: Any, values: Any) -> tuple[Any, Any, Any]:
        """The values after a body."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        rest = iter(arrays)
        given = [x if isinstance(x, HeldVariable) else next(rest) for x in self.inputs]
        with deferring() as checks:
            self.outputs = list(body.walk(given, call))
        out = [strong(x) for x in self.outputs if not isinstance(x, HeldVariable)]
        fresh = [strong(self.inputs[i].read()) for i in self.written]
        return out, fresh, functools.reduce(jnp.logical_or, checks, failed)

    def settled(self, values: Any) -> Any:
        """The outputs of the node after the last turn."""
        arrays, state, failed = values
        for i, value in zip(self.written, state, strict=True):
            self.inputs[i].write(value)
        namespace.defer(failed)
        rest = iter(arrays)
        return single([x if isinstance(x, HeldVariable) else next(rest) for x in self.outputs])


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
