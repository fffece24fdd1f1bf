"""Softmax primitives along the last dimension."""

from __future__ import annotations

from typing import Final

from opdock_cpu.onednn.declarations import Alg, Arg, Prop
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.primitive import Plan, Primitive

__all__ = ["softmax"]

_SHARED_FROM: Final = 30_000


def softmax(rows: int, columns: int, log: bool = False) -> Primitive:
    """Over (x, y): the probabilities of each row, or their logarithms."""
    data = dense((rows, columns))
    plan = Plan(
        "softmax_forward", Prop.INFERENCE, Alg.LOG_SOFTMAX if log else Alg.SOFTMAX, data, data, 1,
        None, count=1 if rows * columns < _SHARED_FROM else None,
    )  # fmt: skip
    return Primitive(plan, [(Arg.SRC, data), (Arg.DST, data)])
