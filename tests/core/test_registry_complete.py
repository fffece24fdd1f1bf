"""Every op has a shape function, samples, a reference and a gradient, or a typed reason."""

from __future__ import annotations

from opdock.testing.harness import registry_check


def test_every_op_is_whole_or_exempt_with_a_reason() -> None:
    problems = list(registry_check.problems())
    assert not problems, f"{len(problems)} ops:\n" + "\n".join(problems)


def test_no_exemption_outlives_its_reason() -> None:
    stale = list(registry_check.stale_exemptions())
    assert not stale, "\n".join(stale)
