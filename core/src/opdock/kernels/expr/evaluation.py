"""Typed lines on arrays: as Python code of a call a step, or walked where a tracer listens."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.dtypes import DType
from opdock.kernels.array_api import is_writable, put
from opdock.kernels.expr.functions import FUNCTIONS, Function
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, Line, Step
from opdock.shapes import Shape


def namespace_dtype(xp: Any, dtype: DType) -> Any:
    """The type object by which the array namespace `xp` knows `dtype`."""
    found = getattr(xp, dtype.name, None)
    return dtype.np if found is None else found


def _last_uses(line: Line) -> list[list[int]]:
    """For each step the values that nothing needs after it: whole arrays, in a long line many."""
    needed, dead = set(line.results), []
    for i, step in reversed(list(enumerate(line.steps))):
        dead.append([a for a in dict.fromkeys((*step.args, i)) if a not in needed])
        needed.update(step.args)
    return dead[::-1]


def _seen(line: Line) -> list[frozenset[str]]:
    """For each step the inputs that it depends on, which together give it its shape."""
    seen: list[frozenset[str]] = []
    for step in line.steps:
        own = {step.value} if step.op == INPUT else set()
        seen.append(frozenset(own.union(*(seen[a] for a in step.args))))
    return seen


def evaluator(
    line: Line, xp: Any, inputs: Sequence[str], shape: Shape = None, *, alike: bool = False,
    out: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function of arrays, in the order of `inputs`, that computes the line's results.

    It is Python code, a call a step. Where the namespace's functions write to arrays they are
    given, a value that nothing needs any more makes room for the next. A namespace that traces
    (`xp.is_traced`) calls it once for each set of shapes, and writing code would take longer than
    that: there the steps are walked.

    Args:
        line: the steps.
        xp: an array-API namespace.
        inputs: the names of the positional arguments.
        shape: the shape of the results where it is known; otherwise the arguments' broadcast.
        alike: whether all arguments have that shape.
        out: whether the function takes one more argument, an array for the one result, or None.

    Returns:
        `fn(*arrays)`: one array, or a tuple if the line has several results.
    """
    writer = _Writer(line, xp, inputs, shape, alike, out)
    return writer.walk() if hasattr(xp, "is_traced") and not out else writer.function()


