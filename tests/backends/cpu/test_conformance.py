"""The whole conformance suite on the CPU, against what passed before."""

from __future__ import annotations

import pytest

from tests.conformance import each, loses_nothing


@pytest.mark.slow
@pytest.mark.parametrize("levels", ["L0 L1 L4 L5 L6 ops", "L2", "L3"])
def test_every_claim_passes_and_nothing_is_lost(levels):
    loses_nothing("cpu:0", "backends/cpu/conformance.json", *each("--level", levels.split()))
