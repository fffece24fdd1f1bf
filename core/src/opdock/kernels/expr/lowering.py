"""Lowering: scalar expressions to a typed straight line of steps, and its evaluation on arrays.

A `Line` is what every user of expressions walks: the evaluator here, and the code generators of
backends ("float v3 = expf(v1);" is one step). Steps refer to earlier steps by index.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.kernels.array_api import put
from opdock.kernels.expr import tree as ex
from opdock.kernels.expr.functions import FUNCTIONS, Function
from opdock.shapes import Shape

INPUT, NUMBER, CAST = "input", "number", "cast"
_NARROW = frozenset({dtypes.float16, dtypes.bfloat16})


@dataclass(frozen=True, slots=True)
class Step:
    """One value of a line.

    Attributes:
        op: `INPUT`, `NUMBER`, `CAST`, or the name of a function.
        args: the indices of the steps it takes.
        dtype: its element type.
        value: the input's name, or the number.
    """

    op: str
    args: tuple[int, ...]
    dtype: DType
    value: Any = None


@dataclass(frozen=True, slots=True)
class Line:
    """Typed steps in order of computation; `results` are the indices of the outputs."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    @property
    def functions(self) -> frozenset[str]:
        """The functions applied."""
        return frozenset(s.op for s in self.steps) - {INPUT, NUMBER, CAST}

    @property
    def may_raise(self) -> bool:
        """Whether some input values are errors (an integer division by zero)."""
        return any(
            self.steps[s.args[-1]].dtype in FUNCTIONS[s.op].raises
            for s in self.steps
            if s.op in FUNCTIONS
        )


def lower(
    roots: Sequence[ex.Expr],
    inputs: Mapping[str, DType],
    attrs: Mapping[str, Any] | None = None,
    results: Sequence[DType | None] | None = None,
    *,
    widen: bool = True,
) -> Line:
    """Types the expressions and lays them out as one line.

    Args:
        roots: the expressions, one per output; shared parts are computed once.
        inputs: the input names that may occur, with their types.
        attrs: attribute values for the other names and for the types of casts.
        results: the type that each output must have; a plain number takes it.
        widen: compute float16 and bfloat16 in float32, rounding at the end and at casts.

    Raises:
        ValueError: a name is unknown, or types do not fit.
    """
    known = {
        name: value
        for name, value in (attrs or {}).items()
        if name not in inputs and isinstance(value, (bool, int, float, DType))
    }
    builder = _Lowering(inputs, widen)
    indices = []
    for i, root in enumerate(roots):
        bound = fold_numbers(ex.substitute(root, known))
        indices.append(builder.result(bound, results[i] if results is not None else None))
    return Line(tuple(builder.steps), tuple(indices))


