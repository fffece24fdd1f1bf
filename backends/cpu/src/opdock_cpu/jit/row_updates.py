"""Optimizers' updates of some rows of variables as one pass of generated code over these rows.

A step of an embedding names a few rows, once each as a rule. What takes the time there are calls
more than arithmetic: rows are read, updated and written where they lie, in one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import NodeSig, codegen, dtypes
from opdock_cpu.changes import change_together
from opdock_cpu.crew import alone
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.compiled import caller, ffi, request
from opdock_cpu.jit.mathematics import definition
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.team import ATTRIBUTES, spread
from opdock_cpu.jit.training import line_of

__all__ = ["RowUpdates"]

Array = np.ndarray[Any, Any]
_POINTERS: Final = ("state", "given", "rows", "shared", "sizes")
_FLOATS: Final = frozenset({dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64})


# ---------------------------------------------------------------- the code
def _module(
    entry: str, sig: NodeSig, known: tuple[tuple[str, float], ...], others: Sequence[str]
) -> str:
    """The assembly of an update.

    Its entry point takes a table of the addresses of the variable and its slots, the gradients of
    the rows, the rows' numbers, a table of the addresses of the other inputs, how many rows there
    are and how long each is, and the words of a call. Who names a row twice has it updated twice.
    """
    update, dtype = codegen.update_of(sig.op), sig.attrs["T"].base_dtype
    code, kind = Code(), render.stored_as(dtype)
    word = "i32" if sig.attrs["Tindices"].base_dtype is dtypes.int32 else "i64"
    some = code.put("icmp slt i64 %from, %to")
    code.add(f"br i1 {some}, label %start, label %done")
    code.block("start")
    names, line = ("var", *update.state), line_of(sig, known)
    places = [code.put(f"load ptr, ptr {code.at('ptr', '%state', str(i))}") for i in range(
        len(names))]  # fmt: skip
    inputs = {}
    for i, name in enumerate(others):
        place = code.put(f"load ptr, ptr {code.at('ptr', '%shared', str(i))}")
        inputs[name] = render.loaded(code.put, dtype, place)
    width = code.size(1)
    with code.loop("%from", "%to") as which:
        number = code.put(f"load {word}, ptr {code.at(word, '%rows', which.index)}")
        if word == "i32":
            number = code.put(f"sext i32 {number} to i64")
        row = code.put(f"mul i64 {number}, {width}")
        source = code.put(f"mul i64 {which.index}, {width}")
        with code.loop("0", width, parallel=True) as column:
            at = code.put(f"add i64 {row}, {column.index}")
            here = [code.at(kind, place, at) for place in places]
            for name, place in zip(names, here, strict=True):
                inputs[name] = render.loaded(code.put_free, dtype, place)
            at = code.put(f"add i64 {source}, {column.index}")
            inputs[update.gradient] = render.loaded(code.put_free, dtype, code.at(
                kind, "%given", at))  # fmt: skip
            values = render.body(code.put, line, inputs)
            for place, value in zip(here, values, strict=True):
                code.store(kind, value, place, free=True)
    code.add("br label %done")
    code.block("done")
    code.add("ret void")
    params = ", ".join(f"ptr noalias %{p}" for p in _POINTERS)
    core = code.function(f"define internal void @core({params}, i64 %from, i64 %to) {ATTRIBUTES}")
    parts = [definition(name, kind) for name, kind in sorted(render.needs(line))]
    return "\n".join([*parts, core, spread(entry, _POINTERS, (len(_POINTERS) - 1, 0)), metadata()])


def _kinds(sig: NodeSig) -> set[bool]:
    """Whether there is code for what numbers usually are, and for any."""
    usual = codegen.update_of(sig.op).usual
    known = {True: usual, False: ()} if usual else {False: ()}
    return {kind for kind, given in known.items() if render.renders(line_of(sig, given)) is True}


# ---------------------------------------------------------------- the kernel
class RowUpdates:
    """An update of rows, compiled in the background.

    Args:
        sig: of the op.
    """

    def __init__(self, sig: NodeSig) -> None:
        self._update = update = codegen.update_of(sig.op)
        self._dtype, self._index = sig.attrs["T"].base_dtype.np, sig.attrs["Tindices"].base_dtype.np
        self._others = [n for n in update.inputs if n != update.gradient]
        self._calls: dict[bool, Callable[..., Any]] = {}
        self._codes = {
            usual: request(functools.partial(self._source, sig, usual)) for usual in _kinds(sig)
        }

    @staticmethod
    def writes(sig: NodeSig) -> bool:
        """Whether there is such code for an op."""
        known = sig.attrs["T"].base_dtype in _FLOATS and llvm.available()
        return known and bool(_kinds(sig))

    def _source(self, sig: NodeSig, as_usual: bool, name: str) -> str:
        known = self._update.usual if as_usual else ()
        return _module(name, sig, known, [n for n in self._others if n not in dict(known)])

    def __call__(
        self, cells: Sequence[Any], shape: tuple[int, int], given: Mapping[str, Any], indices: Array
    ) -> bool:
        """Updates the rows, if the code is there.

        Args:
            cells: the variable and its slots, all of one shape; the caller holds the lock, and no
                reference to a value.
            shape: what each is as a matrix.
            given: the other inputs.
            indices: numbers of rows, all of which there are.

        Returns:
            Whether it did.
        """
        usual = dict(self._update.usual)
        as_usual = bool(usual) and all(given[n] == v for n, v in usual.items())
        call = self._calls.get(as_usual)
        if call is None:
            code = self._codes.get(as_usual)
            address = None if code is None else code.address
            if address is None:
                return False
            call = self._calls[as_usual] = caller(len(_POINTERS))(address)
        if not (indices.size and shape[1]):
            return True
        lib, dtype = ffi(), self._dtype
        pointer = lib.from_buffer
        shared = [np.asarray(given[n], dtype) for n in self._others if not (
            as_usual and n in usual)]  # fmt: skip
        if any(number.ndim for number in shared):
            return False
        rows = np.ascontiguousarray(indices, self._index)
        gradient = np.ascontiguousarray(given[self._update.gradient], dtype)
        numbers = lib.new("void *[]", [*map(pointer, shared), lib.NULL])
        sizes = pointer(np.array([rows.size, shape[1]], np.int64))
        passed = pointer(gradient), pointer(rows), numbers, sizes, alone()

        def write(values: Sequence[Array]) -> None:
            call(lib.new("void *[]", list(map(pointer, values))), *passed)

        change_together(cells, write)
        return True
