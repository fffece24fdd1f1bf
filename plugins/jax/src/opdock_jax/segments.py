"""Whole segments as one XLA program: their kernels are traced, and loops and branches are XLA's."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from opdock.plugin import Executable, Refusal, Segment, SegmentNode, SegmentValue, errors, tracing
from opdock_jax.device import WORTH_SHARING, told
from opdock_jax.namespace import namespace

_OURS: Final = 2
"""References to an array that nobody else holds: a list and the question."""
_LISTS: Final = (tracing.Rows, tracing.Places)
_WIDE: Final = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def compile_segment(segment: Segment) -> Executable | Refusal:
    """An XLA program: at once where all shapes are known, else for the shapes that come."""
    trace = Trace(segment)
    # XLA may write over what it is given first, for variables. Without, it is given what it reads.
    over = tuple(range(len(trace.updated)))
    run = jax.jit(trace, donate_argnums=over, keep_unused=bool(over))
    if not segment.is_static:
        return Program(trace, run)
    with segment.device.computing():
        try:
            lowered = run.lower(*trace.arguments())
            if not trace.refused:
                return Program(trace, lowered.compile())
        except jax.errors.JaxRuntimeError as e:
            return Refusal(f"XLA: {e}".partition("\n")[0])
        except UnknownError:
            pass
    return Refusal(nodes=trace.refused)


class UnknownError(Exception):
    """The trace cannot go on after a node that was refused: nobody knows its results' shapes."""