class _Lowering:
    """The state of one `lower`: steps so far, and each node's step and type before widening."""

    def __init__(self, inputs: Mapping[str, DType], widen: bool) -> None:
        self.inputs = inputs
        self.widen = widen
        self.steps: list[Step] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._done: dict[ex.Expr, tuple[int, DType]] = {}
        self._untyped: set[ex.Expr] = set()

    def result(self, root: ex.Expr, wanted: DType | None) -> int:
        for node in ex.walk(root):
            if node not in self._done and node not in self._untyped:
                if self._takes_any_type(node):
                    self._untyped.add(node)
                else:
                    self._done[node] = self._node(node)
        if root in self._untyped:
            if wanted is None:
                raise ValueError(f"'{root}' has no type of its own.")
            index, dtype = self._typed(root, wanted), wanted
        else:
            index, dtype = self._done[root]
        if wanted is not None and dtype is not wanted:
            raise ValueError(f"'{root}' is {dtype.name}, the op's output is {wanted.name}.")
        return index if self.steps[index].dtype is dtype else self._add(CAST, (index,), dtype)

    def _add(self, op: str, args: tuple[int, ...], dtype: DType, value: Any = None) -> int:
        key = (op, args, dtype, type(value), repr(value))
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.steps)
            self.steps.append(Step(op, args, dtype, value))
        return found

    def _wide(self, dtype: DType) -> DType:
        return dtypes.float32 if self.widen and dtype in _NARROW else dtype

    def _widened(self, index: int) -> int:
        dtype = self.steps[index].dtype
        wide = self._wide(dtype)
        return index if wide is dtype else self._add(CAST, (index,), wide)

    def _takes_any_type(self, node: ex.Expr) -> bool:
        """Whether a node is made of numbers, like `where(x > 0, 1, -1)`: its user types it."""
        if isinstance(node, ex.Apply) and FUNCTIONS[node.function].result in ("same", "real"):
            return all(a in self._untyped for a in _typed_args(node.function, node.args))
        return isinstance(node, ex.Number)

    def _typed(self, node: ex.Expr, dtype: DType) -> int:
        """The step of an argument in company of type `dtype`."""
        if node not in self._untyped:
            return self._done[node][0]
        wide = self._wide(dtype)
        if isinstance(node, ex.Number):
            return self._add(NUMBER, (), wide, node.value)
        assert isinstance(node, ex.Apply)
        function = FUNCTIONS[node.function]
        if dtype not in function.domain or function.result_type(dtype) is not dtype:
            raise ValueError(f"'{node.function}' does not take {dtype.name}.")
        return self._call(node.function, node.args, dtype)

    def _call(self, name: str, args: tuple[ex.Expr, ...], dtype: DType) -> int:
        indices = [self._typed(a, dtype) for a in _typed_args(name, args)]
        if name == "where":
            indices.insert(0, self._condition(args[0]))
        if name == "conj" and not dtype.is_complex:
            return indices[0]
        return self._add(name, tuple(indices), FUNCTIONS[name].result_type(self._wide(dtype)))

    def _node(self, node: ex.Expr) -> tuple[int, DType]:
        match node:
            case ex.Name(name=name):
                if name not in self.inputs:
                    raise ValueError(f"'{name}' is neither an input nor a numeric attribute.")
                dtype = self.inputs[name].base_dtype
                return self._widened(self._add(INPUT, (), dtype, name)), dtype
            case ex.Cast(arg=arg, to=to):
                return self._cast(arg, to if isinstance(to, DType) else dtypes.as_dtype(to))
            case ex.Apply(function=function, args=args):
                return self._apply(function, args)
        raise ValueError(f"Not a scalar expression: {node!r}")

    def _cast(self, arg: ex.Expr, to: DType) -> tuple[int, DType]:
        if isinstance(arg, ex.Number) and self._wide(to) is not to:
            rounded = to.np.type(arg.value).item()
            return self._add(NUMBER, (), self._wide(to), rounded), to
        if arg in self._untyped:
            return self._widened(self._typed(arg, to)), to
        index, dtype = self._done[arg]
        if dtype is to:
            return index, to
        return self._widened(self._add(CAST, (index,), to)), to

    def _apply(self, name: str, args: tuple[ex.Expr, ...]) -> tuple[int, DType]:
        function = FUNCTIONS[name]
        operand: DType | None = None
        for arg in _typed_args(name, args):
            if arg in self._untyped:
                continue
            dtype = self._done[arg][1]
            if operand is not None and dtype is not operand:
                raise ValueError(f"'{name}' is applied to {operand.name} and {dtype.name}.")
            operand = dtype
        if operand is None:
            raise ValueError(f"'{name}' is applied to numbers without a type.")
        if operand not in function.domain:
            raise ValueError(f"'{name}' does not take {operand.name}.")
        return self._call(name, args, operand), function.result_type(operand)

    def _condition(self, arg: ex.Expr) -> int:
        if arg in self._untyped:
            return self._typed(arg, dtypes.bool_)
        index, dtype = self._done[arg]
        if dtype is not dtypes.bool_:
            raise ValueError(f"The condition '{arg}' is {dtype.name}, not bool.")
        return index


