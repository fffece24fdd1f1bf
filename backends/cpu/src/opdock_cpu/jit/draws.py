"""Philox's blocks, and the draws made of them, as generated loops in chunks.

A loop turns once a block. Normals are computed in double precision and rounded, like NumPy's in
`philox.py`: of 2**28 one may be rounded the other way. The polynomials of sine and cosine are those
of Cephes (S. L. Moshier, "Methods and Programs for Mathematical Functions", 1989; sin.c).
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock_cpu.crew import Loop, alone
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import caller, ffi, request
from opdock_cpu.jit.mathematics import definition, number
from opdock_cpu.jit.plan import Code, metadata
from opdock_cpu.jit.team import ATTRIBUTES, spread
from opdock_cpu.threads import threads

__all__ = ["COSINE", "SINE", "drawn"]

Array = npt.NDArray[Any]

_CHUNK: Final = 1 << 12
"""Blocks of a chunk: two are worth a second thread."""
_CHUNKS: Final = 64
_FEW: Final = 1 << 6
"""Blocks of normals that NumPy makes quickly."""
_SMALL: Final = 1 << 12
"""Blocks for which it pays to load LLVM, in one call or in many."""
_CALL: Final = 4
"""What a call of NumPy's costs beside, in blocks."""
_WORTH: Final = 1 << 17
"""Blocks that NumPy would take longer for than the compiler takes for the loop."""
SINE: Final = (1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
               -1.98412698295895385996e-4, 8.33333333332211858878e-3,
               -1.66666666666666307295e-1)  # fmt: skip
COSINE: Final = (-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
               2.48015872888517045348e-5, -1.38888888888730564116e-3,
               4.16666666666665929218e-2)  # fmt: skip
_QUARTER: Final = (1.57079632679489655800e00, 6.12323399573676603587e-17)
"""Pi / 2 in two parts."""
_STORED: Final = {"words": "i32", "unit": "float", "unit64": "double", "normal": "float"}
_TYPES: Final = {"i32": np.uint32, "float": np.float32, "double": np.float64}


# ---------------------------------------------------------------- what a loop computes
def _block(code: Code, key: str, low: str, high: str) -> list[str]:
    """The four words of the block at a counter."""
    c, k = [*_halves(code, low), *_halves(code, high)], _halves(code, key)
    for _ in range(10):
        products = []
        for word, multiplier in ((c[0], 0xD2511F53), (c[2], 0xCD9E8D57)):
            wide = code.put(f"zext i32 {word} to i64")
            products += _halves(code, code.put(f"mul i64 {wide}, {multiplier}"))
        low0, high0, low2, high2 = products
        first = code.put(f"xor i32 {code.put(f'xor i32 {high2}, {c[1]}')}, {k[0]}")
        third = code.put(f"xor i32 {code.put(f'xor i32 {high0}, {c[3]}')}, {k[1]}")
        c = [first, low2, third, low0]
        k = [code.put(f"add i32 {key}, {weyl}") for key, weyl in zip(
            k, (0x9E3779B9, 0xBB67AE85), strict=True)]  # fmt: skip
    return c


def _halves(code: Code, wide: str) -> list[str]:
    """The low and the high word."""
    over = code.put(f"lshr i64 {wide}, 32")
    return [code.put(f"trunc i64 {half} to i32") for half in (wide, over)]


def _unit(code: Code, word: str) -> str:
    """Uniform in [0, 1), as `philox.unit_float32`."""
    bits = code.put(f"or i32 {code.put(f'and i32 {word}, {0x7FFFFF}')}, {0x3F800000}")
    return code.put(f"fsub float {code.put(f'bitcast i32 {bits} to float')}, 1.0")


def _unit64(code: Code, high: str, low: str) -> str:
    """Uniform in [0, 1), as `philox.unit_float64`."""
    wide = code.put(f"zext i32 {code.put(f'and i32 {high}, {0xFFFFF}')} to i64")
    bits = code.put(f"or i64 {code.put(f'shl i64 {wide}, 32')}, {0x3FF0000000000000}")
    bits = code.put(f"or i64 {bits}, {code.put(f'zext i32 {low} to i64')}")
    return code.put(f"fsub double {code.put(f'bitcast i64 {bits} to double')}, 1.0")


