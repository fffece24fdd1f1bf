"""The line of a cluster: the members' scalar expressions, one after the other.

Each member keeps its own steps and its own roundings, so a cluster computes what its members do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from opdock import dtypes, errors
from opdock.axes import reduced
from opdock.compiler.ir.block import Node, Value
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.kernels.expr.cluster import REDUCTIONS, Reduce
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, Line, Step, lower
from opdock.kernels.expr.tree import parse
from opdock.kernels.portable.elementwise import lower_node
from opdock.kernels.select.selection import LABEL_ATTR
from opdock.kernels.select.signature import NodeSig

MAX_STEPS: Final = 64
"""The most computing steps of one cluster: compile times of generated code grow faster than it."""
_FEW: Final = 1 << 10
"""Elements up to which the call of generated code costs more than what it computes."""
_SHARE: Final = 16
"""Arithmetic steps on few elements that count as one: compiling a thousand takes a tenth of a
second, and as many calls of `tanh` five."""
_QUICK: Final = frozenset({
    INPUT, NUMBER, CAST, "where", "abs", "max", "min",
    *(name for name, function in FUNCTIONS.items() if function.symbol not in ("", "**")),
})  # fmt: skip
_CHEAP: Final = frozenset({
    INPUT, NUMBER, CAST, "add", "sub", "mul", "neg", "abs", "max", "min", "where", "lt", "le", "gt",
    "ge", "eq", "ne", "bitand", "bitor", "bitxor", "bitnot", "sign",
})  # fmt: skip
_EXACT: Final = 2**53
_DECIDING: Final = (bool, int, float, str, bytes)
_MAX_UNIFORM_BYTES: Final = 2**24


class Member(NamedTuple):
    """An op as steps: `line` has one result, and its inputs are numbered "0", "1", ...

    Attributes:
        line: the steps.
        used: which of the op's inputs they read.
        computing: how many of the steps compute something.
        quick: whether each of them takes less time than it takes to compile it.
        cheap: whether each of them takes less time than to read its result from memory.
    """

    line: Line
    used: frozenset[int]
    computing: int
    quick: bool
    cheap: bool

    def size(self, elements: int | None) -> float:
        """The steps as they count for `MAX_STEPS` where they compute so many elements, if known."""
        few = self.quick and elements is not None and elements <= _FEW
        return self.computing / _SHARE if few else self.computing


def computing(line: Line) -> int:
    """How many steps of a line compute something."""
    return sum(1 for s in line.steps if s.op not in (INPUT, NUMBER))


# ---------------------------------------------------------------- one op
def alike_as(node: Node) -> Any:
    """What decides what a placed op would be in a cluster: equal ones are the same.

    None for ops of which it takes more. Axes count by identity: the program keeps them.
    """
    attrs = node.attrs
    if LABEL_ATTR in attrs:
        return None
    ends = node.op in _ENDINGS
    # Types by their numbers, whose hashes are no calls of Python.
    inputs: list[Any] = []
    for before, index in node.inputs:
        inputs.append(before.out_dtypes[index]._enum)
        inputs.append(before.out_shapes[index])
        if before.is_const:
            inputs.append(id(before) if ends else True)
    # 1, 1.0 and True are equal and not the same number.
    values: list[tuple[str, Any, type]] = []
    for k, v in attrs.items():
        if v.__class__ is DType:
            values.append((k, v._enum, DType))
        elif isinstance(v, _DECIDING):
            values.append((k, v, type(v)))
    outputs = tuple([d._enum for d in node.out_dtypes]), tuple(node.out_shapes)
    return node.op, node.target, id(node.kernel), outputs, tuple(inputs), tuple(values)


def may_be_in_line(node: Node) -> bool:
    """Whether nodes of such an op are elementwise, or reductions."""
    spec = node.spec
    return spec is not None and (
        spec.expr is not None or node.op in _SPECIAL or node.op in _ENDINGS
    )


def member_of(node: Node) -> Member | None:
    """The steps of a node, or None if they cannot be part of a cluster."""
    special = _SPECIAL.get(node.op)
    if node.spec is None or (special is None and node.spec.expr is None):
        return None
    types = tuple([v.dtype.base_dtype for v in node.inputs])
    result = node.out_dtypes[0].base_dtype
    if special is not None:
        text = special(node)
        return None if text is None else _from_text(text, types, result)
    attrs = [(k, v) for k, v in node.attrs.items() if isinstance(v, (bool, int, float, DType))]
    kinds = tuple([type(v) for _, v in attrs])
    return _from_spec(node.op, types, result, tuple(attrs), kinds)


@lru_cache(maxsize=4096)
def _from_spec(
    op: str, types: tuple[DType, ...], result: DType, attrs: tuple[tuple[str, Any], ...],
    kinds: tuple[type, ...],
) -> Member | None:  # fmt: skip
    # `kinds` is there for the cache: 1, 1.0 and True are equal and not the same number.
    spec = registry.get(op)
    sig = NodeSig(op, attrs=dict(attrs), in_dtypes=types, out_dtypes=(result,))
    try:
        line = lower_node(spec, sig)
    except ValueError:
        return None
    places = {a.name: str(i) for i, a in enumerate(spec.definition.inputs)}
    return _checked(_renamed(line, places))


@lru_cache(maxsize=1024)
def _from_text(text: str, types: tuple[DType, ...], result: DType) -> Member | None:
    inputs = {f"x{i}": t for i, t in enumerate(types)}
    try:
        line = lower([parse(text)], inputs, {}, [result])
    except ValueError:
        return None
    return _checked(_renamed(line, {f"x{i}": str(i) for i in range(len(types))}))


def _renamed(line: Line, places: Mapping[str, str]) -> Line:
    steps = (s if s.op != INPUT else Step(INPUT, (), s.dtype, places[s.value]) for s in line.steps)
    return Line(tuple(steps), line.results)


def _checked(line: Line) -> Member | None:
    """None for errors, which need the user's line, for copies, and for what is too long."""
    if line.may_raise or line.steps[line.results[0]].op == INPUT or computing(line) > MAX_STEPS:
        return None
    used = frozenset(int(s.value) for s in line.steps if s.op == INPUT)
    ops = {s.op for s in line.steps}
    return Member(line, used, computing(line), ops <= _QUICK, ops <= _CHEAP)


