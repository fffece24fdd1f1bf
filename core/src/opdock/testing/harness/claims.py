"""What a device claims: op times element type, read from its kernel tables and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.kernels.select.selection import Entry
from opdock.kernels.select.table import Kernel
from opdock.testing.harness.sample import sample_sets_for
from opdock.testing.levels.device import DeviceUnderTest

__all__ = ["Claim", "claims", "numpy_dtype", "possible_dtypes", "refusals", "varied_attr"]

_VALUES = dtypes.NUMBERS | {dtypes.bool, dtypes.string}
OWN_PLUGIN = "conformance"
"""The name under which the suite adds kernels of its own; they are nobody's claim."""


@dataclass(frozen=True, order=True)
class Claim:
    """One op in one element type that a device says it can compute.

    Attributes:
        op: the op type.
        dtype: name of the element type.
        attr: the type attribute that takes it; empty for an op of fixed types.
        origin: "native" when the backend has a kernel of its own, else "portable".
    """

    op: str
    dtype: str
    attr: str = ""
    origin: str = "native"


def varied_attr(spec: OpSpec) -> str:
    """The type attribute over which an op's claims range; empty for an op of fixed types.

    It is the one that the op's samples name, else "T", else the first type attribute.
    """
    attrs = spec.definition.attrs
    sets = sample_sets_for(spec.name)
    for wanted in (*(s.vary for s in sets), "T"):
        if wanted in attrs and attrs[wanted].type == "type":
            return wanted
    return next((a.name for a in attrs.values() if a.type == "type"), "")


def possible_dtypes(spec: OpSpec) -> frozenset[DType]:
    """The element types that the op's definition allows, as far as samples can have them.

    Quantized types are among them where an op has no other, or its samples say so.
    """
    name = varied_attr(spec)
    if not name:
        return frozenset({_fixed_dtype(spec)})
    allowed = spec.definition.attrs[name].allowed
    named = frozenset[DType]().union(*(s.types for s in sample_sets_for(spec.name)))
    if named:
        return named if allowed is None else named & frozenset(allowed)
    if allowed is None:
        return _VALUES
    return _VALUES & frozenset(allowed) or dtypes.QUANTIZED & frozenset(allowed)


def _fixed_dtype(spec: OpSpec) -> DType:
    for arg in (*spec.definition.inputs, *spec.definition.outputs):
        if arg.dtype is not None and arg.dtype in _VALUES:
            return arg.dtype
    return dtypes.float32


def claims(
    dut: DeviceUnderTest, only: frozenset[str] = frozenset()
) -> tuple[list[Claim], list[str]]:
    """The device's claims in order of op and dtype.

    Args:
        dut: the device under test.
        only: op types; all when empty.

    Returns:
        The claims, and the kernels' op types that no op is registered for.
    """
    found: dict[tuple[str, str], Claim] = {}
    unknown: set[str] = set()
    for op in dut.kernels.ops():
        if only and op not in only:
            continue
        spec = registry.find(op)
        if spec is None:
            # A fused op ("vendor>Name") is proven by the fusion level.
            if ">" not in op:
                unknown.add(op)
            continue
        attr = varied_attr(spec)
        for entry in dut.kernels.entries(op):
            if not _counts(entry) or entry.kernel.refused:
                continue
            origin = "portable" if entry.kernel.is_portable else "native"
            for dtype in _admitted(entry.kernel, spec, attr, dut):
                key = (op, dtype.name)
                if key not in found or origin == "native":
                    found[key] = Claim(op, dtype.name, attr, origin)
    return sorted(found.values()), sorted(unknown)


def refusals(
    dut: DeviceUnderTest, only: frozenset[str] = frozenset()
) -> dict[tuple[str, str], str]:
    """(op, element type) -> why the device refuses the only kernel that it has for it.

    Args:
        dut: the device under test.
        only: op types; all when empty.
    """
    claimed = {(c.op, c.dtype) for c in claims(dut, only)[0]}
    found = {}
    for op in dut.kernels.ops():
        spec = registry.find(op) if not only or op in only else None
        for entry in dut.kernels.entries(op) if spec is not None else ():
            if entry.kernel.refused and _counts(entry):
                assert spec is not None
                for dtype in _admitted(entry.kernel, spec, varied_attr(spec), dut):
                    if (op, dtype.name) not in claimed:
                        found[op, dtype.name] = entry.kernel.refused
    return dict(sorted(found.items()))


def _counts(entry: Entry) -> bool:
    """Whether a kernel is the backend's or a portable one, and taken without being asked for."""
    label = entry.kernel.label and not entry.kernel.is_portable
    return entry.plugin != OWN_PLUGIN and not label


def _admitted(kernel: Kernel, spec: OpSpec, attr: str, dut: DeviceUnderTest) -> frozenset[DType]:
    possible = possible_dtypes(spec)
    if attr in kernel.dtypes:
        allowed = spec.definition.attrs[attr].allowed
        named = kernel.dtypes[attr]
        quantized = named & dtypes.QUANTIZED & frozenset(allowed or ())
        return (named & possible) | quantized
    return possible if dut.dtypes is None else possible & dut.dtypes


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """The dtype with which samples are made: storage integers for quantized types."""
    found = dtypes.as_dtype(dtype)
    if found.is_quantized:
        storage: np.dtype[np.generic] = found.np[0]
        return storage
    return found.np
