"""Lowering: scalar expressions to a typed straight line of steps.

A `Line` is what every user of expressions walks: the evaluation on arrays, and the code generators
of backends ("float v3 = expf(v1);" is one step). Steps refer to earlier steps by index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.kernels.expr import tree as ex
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.late import record

INPUT, NUMBER, CAST = "input", "number", "cast"
_NARROW = frozenset({dtypes.float16, dtypes.bfloat16})


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
class Line:
    """Typed steps in order of computation; `results` are the indices of the outputs."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __hash__(self) -> int:
        # Tables are asked for lines more often than there are different ones of equal functions.
        return hash((self.results, *[s.op for s in self.steps]))

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
