"""The suite under pytest: `pytest --pyargs opdock.testing --device cpu:0`.

One test per unit, so that `-k`, `-x`, xdist and reports work as everywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opdock.testing.harness.case import Unit

__all__ = ["pytest_addoption", "pytest_generate_tests"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--device`, `--opdock-level` and `--opdock-op`."""
    group = parser.getgroup("opdock", "opdock conformance")
    text = "prove this device, for instance cpu:0"
    try:
        group.addoption("--device", "--opdock-device", dest="opdock_device", help=text)
    except ValueError:  # another plugin has a --device of its own
        group.addoption("--opdock-device", dest="opdock_device", help=text)
    group.addoption(
        "--opdock-level", action="append", default=[], help="a level, L0 ... L6 or ops; repeatable"
    )
    group.addoption(
        "--opdock-op", action="append", default=[], help="an op type or test name; repeatable"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives each unit of the suite to the tests that take a `conformance_unit`."""
    if "conformance_unit" not in metafunc.fixturenames:
        return
    option = metafunc.config.option
    if not option.opdock_device:
        raise pytest.UsageError("opdock.testing needs a device: add --device cpu:0")
    found = _units(option.opdock_device, option.opdock_level, option.opdock_op)
    metafunc.parametrize("conformance_unit", found, ids=[u.id for u in found])


def _units(device: str, levels: Sequence[str], ops: Sequence[str]) -> list[Unit]:
    from opdock.testing.harness.suite import units
    from opdock.testing.levels.device import open_device

    try:
        return units(open_device(device), levels, ops)
    except (LookupError, ValueError) as e:
        raise pytest.UsageError(str(e)) from None


def judge(unit: Any) -> None:
    """Runs a unit as a test: fails, skips or passes as the unit does."""
    from opdock.testing.report.report import UnitOutcome

    results, seconds = unit.results()
    outcome = UnitOutcome.of(unit, results, seconds)
    bad = [f"{r.case or r.op}: {r.reason}" for r in outcome.results if r.status == "failed"]
    if bad:
        pytest.fail("\n".join(bad), pytrace=False)
    if outcome.status == "known-bug":
        pytest.xfail(outcome.results[0].reason)
    if outcome.status == "skipped":
        first = outcome.results[0]
        pytest.skip(f"{first.kind}: {first.reason}")
