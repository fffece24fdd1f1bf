"""Instructions of mathematical functions as LLVM assembly, and the constants in them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["Body", "number"]


def number(value: float, kind: str) -> str:
    """A constant of type `float` or `double`, exactly."""
    if kind == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Body:
    """Instructions of a function of %x, and %y if it has two arguments, as they are written.

    Attributes:
        kind: "float" or "double", in which they compute.
        whole: the type of its bits.
        suffix: what intrinsics of that type end with.
        least: what may be left out of a sum of about 1.
    """

    def __init__(self, kind: str, widened: bool = False) -> None:
        self.kind = kind
        self.least = 2.0**-30 if widened else 2.0**-26 if kind == "float" else 2.0**-56
        self.whole = "i32" if kind == "float" else "i64"
        self.suffix = "f32" if kind == "float" else "f64"
        self.lines: list[str] = []

    def widened(self) -> Body:
        """The same function, in which what is put this way computes in double precision."""
        wide = Body("double", widened=True)
        wide.lines = self.lines
        return wide

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def c(self, value: float) -> str:
        """A constant."""
        return number(value, self.kind)

    def op(self, name: str, a: str, b: str) -> str:
        """A binary operation on two values."""
        return self.put(f"{name} {self.kind} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """A * b + c, with one rounding where the processor has an instruction for it.

        Elsewhere `llvm.fma` would be a call of C's function for each number, thirty times as slow;
        so constants whose products have to be exact have bits to spare.
        """
        k = self.kind
        return self.put(f"call {k} @llvm.fmuladd.{self.suffix}({k} {a}, {k} {b}, {k} {c})")

    def unary(self, name: str, a: str) -> str:
        """An intrinsic of one argument."""
        return self.put(f"call {self.kind} @llvm.{name}.{self.suffix}({self.kind} {a})")

    def test(self, how: str, a: str, b: str) -> str:
        """A comparison."""
        return self.put(f"fcmp {how} {self.kind} {a}, {b}")

    def pick(self, test: str, a: str, b: str) -> str:
        """A choice."""
        return self.put(f"select i1 {test}, {self.kind} {a}, {self.kind} {b}")

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """A polynomial by Horner's rule, highest power first."""
        value = self.c(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, x, self.c(c))
        return value

    def bits(self, x: str) -> str:
        """A number's bits."""
        return self.put(f"bitcast {self.kind} {x} to {self.whole}")

    def unbits(self, n: str) -> str:
        """The number that bits stand for."""
        return self.put(f"bitcast {self.whole} {n} to {self.kind}")