def _bias_add(node: Node) -> str | None:
    value = node.inputs[0].shape
    if value is None or (node.attrs.get("data_format") == "NCHW" and len(value) != 2):
        return None
    return "x0 + x1"


def _add_n(node: Node) -> str | None:
    if len(node.inputs) < 2 or any(v.shape != node.out_shapes[0] for v in node.inputs):
        return None
    return " + ".join(f"x{i}" for i in range(len(node.inputs)))


def _select(node: Node) -> str | None:
    shape = node.out_shapes[0]
    # A vector chooses whole rows, which is no broadcast.
    return "x1 if x0 else x2" if node.inputs[0].shape in ((), shape) else None


def _filled(number: str) -> Callable[[Node], str | None]:
    return lambda node: None if node.out_dtypes[0].is_complex else number


_SPECIAL: Final[dict[str, Callable[[Node], str | None]]] = {
    "BiasAdd": _bias_add, "BiasAddV1": _bias_add, "AddN": _add_n, "AccumulateNV2": _add_n,
    "Select": _select, "ZerosLike": _filled("0"), "OnesLike": _filled("1"),
}  # fmt: skip


# ---------------------------------------------------------------- reductions
class Ending(NamedTuple):
    """A reduction, and the steps of what it reduces if that is not its operand itself."""

    reduce: Reduce
    member: Member | None = None


def ending_of(node: Node) -> Ending | None:
    """A reduction of a value over axes that are known, or None."""
    if node.op not in _ENDINGS or not node.inputs[0].shape:
        return None
    shape, dtype = node.inputs[0].shape, node.inputs[0].dtype.base_dtype
    everything = tuple(range(len(shape)))
    if node.op == "BiasAddGrad":
        channel = 1 if node.attrs.get("data_format") == "NCHW" else len(shape) - 1
        return Ending(Reduce("sum", tuple(a for a in everything if a != channel), False))
    if node.op == "L2Loss":
        # In 16 bits the squares would be rounded.
        if dtype not in (dtypes.float32, dtypes.float64):
            return None
        return Ending(Reduce("sum", everything, False), _from_text("x0*x0*0.5", (dtype,), dtype))
    indices = node.inputs[1].node.const()
    if indices is None or (node.op == "Mean" and not dtype.is_floating):
        return None
    try:
        axes = reduced(indices, len(shape))
    except errors.OpError:
        # The op itself says what is wrong, when it runs.
        return None
    keep = bool(node.attrs["keep_dims"])
    return Ending(Reduce(REDUCTIONS[node.op], axes, keep)) if axes else None


