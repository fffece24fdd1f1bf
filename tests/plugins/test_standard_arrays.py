"""Portable kernels on arrays that have what the array API standard asks for, or cannot change."""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.conformance import conforms, each, ops_of
from tests.plugins.conftest import Site

DEVICES: Final = ("standard:0", "standard:1", "standard:2")
_EVERY: Final = 30
"""Echo's ops, of which `make test` takes one in so many: NumPy's arrays prove them all."""


def _proves(site: Site, device: str, *words: str) -> None:
    environ = os.environ | {"PYTHONPATH": str(site.path), "OPDOCK_PLUGINS": "cpu,standard"}
    conforms(device, *words, env=environ)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_some_kernels_need_the_standard_alone(site: Site, device: str):
    """Devices and sessions on them, and ops of every family."""
    ops = ops_of("plugins/echo/conformance.json")[::_EVERY]
    _proves(site, device, *each("--level", ["L0", "L1", "L4", "L6"]))
    _proves(site, device, *each("--level", ["L2", "L3"]), *each("--op", ops))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_errors_that_need_values_of_the_device(site: Site, device: str):
    """What a message says of indices is read one by one: such arrays cannot be walked through."""
    ops = ["ApproximateEqual", "Gather", "GatherNd", "GatherTree", "ScatterNdUpdate"]
    ops += ["BoostedTreesMakeStatsSummary", "SparseReshape", "UnsortedSegmentSum"]
    _proves(site, device, "--level", "L2", *each("--op", ops))


@pytest.mark.prove
@pytest.mark.parametrize("device", DEVICES)
def test_every_claim_needs_the_standard_alone(site: Site, device: str):
    _proves(site, device)
