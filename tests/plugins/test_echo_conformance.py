"""Conformance of echo, against what passed before."""

from __future__ import annotations

import pytest

from opdock_echo.kernels import table
from tests.conformance import each, loses_nothing, ops_of

BASELINE = "plugins/echo/conformance.json"
_EVERY = 12


@pytest.mark.slow
def test_what_is_its_own_passes():
    """The device and the session on it."""
    loses_nothing("echo:0", BASELINE, *each("--level", ["L0", "L1", "L4", "L5", "L6"]))


@pytest.mark.slow
def test_its_kernels_pass_and_some_of_those_that_it_gets():
    """Its own ops, and of the portable ones every twelfth: the CPU proves them all."""
    own = sorted({kernel.op for kernel in table if ">" not in kernel.op})
    assert own == ["AddV2", "MatMul", "Relu"]
    ops = own + [op for op in ops_of(BASELINE)[::_EVERY] if op not in own]
    loses_nothing("echo:0", BASELINE, *each("--level", ["L2", "L3", "ops"]), *each("--op", ops))


@pytest.mark.prove
def test_every_claim_passes_and_nothing_is_lost():
    loses_nothing("echo:0", BASELINE)