class Trace:
    """The function of buffers that JAX traces.

    It takes them one by one, which JAX passes on in less time than structures of them: an array to
    write over for each variable that is updated, the inputs, the variables that are read, and the
    places of random streams, if there are any. It gives the new values of variables, the results,
    and where a kernel checks values whether such a check fails.

    Attributes:
        read: the indices of the variables that are read.
        updated: of those that are read and written.
        written: how many are written.
        refused: the nodes that cannot be traced, and why.
    """

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        variables = segment.variables
        self.read = [i for i, v in enumerate(variables) if v.read]
        self.updated = [i for i in self.read if variables[i].written]
        self.written = sum(v.written for v in variables)
        self.refused: dict[SegmentNode, str] = {}

    def arguments(self) -> list[Any]:
        """What it will be called with, where all shapes are known."""
        place = jax.sharding.SingleDeviceSharding(self.segment.device.place)

        def like(value: Any) -> Any:
            return jax.ShapeDtypeStruct(value.shape, value.dtype.np, sharding=place)

        known = self.segment.variables
        updated, read = ([known[i] for i in at] for at in (self.updated, self.read))
        given = [like(v) for v in (*updated, *self.segment.inputs, *read)]
        if streams := len(self.segment.streams):
            given.append(jax.ShapeDtypeStruct((streams, 6), jnp.uint32))
        return given

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """See above."""
        segment, rest = self.segment, iter(given[len(self.updated) :])
        inputs = [next(rest) for _ in segment.inputs]
        state = [next(rest) if v.read else None for v in segment.variables]
        places = next(rest).astype(jnp.int64) if segment.streams else ()
        with tracing.deferring() as checks:
            results, fresh = segment.run(inputs, state, places, self.call)
        return *fresh, *results, *([functools.reduce(jnp.logical_or, checks)] if checks else [])

    def call(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """The outputs of a node; of one that cannot be traced something like them."""
        try:
            lists = tracing.gives_list(node) or any(isinstance(x, _LISTS) for x in inputs)
            if lists and node.op in tracing.OPS:
                return tracing.OPS[node.op](namespace, node, *inputs)
            if node.call is not None:
                # What is known already may decide how often a later loop turns.
                early = bool(inputs) and all(tracing.is_known(namespace, x) for x in inputs)
                with jax.ensure_compile_time_eval() if early else contextlib.nullcontext():
                    return node.call(*inputs)
            return (self.loop if "cond" in node.bodies else self.branch)(node, inputs)
        except UnknownError:
            raise
        except Exception as e:
            self.refused[node] = f"{type(e).__name__}: {e}".partition("\n")[0]
            if tracing.gives_list(node) or not all(r.is_static for r in node.results):
                raise UnknownError from e
            return single([jnp.zeros(r.shape, r.dtype.np) for r in node.results])

    def branch(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """One of two functions, as XLA decides."""
        sides = [node.bodies["then_branch"], node.bodies["else_branch"]]
        carry = tracing.Carry(namespace, inputs[1:], sides)
        through = [functools.partial(carry.through, side, self.call) for side in sides]
        if carry.arrays or tracing.gives_list(node):
            carry.agree(sides, self.call, jax.eval_shape)
        return single(carry.taken(lax.cond(jnp.reshape(inputs[0], ()), *through, carry.values())))

    def loop(self, node: SegmentNode, inputs: list[Any]) -> Any:
        """A loop of XLA."""
        condition, body = node.bodies["cond"], node.bodies["body"]
        if any(v.written for v in condition.variables):
            raise NotImplementedError("the condition of the loop changes what it reads")
        limit = node.attrs.get("_maximum_iterations")
        with jax.ensure_compile_time_eval():
            count, known = tracing.turns(namespace, condition, body, inputs, limit) or (None, {})
        if count == 0:
            return single(inputs)
        carry = tracing.Carry(namespace, inputs, [body])
        if carry.lists and count is None:
            raise NotImplementedError("how often the loop turns is not known beforehand")
        if carry.lists or carry.arrays:
            carry.make_room(body, self.call, count, jax.eval_shape)

        def goes_on(state: Any) -> Any:
            turn, values = state
            if count is not None:
                return turn < count
            (more,), _, failed = carry.through(condition, self.call, values)
            if failed is not values[2]:
                raise NotImplementedError("the condition of the loop checks values")
            return jnp.reshape(more, ()) & (limit is None or turn < limit)

        def once(state: Any) -> Any:
            turn, values = state
            return turn + 1, carry.through(body, self.call, values, turn)

        _, out = lax.while_loop(goes_on, once, (jnp.int64(0), carry.values()))
        return single([known.get(i, x) for i, x in enumerate(carry.settled(out, count))])


def single(results: list[Any]) -> Any:
    """The results as a kernel gives them."""
    return results[0] if len(results) == 1 else tuple(results)


def _is_large(value: SegmentValue) -> bool:
    # Where a dimension is not known, the device looks at what comes.
    size = value.dtype.size * math.prod(d or 0 for d in value.shape or ())
    return size >= WORTH_SHARING or not value.is_static


class Program:
    """A traced segment, as the runtime calls it.

    A variable's value stays as it is while the next is computed, so there are two arrays for each
    variable, and a program writes the one before last.

    Args:
        trace: the function that was traced.
        run: what JAX made of it, compiled where all shapes are known.

    Attributes:
        settled: whether it is compiled; then JAX's settings, whose change takes as long as a small
            program, count no more, but for what it makes of NumPy's 64 bits. Otherwise shapes may
            change from step to step.
        bare: whether its results are all there is to a run, unless there are checks.
    """

    takes_host = True
    uses_numpy = False

    def __init__(self, trace: Trace, run: Any) -> None:
        segment = trace.segment
        self.device, self.trace, self.run = segment.device, trace, run
        self.updated = trace.updated
        self.reads_all = len(trace.read) == len(segment.variables)
        self.updates_all = len(trace.updated) == len(segment.variables)
        self.settled = isinstance(run, jax.stages.Compiled)
        self.plain = self.settled and not any(v.dtype.np in _WIDE for v in segment.inputs)
        self.replaced: list[Any] = []
        self.written = trace.written
        self.count = trace.written + len(segment.outputs)
        self.large = [i for i, v in enumerate(segment.outputs) if _is_large(v)]
        self.draws = bool(segment.streams)
        self.bare = not segment.variables and not self.large

    def __call__(self, inputs: Any, state: Any, places: Any) -> tuple[Any, Any]:
        """Runs once; results may not be finished yet, new values of variables are.

        Raises:
            UnimplementedError: a check fails: the kernels themselves say what is wrong. Or shapes
                that became known make a program that cannot be traced.
        """
        given = state if self.reads_all else [state[i] for i in self.trace.read]
        if self.draws:
            given = (*given, places)
        run = self.run if self.plain else self.traced
        spare = self.spare(state) if self.updated else ()
        try:
            out = run(*spare, *inputs, *given)
            if self.bare and len(out) == self.count:
                return out, ()
            if self.written:
                out[0].block_until_ready()  # a program's results come together, or not at all
            if len(out) > self.count and bool(np.asarray(out[-1])):
                raise errors.UnimplementedError(None, None, "a kernel's check of values failed")
        except jax.errors.JaxRuntimeError as e:
            raise told(e) from None
        results = out[self.written : self.count]
        if self.updated:
            self.replaced = state[:] if self.updates_all else [state[i] for i in self.updated]
        for i in self.large:
            self.device.gave(results[i])
        return results, out[: self.written]

    def traced(self, *given: Any) -> Any:
        """A run that JAX may trace and compile first, or that has 64 bits."""
        try:
            with self.device.computing():
                out = self.run(*given)
        except UnknownError:
            out = None
        if self.trace.refused:
            raise errors.UnimplementedError(None, None, str(self.trace.refused))
        return out

    def spare(self, state: Any) -> list[Any]:
        """Arrays that nobody needs, one for each variable that is updated."""
        old, self.replaced = self.replaced, []
        if not old:
            return [self.device.duplicate(state[i]) for i in self.updated]
        if self.settled and max(map(sys.getrefcount, old)) <= _OURS:
            return old
        for i, at in enumerate(self.updated):
            fits = self.settled or old[i].shape == state[at].shape
            if sys.getrefcount(old[i]) > _OURS or not fits:
                old[i] = self.device.duplicate(state[at])
        return old
