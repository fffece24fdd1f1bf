"""Updates of many small variables as one call of generated code.

What an update of a few elements takes in NumPy is calls. Here a call goes through tables of
addresses, which are made once: the variables take turns in two sets of buffers, of which one is
read while the other is written, and gradients mostly lie where they lay in the step before.
"""

from __future__ import annotations

import functools
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import UPDATES, DType, Kernel, KernelTable, NodeSig, codegen, dtypes, errors
from opdock_cpu.crew import Loop, alone
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.compiled import Function, caller, ffi, request
from opdock_cpu.jit.generated import chunks_of, cost, quiet
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.team import ATTRIBUTES, spread
from opdock_cpu.jit.training import line_of
from opdock_cpu.namespace import namespace
from opdock_cpu.threads import threads

__all__ = ["table"]

table = KernelTable()
Array = np.ndarray[Any, Any]
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_POINTERS: Final = ("state", "given", "fresh", "shared", "sizes")


def _one(sig: NodeSig) -> NodeSig:
    """The signature of one of the updates."""
    return NodeSig(sig.attrs["op"], sig.name, sig.attrs)


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    try:
        update = codegen.update_of(sig.attrs["op"])
    except KeyError:
        return f"{sig.attrs['op']} is no update of an optimizer"
    shared = len(update.inputs) - 1
    states = (1 + len(update.state)) * sig.attrs["count"]
    scalars = [s == () for s in sig.in_shapes[states:]].count(True)
    if scalars < shared:
        return "not every parameter is known to be one number"
    return render.renders(line_of(_one(sig)))


# ---------------------------------------------------------------- the code
def _module(entry: str, line: Any, state: Sequence[str], gradient: str, others: Sequence[str],
            dtype: DType) -> str:  # fmt: skip
    """The assembly of updates that follow a line.

    Its entry point takes the addresses of five tables and the words of a call. In the first stand
    the addresses of variables, those of one name in a row; in the second the gradients', in the
    third where new values go, like the first; in the fourth those of the numbers that all share;
    in the last how many variables of a name there are, and how many elements each has.
    """
    code, kind = Code(), render.stored_as(dtype)
    some = code.put("icmp slt i64 %from, %to")
    code.add(f"br i1 {some}, label %start, label %done")
    code.block("start")
    count = code.size(0)
    inputs = {}
    for i, name in enumerate(others):
        inputs[name] = render.loaded(code.put, dtype, _address(code, "%shared", str(i)))
    with code.loop("%from", "%to") as which:
        places = {gradient: _address(code, "%given", which.index)}
        results = []
        for i, name in enumerate(state):
            row = code.put(f"mul i64 {count}, {i}")
            at = code.put(f"add i64 {row}, {which.index}")
            places[name] = _address(code, "%state", at)
            results.append(_address(code, "%fresh", at))
        size = code.size_at(code.put(f"add i64 {which.index}, 1"))
        with code.loop("0", size, parallel=True) as element:
            for name, place in places.items():
                here = code.at(kind, place, element.index)
                inputs[name] = render.loaded(code.put_free, dtype, here)
            values = render.body(code.put, line, inputs)
            for place, value in zip(results, values, strict=True):
                code.store(kind, value, code.at(kind, place, element.index), free=True)
    code.add("br label %done")
    code.block("done")
    code.add("ret void")
    params = ", ".join(f"ptr noalias %{p}" for p in _POINTERS)
    core = code.function(f"define internal void @core({params}, i64 %from, i64 %to) {ATTRIBUTES}")
    parts = [definition(name, kind) for name, kind in sorted(render.needs(line))]
    last = len(_POINTERS) - 1
    return "\n".join([*parts, core, spread(entry, _POINTERS, (last, 0)), metadata()])


def _address(code: Code, pointer: str, index: str) -> str:
    return code.put(f"load ptr, ptr {code.at('ptr', pointer, index)}")


# ---------------------------------------------------------------- buffers
def _held(arrays: Sequence[Array]) -> list[int]:
    """How many references there are to each array, those by the list and by this call too."""
    return list(map(sys.getrefcount, arrays))


