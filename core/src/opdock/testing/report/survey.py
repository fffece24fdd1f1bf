"""The survey: every op of the registry in a session that prefers the device, and how each ran.

What the device has no kernel for is decomposed or falls back to another device; the survey counts
these ways apart and checks the values all the same, copies included.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.case import Result, Skip, Unit
from opdock.testing.harness.claims import Claim, numpy_dtype, possible_dtypes, varied_attr
from opdock.testing.harness.exemptions import exemption
from opdock.testing.harness.sample import sample_sets_for, samples_for
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import ForwardRunner, without

__all__ = ["WAYS", "best_way", "on_arrays", "survey_units"]

WAYS = ("native", "portable", "decomposed", "builtin", "removed", "fallback")
"""How an op can run, best first; "removed" when a compiler pass made it unnecessary."""

_PREFERRED = (dtypes.float32, dtypes.int32, dtypes.bool, dtypes.string, dtypes.complex64)


def survey_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per registered op, in one element type and with the compiler's passes on."""
    for spec in registry.all_ops():
        if not only or spec.name in only:
            yield Unit(
                "ops", spec.name, "",
                lambda spec=spec: _results(dut, spec),  # type: ignore[misc]
                claimed=False,
            )  # fmt: skip


def _results(dut: DeviceUnderTest, spec: OpSpec) -> list[Result]:
    exempt = exemption(spec.name)
    if exempt is not None and exempt.covers("samples"):
        raise Skip("exempt", f"{exempt.kind}: {exempt.reason}")
    if not sample_sets_for(spec.name):
        return [Result("ops", spec.name, "", "", "failed", "the op has no samples")]
    for dtype in _candidates(spec):
        if next(iter(samples_for(spec.name, numpy_dtype(dtype.name))), None) is not None:
            claim = Claim(spec.name, dtype.name, varied_attr(spec))
            with without(["segments"]):  # in which no op has a way of its own
                return ForwardRunner(
                    dut, claim, spec, "ops", ("plain",), soft=True, optimize=True
                ).run()
    return [Result("ops", spec.name, "", "", "failed", "no element type has samples")]


def _candidates(spec: OpSpec) -> list[DType]:
    possible = possible_dtypes(spec)
    rest = sorted(possible - set(_PREFERRED), key=lambda d: d.name)
    return [d for d in _PREFERRED if d in possible] + rest


def on_arrays(spec: OpSpec, held: Container[DType] | None) -> bool:
    """Whether a device could hold all that an op takes and gives, in some of the op's types.

    Args:
        spec: the op.
        held: the element types of the device's arrays; None for all but strings.
    """
    attrs = spec.definition.attrs

    def fits(kinds: Iterable[DType]) -> bool:
        # The handle of a variable, whose value is an array.
        return any(t is dtypes.resource or _holds(held, t) for t in kinds)

    args = (*spec.definition.inputs, *spec.definition.outputs)
    named = [attrs[a.type_attr].allowed for a in args if a.type_attr]
    fixed = [(a.dtype,) for a in args if a.dtype is not None]
    return all(fits(kinds) for kinds in (*named, *fixed) if kinds is not None)


def _holds(held: Container[DType] | None, dtype: DType) -> bool:
    return dtype is not dtypes.string if held is None else dtype in held


def best_way(results: list[Result]) -> str:
    """How an op ran: the best way of any of its samples that passed; empty when none did."""
    ways = {r.how for r in results if r.status == "passed"}
    return next((way for way in WAYS if way in ways), "")
