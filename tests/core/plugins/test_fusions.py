"""A device's fusion patterns, some of them loaded when a program may have them."""

from __future__ import annotations

from typing import Any

import pytest

from opdock.plugin import BackendSpec, FusionModule, FusionPattern, KernelModule, P
from opdock.plugins.patterns import Fusions, LaterFusions


def pattern(name: str, *ops: str, benefit: int = 1) -> FusionPattern:
    made: P | str = "x"
    for op in ops:
        made = P(op, made)
    assert isinstance(made, P)
    return FusionPattern(name=name, pattern=made, op=f"made>{name}", benefit=benefit)


def test_patterns_are_loaded_when_one_of_their_ops_is_there():
    loads: list[str] = []

    def later() -> list[FusionPattern]:
        loads.append("later")
        return [pattern("great", "MatMul", "Relu", benefit=9)]

    found = Fusions([pattern("small", "Exp")], [LaterFusions("m:p", frozenset({"MatMul"}), later)])
    assert [p.name for p in found.among({"Exp", "Relu"})] == ["small"]
    assert loads == []
    assert [p.name for p in found.among({"MatMul"})] == ["great", "small"]
    assert [p.name for p in found.among({"MatMul"})] == ["great", "small"]
    assert len(found) == 2 and loads == ["later"]


def test_whoever_asks_for_all_gets_all():
    later = LaterFusions("m:p", frozenset({"MatMul"}), lambda: [pattern("great", "MatMul")])
    assert [p.name for p in Fusions([], [later])] == ["great"]


def test_a_pattern_about_other_ops_than_declared_is_an_error():
    later = LaterFusions("m:p", frozenset({"MatMul"}), lambda: [pattern("odd", "Add|MatMul")])
    with pytest.raises(ValueError, match="'m:p' has the fusion 'odd', which is about none of the"):
        Fusions([], [later]).among({"MatMul"})


def spec(**parts: Any) -> BackendSpec:
    return BackendSpec(
        name="made", device_type="MADE", own_type="MADE", api=(1, 0), probe="m:p", device="m:d",
        **parts,
    )  # fmt: skip


def test_a_backend_names_modules_with_their_ops():
    module = KernelModule(table="made.sums:table", ops=["AddN"])
    assert module.ops == {"AddN"}
    assert spec(kernels=["made.all:table", module]).kernels == ("made.all:table", module)
    with pytest.raises(TypeError, match="kernels must be a string"):
        spec(kernels=[FusionModule(patterns="made.sums:patterns", ops={"AddN"})])
    with pytest.raises(ValueError, match="KernelModule.table must be a dotted name"):
        KernelModule(table="made", ops={"AddN"})
    with pytest.raises(TypeError, match="KernelModule.ops must be a set of names, got 'AddN'"):
        KernelModule(table="made.sums:table", ops="AddN")