def _pair(code: Code, first: str, second: str) -> list[str]:
    """Two normals, as `philox.box_muller`."""
    least = number(1e-7, "float")
    u1 = _unit(code, first)
    u1 = code.put(
        f"select i1 {code.put(f'fcmp olt float {u1}, {least}')}, float {least}, float {u1}"
    )
    log = code.put(f"call double @od_log_double(double {_wide(code, u1)})")
    log = code.put(f"fptrunc double {log} to float")
    squared = code.put(f"fmul float {log}, {number(-2.0, 'float')}")
    length = code.put(f"call float @llvm.sqrt.f32(float {squared})")
    turn = code.put(f"fmul double {_wide(code, _unit(code, second))}, {_c(2.0 * np.pi)}")
    angle = _wide(code, code.put(f"fptrunc double {turn} to float"))
    return [
        code.put(f"fmul float {code.put(f'fptrunc double {part} to float')}, {length}")
        for part in _sine_and_cosine(code, angle)
    ]


def _wide(code: Code, value: str) -> str:
    return code.put(f"fpext float {value} to double")


def _c(value: float) -> str:
    return number(value, "double")


def _sine_and_cosine(code: Code, x: str) -> list[str]:
    """Of an angle between 0 and 2 pi."""

    def fma(a: str, b: str, c: str) -> str:
        return code.put(f"call double @llvm.fmuladd.f64(double {a}, double {b}, double {c})")

    def poly(z: str, coefficients: tuple[float, ...]) -> str:
        value = _c(coefficients[0])
        for c in coefficients[1:]:
            value = fma(value, z, _c(c))
        return value

    turns = code.put(f"fmul double {x}, {_c(2.0 / np.pi)}")
    turns = code.put(f"call double @llvm.rint.f64(double {turns})")
    rest = fma(turns, _c(-_QUARTER[0]), x)
    rest = fma(turns, _c(-_QUARTER[1]), rest)
    z = code.put(f"fmul double {rest}, {rest}")
    sine = fma(code.put(f"fmul double {poly(z, SINE)}, {z}"), rest, rest)
    cosine = fma(code.put(f"fmul double {poly(z, COSINE)}, {z}"), z, fma(z, _c(-0.5), _c(1.0)))
    quarter = code.put(f"fptosi double {turns} to i32")
    odd = code.put(f"icmp ne i32 {code.put(f'and i32 {quarter}, 1')}, 0")
    found = []
    for turned, straight, across in ((0, sine, cosine), (1, cosine, sine)):
        value = code.put(f"select i1 {odd}, double {across}, double {straight}")
        half = code.put(f"and i32 {code.put(f'add i32 {quarter}, {turned}')}, 2")
        less = code.put(f"fneg double {value}")
        back = code.put(f"icmp ne i32 {half}, 0")
        found.append(code.put(f"select i1 {back}, double {less}, double {value}"))
    return found


def _values(code: Code, kind: str, w: list[str]) -> list[str]:
    if kind == "words":
        return w
    if kind == "unit":
        return [_unit(code, word) for word in w]
    if kind == "unit64":
        return [_unit64(code, w[0], w[1]), _unit64(code, w[2], w[3])]
    return [*_pair(code, w[0], w[1]), *_pair(code, w[2], w[3])]


# ---------------------------------------------------------------- the module
_POINTERS: Final = ("y", "place", "index")


