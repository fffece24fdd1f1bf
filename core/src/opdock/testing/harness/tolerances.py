"""How close a device must come to the oracle: data per dtype, forward and gradient.

A case is close when ``|actual - expected| <= atol + rtol * |expected|``; integers, bools and
strings must be equal.  The table is widened only by a sample's own ``tol`` or by a plugin's record,
both with a reason, and every widened case is shown in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FORWARD", "GRADIENT", "Mismatch", "Tolerance", "compare", "tolerance_for"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """Relative and absolute slack, and why it is wider than the table when it is."""

    rtol: float
    atol: float
    reason: str = ""


@dataclass(frozen=True)
class Mismatch:
    """The first thing that differs between what came and what should have come."""

    text: str


FORWARD: Mapping[str, Tolerance] = {
    "float16": Tolerance(5e-3, 5e-3),
    "bfloat16": Tolerance(2e-2, 2e-2),
    "float32": Tolerance(2e-5, 2e-5),
    "float64": Tolerance(1e-10, 1e-10),
    "complex64": Tolerance(2e-5, 2e-5),
    "complex128": Tolerance(1e-10, 1e-10),
}
"""Slack of an op's outputs against the oracle."""

GRADIENT: Mapping[str, Tolerance] = {
    "float16": Tolerance(2e-2, 2e-2),
    "bfloat16": Tolerance(8e-2, 8e-2),
    "float32": Tolerance(1e-3, 1e-3),
    "float64": Tolerance(1e-6, 1e-6),
    "complex64": Tolerance(1e-3, 1e-3),
    "complex128": Tolerance(1e-6, 1e-6),
}
"""Slack of symbolic gradients against numeric differentiation of the oracle."""

_EXACT = Tolerance(0.0, 0.0)


def tolerance_for(
    dtype: npt.DTypeLike,
    table: Mapping[str, Tolerance] = FORWARD,
    widened: tuple[float, float] | None = None,
    reason: str = "",
) -> Tolerance:
    """The slack that holds for one output.

    Args:
      dtype: numpy dtype of the output.
      table: ``FORWARD`` or ``GRADIENT``.
      widened: a sample's own ``(rtol, atol)``; it can only widen, never tighten.
      reason: why it is widened.
    """
    base = table.get(np.dtype(dtype).name, _EXACT)
    if widened is None or (widened[0] <= base.rtol and widened[1] <= base.atol):
        return base
    return Tolerance(
        max(base.rtol, widened[0]), max(base.atol, widened[1]), reason or "set by the sample"
    )


def compare(
    actual: Any, expected: Any, tolerance: Tolerance, name: str = "output"
) -> Mismatch | None:
    """Compares one output; None when it is right.

    Args:
      actual: what the device gave.
      expected: what the oracle gave, already cast to the declared dtype.
      tolerance: the slack.
      name: what to call the value in the message.
    """
    got, want = np.asarray(actual), np.asarray(expected)
    if got.dtype != want.dtype:
        return Mismatch(f"{name}: dtype {got.dtype.name}, expected {want.dtype.name}")
    if got.shape != want.shape:
        return Mismatch(f"{name}: shape {got.shape}, expected {want.shape}")
    if got.size == 0:
        return None
    if got.dtype.kind in "OSUbiu":
        wrong = np.asarray(got != want, np.bool_)
    else:
        wrong = _far(_wide(got), _wide(want), tolerance)
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    text = (
        f"{name}{list(where)}: got {got[where]!r}, expected {want[where]!r} "
        f"({int(wrong.sum())} of {got.size} wrong"
    )
    if got.dtype.kind not in "OSU":
        text += f"; rtol {tolerance.rtol:g}, atol {tolerance.atol:g}"
    return Mismatch(text + ")")


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _far(got: Array, want: Array, tolerance: Tolerance) -> npt.NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        near = np.abs(got - want) <= tolerance.atol + tolerance.rtol * np.abs(want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
    return np.asarray(~(near | same), np.bool_)
