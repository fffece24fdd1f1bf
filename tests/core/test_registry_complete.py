"""Every op has a shape function, good and bad samples, a reference and a gradient, or a reason."""

from __future__ import annotations

from opdock.graph.nodes import registry
from opdock.testing.harness import registry_check
from opdock.testing.harness.misuse import misuses
from opdock.testing.levels.device import open_device
from opdock.testing.levels.forward import error_problem


def test_every_op_is_whole_or_exempt_with_a_reason() -> None:
    problems = list(registry_check.problems())
    assert not problems, f"{len(problems)} ops:\n" + "\n".join(problems)


def test_no_exemption_outlives_its_reason() -> None:
    stale = list(registry_check.stale_exemptions())
    assert not stale, "\n".join(stale)


def test_every_op_refuses_what_its_definition_and_shape_function_exclude() -> None:
    """Elements of other types, and shapes: known while the graph is built, or fed."""
    cpu, tried = open_device("cpu:0"), 0
    problems: list[str] = []
    for spec in registry.all_ops():
        for sample in misuses(spec):
            tried += 1
            if told := error_problem(cpu, spec.name, sample):
                problems.append(f"{spec.name} {sample.tag} {sample.phase}: {told}")
    assert tried > 1000
    assert not problems, "\n".join(problems)