def _module(entry: str, kind: str, chosen: bool) -> str:
    """The assembly; the entry point takes results, place, index and the words of a call.

    The place is int64: the key, the counter's low and high half, and how many blocks are drawn.
    The index is read where they are `chosen`: it says how far behind the place each one is.
    """
    code = Code()
    stored = _STORED[kind]
    key, low, high = (_at_place(code, "%place", i) for i in range(3))
    code.add(f"br i1 {code.put('icmp slt i64 %from, %to')}, label %turns, label %done")
    code.block("turns")
    with code.loop("%from", "%to", parallel=True) as turn:
        far = turn.index
        if chosen:
            far = code.put_free(f"load i64, ptr {code.at('i64', '%index', far)}")
        here = code.put(f"add i64 {low}, {far}")
        carry = code.put(f"zext i1 {code.put(f'icmp ult i64 {here}, {low}')} to i64")
        block = _block(code, key, here, code.put(f"add i64 {high}, {carry}"))
        values = _values(code, kind, block)
        first = code.put(f"mul i64 {turn.index}, {len(values)}")
        for i, value in enumerate(values):
            cell = code.at(stored, "%y", code.put(f"add i64 {first}, {i}"))
            code.store(stored, value, cell, free=True)
    code.add("br label %done")
    code.block("done")
    code.add("ret void")
    pointers = ", ".join(f"ptr noalias %{p}" for p in _POINTERS)
    core = code.function(f"define internal void @core({pointers}, i64 %from, i64 %to) {ATTRIBUTES}")
    normal = [definition("log", "double")] * (kind == "normal")
    return "\n".join([*normal, core, spread(entry, _POINTERS, (1, 3)), metadata()])


def _at_place(code: Code, place: str, at: int) -> str:
    return code.put(f"load i64, ptr {code.at('i64', place, str(at))}")


# ---------------------------------------------------------------- calls
class Drawn:
    """A kind of draw: "words", "unit" and "normal" (four a block) or "unit64" (two).

    Args:
        kind: which.
        chosen: whether blocks are named one by one.
    """

    def __init__(self, kind: str, chosen: bool = False) -> None:
        self._function = request(lambda name: _module(name, kind, chosen))
        self._dtype = _TYPES[_STORED[kind]]
        self._each = 2 if kind == "unit64" else 4
        self._loop = Loop()
        self._call: Any = None

    def __call__(self, key: int, counter: int, blocks: int | Array) -> Array | None:
        """The draws of some blocks, or None while there is no code.

        Args:
            key: 64 bits.
            counter: 128 bits, those of the first block.
            blocks: how many there are; where they are chosen, how far behind the first each one
                is (int64, not negative).

        Returns:
            An array `[blocks, 4]`, of "unit64" `[blocks, 2]`.
        """
        count = blocks if isinstance(blocks, int) else len(blocks)
        if self._function.address is None:
            if count < _WORTH or self._function.failure:
                return None
            self._function.compile()
            return self(key, counter, blocks)
        if self._call is None:
            self._call = caller(3)(self._function.address)
        out = np.empty((count, self._each), self._dtype)
        words = (key & _MASK, counter & _MASK, counter >> 64 & _MASK, count)
        place = np.array(words, np.uint64)
        index = place if isinstance(blocks, int) else np.ascontiguousarray(blocks, np.int64)
        pointers = [ffi().from_buffer(a) for a in (out, place, index)]
        chunks = min(_CHUNKS, count // _CHUNK)
        if chunks < 2:
            self._call(*pointers, alone())
            return out
        held = self._loop.begin(chunks, threads())
        self._call(*pointers, held.address)
        self._loop.end(held)
        return out


_MASK: Final = (1 << 64) - 1


_spent = 0
"""What NumPy drew in this process, about, while LLVM was not loaded."""


def drawn(kind: str, key: int, counter: int, blocks: int | Array) -> Array | None:
    """The draws of a kind by generated code; None where NumPy has to make them."""
    count = blocks if isinstance(blocks, int) else len(blocks)
    global _spent
    if not llvm.started():
        _spent += count + _CALL
        if _spent < _SMALL:
            return None
    # Few normals come from NumPy always, as code rounds some otherwise, and is not there at once.
    if count < (_FEW if kind == "normal" else 1) or not llvm.available():
        return None
    return _kind(kind, not isinstance(blocks, int))(key, counter, blocks)


@functools.cache
def _kind(kind: str, chosen: bool) -> Drawn:
    return Drawn(kind, chosen)
