"""The next thing to do for a backend: the first unit of a level that is not green, in words.

A new backend's tests go through the levels with it and stop where there is work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from opdock.graph.nodes import registry
from opdock.testing.harness import suite
from opdock.testing.harness.case import Unit
from opdock.testing.levels.device import DeviceUnderTest, open_device

__all__ = ["LEVELS", "WITH_SEGMENTS", "Step", "next_step"]

LEVELS: Final = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")
"""The levels that count, in the order in which they build on each other."""

_SEGMENTS: Final = "segments"
WITH_SEGMENTS: Final = (*LEVELS[:2], _SEGMENTS, *LEVELS[2:])
"""The same for a backend with a compiler, whose segments come right after the bring-up set."""

_DEVICE: Final = {
    "round-trip": "`upload` and `download`: every value comes back bit by bit",
    "unsupported-type": (
        "`upload` raises errors.UnimplementedError for a type that `dtypes` does not list"
    ),
    "mutate-after-upload": "`upload` copies: the caller may change the array once it returns",
    "fresh-download": "`download` gives a writable array that nobody else holds",
    "empty": "`empty` gives a buffer of the shape and type that was asked for",
    "many-buffers": "each upload gets memory of its own",
    "synchronize": "`synchronize` works whether or not there is work queued",
    "memory": "`memory` tells what is true, or None",
    "out-of-memory": "`empty` raises errors.ResourceExhaustedError for what does not fit",
    "close-and-reopen": "`close` gives everything back, and the device can be opened again",
    "two-devices": "two open devices do not disturb each other",
    "results-in-flight": (
        "a download waits for the work that was queued before it, and memory is not used again "
        "before that work is done"
    ),
    "odd-feeds": "whatever array a program is fed arrives as it is",
    "late-errors": "what fails after its kernel has returned is raised by who waits for it",
}
_FIRST: Final = "float32"


@dataclass(frozen=True)
class Step:
    """What is to be done next.

    Attributes:
        unit: the id of the unit that is not green, "L1/AddV2/float32".
        number, total: which of the level's units it is.
        what: what to write or to repair.
        now: what happens at present.
    """

    unit: str
    number: int
    total: int
    what: str
    now: str

    def __str__(self) -> str:
        return (
            f"Next, {self.unit} ({self.number} of {self.total}):\n"
            f"  to do: {self.what}\n"
            f"  now:   {self.now}"
        )


def next_step(device: str, level: str) -> Step | None:
    """The first unit of a level that is not green, or None.

    Args:
        device: the device's name, "mychip:0".
        level: one of `WITH_SEGMENTS`; "segments" is the test that the backend compiles them, which
            level L6 lets it do without.

    Raises:
        ValueError: there is no such level.
    """
    try:
        dut = open_device(device)
    except LookupError as e:
        what = "a device that opens: install the package (pip install -e .) and mend its probe"
        return Step("the device", 1, 1, what, str(e))
    if level == _SEGMENTS:
        units = suite.units(dut, ("L6",), (_SEGMENTS,))
    else:
        units = _in_order(level, suite.units(dut, (level,)))
    for number, unit in enumerate(units, 1):
        now = _trouble(level, unit)
        if now is not None:
            return Step(unit.id, number, len(units), _what(dut, level, unit), now)
    return None


def _in_order(level: str, units: Iterable[Unit]) -> list[Unit]:
    """Level L0 begins with the type that everything else is tested with."""
    found = list(units)
    if level == "L0":
        found.sort(key=lambda u: (u.op != "round-trip", u.dtype != _FIRST))
    return found


def _trouble(level: str, unit: Unit) -> str | None:
    results, _ = unit.results()
    for result in results:
        if result.status == "failed":
            return f"{result.case + ': ' if result.case else ''}{result.reason}"
        if level == _SEGMENTS or (level == "L1" and result.kind == "unclaimed"):
            return result.reason or None
    return None if results else "no case ran"


def _what(dut: DeviceUnderTest, level: str, unit: Unit) -> str:
    name = type(dut.device).__name__
    if level == _SEGMENTS:
        return "compile_segment: it returns a function that does what segment.run does"
    if level == "L0":
        about = f" for {unit.dtype}" if unit.dtype else ""
        return f"{name}{about}: {_DEVICE.get(unit.op, unit.op)}"
    if unit.op and registry.find(unit.op) is not None:
        if unit.claimed:
            return f"the kernel of {_signature(unit.op)} for {unit.dtype or 'every type'}"
        types = f"dtypes.{unit.dtype}"
        return (
            f"a kernel for {_signature(unit.op)} in {types}, such as\n"
            f'             @table.binder("{unit.op}", {_type_attr(unit.op)}={{{types}}})'
        )
    return f"what the test {unit.op!r} of this level shows"


def _type_attr(op: str) -> str:
    inputs = registry.get(op).definition.inputs
    return next((arg.type_attr for arg in inputs if arg.type_attr), "T")


def _signature(op: str) -> str:
    """An op with its arguments and results, such as MatMul(a, b) -> product."""
    definition = registry.get(op).definition
    inputs = ", ".join(arg.name for arg in definition.inputs)
    outputs = ", ".join(arg.name for arg in definition.outputs)
    return f"{op}({inputs}) -> {outputs}"
