"""Single levels: fusions, fallback, and what the plugin declares about a test."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock.kernels.select.table import Kernel
from opdock.plugin import FusionPattern, P, Requirement
from opdock.testing.harness import suite
from opdock.testing.harness.case import Result, Unit
from opdock.testing.harness.claims import claims
from opdock.testing.harness.exemptions import EXEMPT
from opdock.testing.levels import fusion
from opdock.testing.levels.device import DeviceUnderTest, open_device
from opdock.testing.levels.gradients import gradient_units


@pytest.fixture(scope="module")
def dut() -> DeviceUnderTest:
    return open_device("cpu:0")


def run(unit: Unit) -> Result:
    return unit.results()[0][-1]


PATTERNS = [
    P("Relu", P("BiasAdd", P("MatMul", "x", "w"), "b")),
    P("Relu", P("AddV2|Add", P("MatMul", "x", "w"), "b")),
    P("Mul", P("Tanh", "x"), "y"),
    P("BiasAdd", P("Conv2D", "x", "w", name="conv"), "b"),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_fusion_that_is_never_applied_fails(dut: DeviceUnderTest, pattern: P) -> None:
    declared = FusionPattern(name="fused", pattern=pattern, op="tests>NeverMatched")
    dut.kernels.add([Kernel(op="tests>NeverMatched", fn=lambda ctx, *inputs: None)], "conformance")
    opened = dataclasses.replace(dut.opened, fusions=(declared,))
    tested = dataclasses.replace(dut, opened=opened)
    (unit,) = fusion.fusion_units(tested, frozenset({declared.name}))
    result = run(unit)
    assert result.status == "failed"
    assert result.reason.startswith("the fusion was never applied")
    assert "the compiler did not match it" in result.reason


def test_a_fusion_without_a_kernel_fails(dut: DeviceUnderTest) -> None:
    declared = FusionPattern(name="fused", pattern=PATTERNS[0], op="tests>NoKernel")
    opened = dataclasses.replace(dut.opened, fusions=(declared,))
    tested = dataclasses.replace(dut, opened=opened)
    (unit,) = fusion.fusion_units(tested, frozenset({declared.name}))
    assert "has no kernel" in run(unit).reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_wrong_element_of_a_gradient_is_named(
    dut: DeviceUnderTest, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = registry.get("Neg").gradient_fn

    def wrong(op: Any, grad: Any) -> Any:
        found = right(op, grad)
        size = tf.size(found)
        last = tf.reshape(tf.one_hot(size - 1, size, dtype=found.dtype), tf.shape(found))
        return found * (1 - 2 * last)

    (unit,) = (u for u in gradient_units(dut, frozenset({"Neg"})) if u.dtype == dtype)
    assert {r.status for r in unit.results()[0]} == {"passed"}
    monkeypatch.setattr(registry.get("Neg"), "gradient_fn", wrong)
    results = [r for r in unit.results()[0] if r.case != "empty"]
    assert {r.status for r in results} == {"failed"}
    assert all("(1 of " in r.reason for r in results)


def test_the_suites_own_kernels_are_nobodys_claim(dut: DeviceUnderTest) -> None:
    dut.kernels.add([Kernel(op="NoOp", fn=lambda ctx: None)], "conformance")
    assert not [c for c in claims(dut)[0] if c.op == "NoOp"]


def test_a_test_may_be_declared_unsupported_or_a_bug(dut: DeviceUnderTest) -> None:
    records = (
        Requirement(name="memory", status="unsupported", reason="no counters"),
        Requirement(name="empty", status="bug", reason="off by one", issue="#3"),
    )
    declared = dataclasses.replace(dut, requirements=records)
    found: dict[str, Any] = {
        u.op: run(u) for u in suite.units(declared, ["L0"], ["memory", "empty", "synchronize"])
    }
    assert (found["memory"].status, found["memory"].reason) == ("skipped", "no counters")
    assert found["empty"].status == "failed"  # the bug does not show
    assert found["synchronize"].status == "passed"


def test_a_newer_unit_does_not_count_for_an_older_plugin(dut: DeviceUnderTest) -> None:
    spec = dataclasses.replace(dut.opened.probed.spec, api=(0, 9))
    probed = dataclasses.replace(dut.opened.probed, spec=spec)
    older = dataclasses.replace(dut, opened=dataclasses.replace(dut.opened, probed=probed))
    assert suite.units(older, ["L0"]) == []


def test_exemptions_have_reasons() -> None:
    assert all(len(exempt.reason) > 20 for exempt in EXEMPT.values())
