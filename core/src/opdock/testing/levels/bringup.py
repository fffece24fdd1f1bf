"""Level L1: the ops that a new backend needs first, enough to train a linear model and an MLP."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.kernels.select.siblings import sibling_hint
from opdock.testing.harness.case import Result, Skip, Unit
from opdock.testing.harness.claims import claims
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import claim_results

__all__ = ["BRING_UP", "bring_up_units"]

BRING_UP: tuple[tuple[str, str], ...] = (
    ("AddV2", "float32"), ("Add", "float32"), ("Sub", "float32"), ("Mul", "float32"),
    ("RealDiv", "float32"), ("Neg", "float32"), ("Exp", "float32"), ("Log", "float32"),
    ("Sqrt", "float32"), ("Square", "float32"), ("Tanh", "float32"), ("Sigmoid", "float32"),
    ("Relu", "float32"), ("ReluGrad", "float32"), ("MatMul", "float32"), ("BiasAdd", "float32"),
    ("Sum", "float32"), ("Mean", "float32"), ("Max", "float32"), ("ArgMax", "float32"),
    ("Equal", "float32"), ("Greater", "float32"), ("Cast", "float32"), ("Reshape", "float32"),
    ("Transpose", "float32"), ("Softmax", "float32"),
)  # fmt: skip
"""(op, element type) of the bring-up set."""


def bring_up_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per op of the set, in the order in which a backend might write them."""
    wanted = frozenset(op for op, _ in BRING_UP if not only or op in only)
    # Those of the whole set tell of siblings, which may serve an op that has no kernel.
    found = {(c.op, c.dtype): c for c in claims(dut)[0]} if wanted else {}
    for op, dtype in BRING_UP:
        if op not in wanted:
            continue
        claim = found.get((op, dtype))

        def run(op: str = op, dtype: str = dtype) -> list[Result]:
            claim = found.get((op, dtype))
            if claim is None:
                hint = sibling_hint(op, {name for name, kind in found if kind == dtype})
                told = f", but {hint}" if hint else ""
                raise Skip("unclaimed", f"the device has no kernel for {op} of {dtype}{told}")
            return claim_results(dut, claim, "L1", ("plain",))

        yield Unit("L1", op, dtype, run, claimed=claim is not None)