_ENDINGS: Final = frozenset({*REDUCTIONS, "BiasAddGrad", "L2Loss"})


# ---------------------------------------------------------------- many ops
class Composer:
    """A line under construction: members are added in executable order.

    Args:
        through: where to read an input instead: an array whose broadcast it is.
    """

    def __init__(self, through: Callable[[Value], Value] = lambda value: value) -> None:
        self._through = through
        self.steps: list[Step] = []
        self.inputs: list[Value] = []
        self.at: dict[Value, int] = {}
        self._index: dict[tuple[Any, ...], int] = {}

    def add(self, node: Node, member: Member) -> int:
        """The step of the node's result, with all the steps it takes."""
        places: list[int] = []
        for step in member.line.steps:
            if step.op == INPUT:
                places.append(self.read(node, node.inputs[int(step.value)]))
            else:
                args = tuple(places[a] for a in step.args)
                places.append(self._step(step.op, args, step.dtype, step.value))
        self.at[Value(node, 0)] = places[member.line.results[0]]
        return places[member.line.results[0]]

    def line(self, results: Iterable[int]) -> tuple[Line, list[Value]]:
        """The steps that `results` need, and the values that are its inputs, in order."""
        wanted = list(results)
        needed = set(wanted)
        for i in range(len(self.steps) - 1, -1, -1):
            if i in needed:
                needed.update(self.steps[i].args)
        new: dict[int, int] = {}
        steps: list[Step] = []
        inputs: list[Value] = []
        for i in sorted(needed):
            step = self.steps[i]
            value = step.value
            if step.op == INPUT:
                inputs.append(self.inputs[value])
                value = f"x{len(inputs) - 1}"
            new[i] = len(steps)
            steps.append(Step(step.op, tuple(new[a] for a in step.args), step.dtype, value))
        return Line(tuple(steps), tuple(new[r] for r in wanted)), inputs

    def read(self, node: Node | None, value: Value) -> int:
        """The step of an operand of a node, or of a result: of a member's, or of an input."""
        found = self.at.get(value)
        if found is None:
            source = self._through(value)
            found = self.at.get(source)
            if found is None:
                number = None if node is None else _number(node, value, source)
                found = self.at[source] = self._read(source, number)
            self.at[value] = found
        return found

    def _read(self, value: Value, number: float | None) -> int:
        dtype = value.dtype.base_dtype
        if number is not None:
            return self._step(NUMBER, (), dtype, number)
        self.inputs.append(value)
        return self._step(INPUT, (), dtype, len(self.inputs) - 1)

    def _step(self, op: str, args: tuple[int, ...], dtype: DType, value: Any) -> int:
        if op == CAST and dtype is dtypes.float32 and self.steps[args[0]].op == NUMBER:
            source = self.steps[args[0]]
            if source.dtype in (dtypes.float16, dtypes.bfloat16):
                op, args, value = NUMBER, (), source.value
        # Zeros of both signs are equal, and NaN is not itself.
        exact = repr(value) if isinstance(value, float) else value
        key = (op, args, dtype._enum, type(value), exact)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.steps)
            self.steps.append(Step(op, args, dtype, value))
        return found


def _number(node: Node, value: Value, source: Value) -> int | float | None:
    """The number to write in place of a constant operand all of whose elements are equal.

    Another operand must have the full shape, or the constant would count for the result's.

    Args:
        node: what takes the operand.
        value: the operand.
        source: where it comes from; what is read in another shape never counts for the result's.
    """
    if source.node.op != "Const":
        return None
    array, dtype = source.node.const(), source.dtype.base_dtype
    if array is None or dtype.is_complex or not _is_uniform(array):
        return None
    if value is source and not any(
        v != value and v.shape == node.out_shapes[0] for v in node.inputs
    ):
        return None
    number = array.reshape(-1)[0].item()
    if dtype.is_bool:
        return bool(number)
    if dtype.is_integer:
        return int(number) if abs(int(number)) <= _EXACT else None
    return float(number)


def _is_uniform(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements have the same bits."""
    if array.size == 1:
        return not array.dtype.hasobject
    if not array.size or array.nbytes > _MAX_UNIFORM_BYTES or array.itemsize not in (1, 2, 4, 8):
        return False
    flat = array.reshape(-1).view(f"u{array.itemsize}")
    return bool(flat[0] == flat[-1]) and bool((flat == flat[0]).all())