_ALONE: Final = _held([np.empty(1)])[0]


def _addresses(arrays: Sequence[Any]) -> Any:
    """A table of the addresses of arrays, which somebody else holds."""
    lib = ffi()
    return lib.new("void *[]", list(map(lib.from_buffer, arrays)))


class _Side:
    """Values of variables, and where they are.

    Attributes:
        arrays: all of them.
        table: their addresses.
    """

    __slots__ = ("arrays", "table")

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.table = _addresses(arrays)

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether these are the values."""
        return all(map(operator.is_, self.arrays, values))

    def let_go(self) -> None:
        """Has a new array for each that somebody else refers to, or knows by a weak reference."""
        arrays = self.arrays
        held = _held(arrays)
        if held.count(_ALONE) == len(held) and not any(map(weakref.getweakrefcount, arrays)):
            return
        for i, count in enumerate(held):
            if count != _ALONE or weakref.getweakrefcount(arrays[i]):
                arrays[i] = np.empty_like(arrays[i])
        self.table = _addresses(arrays)


class _Locks:
    """The locks of variables; whoever takes several takes them in the order of the ids."""

    def __init__(self, cells: Sequence[Any]) -> None:
        locks = [cell.lock for cell in sorted(cells, key=id)]
        # The methods, since to look them up takes longer than to call them.
        self._take = [lock.__enter__ for lock in locks]
        self._release = [lock.__exit__ for lock in locks]

    def __enter__(self) -> None:
        taken = 0
        try:
            for take in self._take:
                take()
                taken += 1
        except BaseException:
            self._let_go(taken)
            raise

    def __exit__(self, *_: object) -> None:
        self._let_go(len(self._release))

    def _let_go(self, count: int) -> None:
        for release in self._release[:count]:
            release(None, None, None)


# ---------------------------------------------------------------- the kernel
class _Updates:
    """Many updates of one kind; while there is no code, each is made alone."""

    def __init__(self, sig: NodeSig) -> None:
        one, attrs = _one(sig), sig.attrs
        self._update = update = codegen.update_of(one.op)
        self._plain = codegen.update_on(namespace, one)
        self._dtype = attrs["T"].base_dtype
        self._count = count = attrs["count"]
        self._state = ("var", *update.state)
        self._others = [n for n in update.inputs if n != update.gradient]
        states = len(self._state) * count
        self._at = states + update.inputs.index(update.gradient)
        shapes = sig.in_shapes[self._at : self._at + count]
        self._shapes = [tuple(n or 0 for n in s or ()) for s in shapes]  # a gradient's is known
        elements = [int(np.prod(s, dtype=np.int64)) for s in self._shapes]
        self._sizes = np.array([count, *elements], np.int64)
        self._codes: dict[bool, Function] = {}
        self._calls: dict[bool, Callable[..., Any]] = {}
        nanoseconds = sum(elements) * cost(line_of(one), [self._dtype] * (2 * len(self._state) + 1))
        self._chunks, self._loop = chunks_of(nanoseconds, count, 0), Loop()
        self._quiet = quiet(nanoseconds)
        for usual in {False, bool(update.usual)}:
            self._codes[usual] = request(functools.partial(self._source, one, usual))
        self._cells: Sequence[Any] = ()
        self._locks = _Locks(())
        self._apart = False
        self._sides: list[_Side] = []
        self._gradients: Sequence[Any] = ()
        self._given: Any = None

    def _source(self, one: NodeSig, as_usual: bool, name: str) -> str:
        usual = self._update.usual if as_usual else ()
        others = [n for n in self._others if n not in dict(usual)]
        line, gradient = line_of(one, usual), self._update.gradient
        return _module(name, line, self._state, gradient, others, self._dtype)

    def __call__(self, *inputs: Any) -> None:
        """Updates all variables."""
        count, states = self._count, len(self._state) * self._count
        cells, gradients = inputs[:states], inputs[self._at : self._at + count]
        numbers = dict(zip(self._others, (
            *inputs[states : self._at], *inputs[self._at + count :]), strict=True))  # fmt: skip
        call, shared = self._call_for(numbers)
        if self._cells != cells:
            self._cells, self._locks = cells, _Locks(cells[:count])
            # Two handles may name one variable, whose updates then come one after the other.
            self._apart = len(set(map(id, cells))) == states
        if call is None or not self._apart:
            self._one_by_one(cells, gradients, numbers)
            return
        with self._locks:
            self._step(call, cells, gradients, shared)

    def _one_by_one(self, cells: Sequence[Any], gradients: Sequence[Any], numbers: Any) -> None:
        update, count = self._update, self._count
        for i, gradient in enumerate(gradients):
            given = {**numbers, update.gradient: gradient}
            self._plain(*cells[i::count], *(given[n] for n in update.inputs))

    def _call_for(self, numbers: dict[str, Any]) -> tuple[Callable[..., Any] | None, list[Any]]:
        """The code for such numbers, if it is there, and those that it takes."""
        usual = dict(self._update.usual)
        as_usual = bool(usual) and all(numbers[n] == v for n, v in usual.items())
        found = self._calls.get(as_usual)
        if found is None and (address := self._codes[as_usual].address) is not None:
            found = self._calls[as_usual] = caller(len(_POINTERS))(address)
        return found, [v for n, v in numbers.items() if not (as_usual and n in usual)]

    # ------------------------------------------------------------ one step
    def _step(
        self, call: Callable[..., Any], cells: Sequence[Any], gradients: Sequence[Any],
        numbers: Sequence[Any],
    ) -> None:  # fmt: skip
        try:
            state = [cell.read() for cell in cells]
        except errors.OpError as e:
            # The update itself says better whose value is missing.
            raise errors.UnimplementedError(None, None, f"A value is not there: {e.message}") from e
        read, written = self._turn(state)
        del state
        given = self._addressed(gradients)
        pointer = ffi().from_buffer
        shared = [np.asarray(v, self._dtype.np) for v in numbers]
        tables = read.table, given, written.table, _addresses(shared), pointer(self._sizes)
        if self._chunks == 1:
            call(*tables, alone())
        else:
            held = self._loop.begin(self._chunks, threads(), self._quiet)
            call(*tables, held.address)
            self._loop.end(held)
        cells[0].write_all(cells, written.arrays)

    def _turn(self, state: list[Any]) -> tuple[_Side, _Side]:
        """Where the values are, and where new ones go, which nobody refers to."""
        read = next((s for s in self._sides if s.holds(state)), None)
        if read is None:
            read = _Side(self._checked(state, self._shapes * len(self._state)))
        written = next((s for s in self._sides if s is not read), None)
        if written is None:
            # Only what was made here is written again: nobody can tell who else knows other memory.
            written = _Side([np.empty_like(a) for a in state])
            self._sides.append(written)
        else:
            written.let_go()
        return read, written

    def _addressed(self, gradients: Sequence[Any]) -> Any:
        if len(self._gradients) == len(gradients) and all(
            map(operator.is_, self._gradients, gradients)
        ):
            return self._given
        arrays = self._checked(gradients, self._shapes)
        self._gradients, self._given = arrays, _addresses(arrays)
        return self._given

    def _checked(self, given: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """The arrays, contiguous; UnimplementedError where the code would not know them."""
        arrays = [np.asarray(g, order="C") for g in given]
        dtype = self._dtype.np
        for array, shape in zip(arrays, shapes, strict=True):
            if array.shape != shape or array.dtype != dtype:
                raise errors.UnimplementedError(
                    None, None, f"An array of {dtype} and shape {list(shape)} was expected, got "
                    f"{array.dtype} and shape {list(array.shape)}",
                )  # fmt: skip
        return arrays


table.add(Kernel(op=UPDATES, bind=_Updates, dtypes={"T": _FLOATS}, when=_when, keeps=frozenset()))
