"""Softmax primitives along the last dimension."""

from __future__ import annotations

from typing import Final

from opdock_cpu.onednn.declarations import Alg, Arg, Prop
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.parts import Parts, over_batch
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["softmax"]

_ELEMENT: Final = 50
"""An element takes as long as so many multiply-adds of a product."""


def softmax(rows: int, columns: int, log: bool = False) -> Primitive | Parts:
    """Over (x, y): the probabilities of each row, or their logarithms."""
    algorithm = Alg.LOG_SOFTMAX if log else Alg.SOFTMAX

    def make(rows: int, threads: int | None) -> Primitive:
        data = dense((rows, columns))
        plan = Plan(
            "softmax_forward", Prop.INFERENCE, algorithm, data, data, 1, None, count=threads
        )
        return Primitive(plan, [(Arg.SRC, data), (Arg.DST, data)])

    return over_batch(rows, rows * columns * _ELEMENT, make)