class _Writer:
    """Writes a line as the source of a function."""

    def __init__(
        self, line: Line, xp: Any, inputs: Sequence[str], shape: Shape, alike: bool, out: bool
    ) -> None:
        self._steps, self._results, self._xp, self._shape = line.steps, line.results, xp, shape
        self._dead, self._out = _last_uses(line), out
        seen = _seen(line)
        whole = frozenset().union(*(seen[r] for r in line.results))
        # The steps whose values have the shape of the results, whatever those of the inputs.
        self._full = [s == whole or (alike and bool(s)) for s in seen]
        self._spread = not all(self._full[r] for r in line.results) or (
            not alike and len(whole) < len(inputs)
        )
        reads = [i for i, s in enumerate(line.steps) for a in s.args if self._is(INPUT, a)]
        self._last_read = max(reads, default=0)
        self._params = [f"a{j}" for j in range(len(inputs))]
        self._names = [
            self._params[list(inputs).index(s.value)] if s.op == INPUT else f"v{i}"
            for i, s in enumerate(line.steps)
        ]
        self._scope: dict[str, Any] = {}
        self._fresh: set[int] = set()
        self._holds: int | None = None  # the last value that was written to `out`

    def _is(self, op: str, i: int) -> bool:
        return self._steps[i].op == op

    def function(self) -> Callable[..., Any]:
        """The compiled function."""
        body = [text for i in range(len(self._steps)) for text in self._step(i)]
        found = [self._result(r) for r in self._results]
        if self._spread:
            self._scope["spread"] = functools.partial(_spread, self._xp, self._shape)
            found = [f"spread({v}, {', '.join(self._params)})" for v in found]
        if self._out and (self._spread or (self._holds,) != self._results):
            self._scope["put"] = functools.partial(put, self._xp)
            body.append(f"if out is not None: return put(out, ..., {found[0]})")
        body.append(f"return {', '.join(found)}")
        heading = f"def run({', '.join(self._params + ['out=None'] * self._out)}):"
        exec(_code("\n    ".join([heading, *body])), self._scope)  # noqa: S102 - written here
        run: Callable[..., Any] = self._scope.pop("run")
        return run

    def walk(self) -> Callable[..., Any]:
        """A function that goes through the steps."""
        takes = [(i, self._params.index(self._names[i])) for i in self._every(INPUT)]
        numbers = [(i, self._number(i)) for i in self._every(NUMBER)]
        calls = [
            (i, self._call(i), step.args)
            for i, step in enumerate(self._steps)
            if step.op not in (INPUT, NUMBER)
        ]
        copied = [self._views_input(r) for r in self._results]

        def run(*arrays: Any) -> Any:
            values: list[Any] = [None] * len(self._steps)
            for i, at in takes:
                values[i] = arrays[at]
            for i, value in numbers:
                values[i] = value
            for i, call, args in calls:
                values[i] = call(*[values[a] for a in args])
            found = [values[r] for r in self._results]
            found = [
                self._xp.asarray(v, copy=True) if c else v
                for v, c in zip(found, copied, strict=True)
            ]
            if self._spread:
                found = [_spread(self._xp, self._shape, v, *arrays) for v in found]
            return found[0] if len(found) == 1 else tuple(found)

        return run

    def _every(self, op: str) -> list[int]:
        return [i for i in range(len(self._steps)) if self._is(op, i)]

    def _number(self, i: int) -> Any:
        step = self._steps[i]
        return self._xp.asarray(_representable(step), dtype=namespace_dtype(self._xp, step.dtype))

    def _call(self, i: int) -> Callable[..., Any]:
        """What computes a step."""
        step, operand = self._steps[i], self._steps[self._steps[i].args[-1]].dtype
        if step.op == CAST:
            return _caster(self._xp, operand, step.dtype)
        return _bound(FUNCTIONS[step.op], self._xp, operand)

    def _result(self, i: int) -> str:
        """A result as the function returns it: never memory of the caller's."""
        if not self._views_input(i):
            return self._names[i]
        self._scope["fresh"] = functools.partial(self._xp.asarray, copy=True)
        return f"fresh({self._names[i]})"

    def _views_input(self, i: int) -> bool:
        """Whether a value is an argument of the function, or may be a part of one's memory."""
        step = self._steps[i]
        if step.op in (INPUT, NUMBER, CAST):
            return step.op == INPUT
        return FUNCTIONS[step.op].views and self._views_input(step.args[0])

    def _step(self, i: int) -> list[str]:
        step, name = self._steps[i], self._names[i]
        if step.op == INPUT:
            return []
        if step.op == NUMBER:
            self._scope[name] = self._number(i)
            return []
        args = [self._names[a] for a in step.args]
        if self._masked(i):
            value = step.args[2]
            self._fresh.add(i)
            if self._holds == value:
                self._holds = i
            return [f"{args[2]}[{args[0]}] = {args[1]}", f"{name} = {args[2]}", f"{args[0]} = None"]
        call = self._call(i)
        if step.op == CAST:
            self._fresh.add(i)
        else:
            function, operand = FUNCTIONS[step.op], self._steps[step.args[-1]].dtype
            if operand in function.plain:
                self._fresh.add(i)
                if writes_to(call, self._xp, function.arity, operand, step.dtype):
                    args += self._place(i)
        self._scope[f"f{i}"] = call
        text = [f"{name} = f{i}({', '.join(args)})"]
        gone = [self._names[d] for d in self._dead[i] if f"f{d}" in self._scope and d != i]
        if gone:
            text.append(" = ".join([*gone, "None"]))
        return text

    def _masked(self, i: int) -> bool:
        """Whether a choice writes its number into the array that it would otherwise be."""
        step = self._steps[i]
        if step.op != "where" or not self._shape or self._spread:
            return False
        mask, number, value = step.args
        return (
            self._is(NUMBER, number)
            and self._full[mask] and not self._is(INPUT, mask) and mask in self._dead[i]
            and self._full[value] and value in self._fresh and value in self._dead[i]
            and writes_where(self._xp, step.dtype)
        )  # fmt: skip

    def _is_last(self, i: int) -> bool:
        """Whether the result is a step's value, or that value where a mask says so."""
        (result,) = self._results if len(self._results) == 1 else (-1,)
        chooses = self._is("where", result) and self._is(NUMBER, self._steps[result].args[1])
        return i == result or (
            chooses and i == self._steps[result].args[2] and i >= self._last_read
            and writes_where(self._xp, self._steps[i].dtype)
        )  # fmt: skip

    def _place(self, i: int) -> list[str]:
        """The argument that says where to write a value, if there is a place."""
        steps = self._steps
        if self._spread or not self._full[i]:
            return []
        last = self._is_last(i)
        # `out` may be the memory of an input, so it waits until all of them are read.
        early = self._holds is None and i >= self._last_read
        alike = steps[i].dtype is steps[self._results[0]].dtype
        # Arrays without dimensions may be numbers, which cannot be written to.
        room = [
            a for a in steps[i].args
            if self._shape and a in self._fresh and a in self._dead[i]
            and steps[a].dtype is steps[i].dtype and self._full[a]
        ]  # fmt: skip
        if self._out and (last or (early and alike and not room)):
            self._holds = i
            return ["out=out"]
        return [f"out={self._names[room[0]]}"] if room else []


