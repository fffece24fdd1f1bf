"""Conformance of JAX's CPU, against what passed before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opdock.graph.nodes import registry
from opdock.testing.levels.device import open_device
from opdock.testing.report.survey import on_arrays
from opdock_jax.kernels import table
from tests.conformance import each, loses_nothing, ops_of

ROOT = Path(__file__).resolve().parents[3]
BASELINE = "plugins/jax/conformance.json"
_EVERY = 32


def test_what_is_its_own_passes():
    """The device, clusters, and the session on it."""
    loses_nothing("jax:0", BASELINE, *each("--level", ["L0", "L1", "L4", "L5", "L6"]))


def test_its_kernels_pass_and_some_of_those_that_it_gets():
    """Its own ops, and of the portable ones some: each shape is compiled for, which takes time."""
    own = sorted({kernel.op for kernel in table if ">" not in kernel.op})
    ops = own + [op for op in ops_of(BASELINE)[::_EVERY] if op not in own]
    loses_nothing("jax:0", BASELINE, *each("--level", ["L2", "L3", "ops"]), *each("--op", ops))


def test_nine_ops_in_ten_stay_on_the_device():
    ways = json.loads((ROOT / BASELINE).read_text(encoding="utf-8"))["ways"]
    held = open_device("jax:0").dtypes
    ran = [way for op, way in ways.items() if on_arrays(registry.get(op), held)]
    assert len(ran) > 550
    assert ran.count("fallback") <= 0.1 * len(ran)


@pytest.mark.prove
def test_every_claim_passes_and_nothing_is_lost():
    loses_nothing("jax:0", BASELINE)
