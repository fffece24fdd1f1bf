"""The conformance suite as pytest tests; see :mod:`opdock.testing.pytest_plugin`."""

from __future__ import annotations

from typing import Any

from opdock.testing.pytest_plugin import judge


def test_conformance(conformance_unit: Any) -> None:
    """One unit of the suite on the device of ``--device``."""
    judge(conformance_unit)