def _typed_args(name: str, args: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
    """The arguments that share a type: all but the condition of `where`."""
    return args[1:] if name == "where" else args


def fold_numbers(root: ex.Expr) -> ex.Expr:
    """`root` with functions of numbers only replaced by their value (int or float64)."""
    done: dict[ex.Expr, ex.Expr] = {}
    for node in ex.walk(root):
        new = node
        if isinstance(node, ex.Apply):
            args = [done[a] for a in node.args]
            values = [a.value for a in args if isinstance(a, ex.Number)]
            new = ex.apply(node.function, *args)
            if len(values) == len(args):
                new = ex.number(_value_of(node.function, values))
        elif isinstance(node, ex.Cast):
            new = ex.cast(done[node.arg], node.to)
        done[node] = new
    return done[root]


def _value_of(name: str, values: Sequence[ex.Scalar]) -> ex.Scalar:
    whole = all(isinstance(v, (bool, int)) for v in values) and name != "div"
    kind = np.int64 if whole and dtypes.int64 in FUNCTIONS[name].domain else np.float64
    arrays = [np.asarray(v, np.bool_ if isinstance(v, bool) else kind) for v in values]
    with np.errstate(all="ignore"):
        result = FUNCTIONS[name].evaluate(np, *arrays).item()
    if isinstance(result, complex):
        raise ValueError(f"'{name}' of numbers is complex.")
    return result  # type: ignore[no-any-return]


# ---------------------------------------------------------------- arrays
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
    given, a value that nothing needs any more makes room for the next.

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
    return _Writer(line, xp, inputs, shape, alike, out).function()


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
        run: Callable[..., Any] = self._scope["run"]
        return run

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
        dtype = namespace_dtype(self._xp, step.dtype)
        if step.op == INPUT:
            return []
        if step.op == NUMBER:
            self._scope[name] = self._xp.asarray(_representable(step), dtype=dtype)
            return []
        args = [self._names[a] for a in step.args]
        if self._masked(i):
            value = step.args[2]
            self._fresh.add(i)
            if self._holds == value:
                self._holds = i
            return [f"{args[2]}[{args[0]}] = {args[1]}", f"{name} = {args[2]}", f"{args[0]} = None"]
        if step.op == CAST:
            call = _caster(self._xp, self._steps[step.args[0]].dtype, dtype)
            self._fresh.add(i)
        else:
            function, operand = FUNCTIONS[step.op], self._steps[step.args[-1]].dtype
            call = _bound(function, self._xp, operand)
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
def writes_to(function: Any, xp: Any, arity: int, operand: DType, result: DType) -> bool:
    """Whether a function of the namespace takes `out=`, an array that it writes to and returns."""
    try:
        with np.errstate(all="ignore"):
            args = [xp.ones((1,), dtype=namespace_dtype(xp, operand))] * arity
            place = xp.zeros((1,), dtype=namespace_dtype(xp, result))
            return function(*args, out=place) is place
    except Exception:
        return False


@functools.lru_cache(maxsize=256)
def writes_where(xp: Any, dtype: DType) -> bool:
    """Whether the namespace's arrays take a number at the places that a mask says."""
    try:
        array = xp.ones((2,), dtype=namespace_dtype(xp, dtype))
        array[xp.asarray([True, False])] = xp.asarray(0, dtype=array.dtype)
        return [bool(v) for v in array] == [False, True]
    except Exception:
        return False


def _bound(function: Function, xp: Any, operand: DType) -> Callable[..., Any]:
    if operand in function.plain:
        return getattr(xp, function.array)  # type: ignore[no-any-return]
    return functools.partial(function.evaluate, xp)


def _caster(xp: Any, source: DType, target: Any) -> Callable[..., Any]:
    if source.is_complex and target not in (xp.complex64, xp.complex128):
        return lambda x: xp.astype(xp.real(x), target)
    return lambda x: xp.astype(x, target)


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