@functools.lru_cache(maxsize=512)
def _code(text: str) -> Any:
    return compile(text, "<opdock expression>", "exec")


@functools.lru_cache(maxsize=4096)
def writes_to(
    function: Any, xp: Any, arity: int, operand: DType, result: DType, *, behind: bool = False
) -> bool:
    """Whether a function of the namespace takes an array that it writes to and returns.

    As `out=`, or `behind` its inputs: a function of any number of arrays would take one more there.
    """
    try:
        with np.errstate(all="ignore"):
            # Of a list: compilers make a program for `ones`, which takes longer than all else here.
            place = xp.asarray([0], dtype=namespace_dtype(xp, result))
            args = [xp.asarray([1], dtype=namespace_dtype(xp, operand))] * arity
            if not is_writable(place):
                return False
            made = function(*args, place) if behind else function(*args, out=place)
            return made is place
    except Exception:
        return False


@functools.lru_cache(maxsize=256)
def writes_where(xp: Any, dtype: DType) -> bool:
    """Whether the namespace's arrays take a number at the places that a mask says."""
    try:
        array = xp.asarray([1, 1], dtype=namespace_dtype(xp, dtype))
        if not is_writable(array):
            return False
        array[xp.asarray([True, False])] = xp.asarray(0, dtype=array.dtype)
        return [bool(v) for v in array] == [False, True]
    except Exception:
        return False


def _bound(function: Function, xp: Any, operand: DType) -> Callable[..., Any]:
    if operand in function.plain:
        return getattr(xp, function.array)  # type: ignore[no-any-return]
    return functools.partial(function.evaluate, xp)


def _caster(xp: Any, source: DType, target: DType) -> Callable[..., Any]:
    element = namespace_dtype(xp, target)
    if source.is_complex and not target.is_complex:
        return lambda x: xp.astype(xp.real(x), element)
    return lambda x: xp.astype(x, element)


def _representable(step: Step) -> Any:
    value = step.value
    if step.dtype.is_bool:
        return bool(value)
    if step.dtype.is_integer and isinstance(value, float):
        if not math.isfinite(value) or not value.is_integer():
            raise ValueError(f"The number {value} is not a {step.dtype.name}.")
        return int(value)
    return value


def _spread(xp: Any, shape: Shape, value: Any, *arrays: Any) -> Any:
    """`value`, which need not depend on every input, in the full broadcast shape."""
    if shape is None or None in shape:
        shape = np.broadcast_shapes(*(tuple(a.shape) for a in arrays))
    if tuple(value.shape) == shape:
        return value
    return (
        value + xp.zeros(shape, dtype=value.dtype)
        if value.dtype != xp.bool
        else xp.logical_or(value, xp.zeros(shape, dtype=value.dtype))
    )
