"""Portable kernels on arrays that have what the array API standard asks for, or cannot change."""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.conformance import conforms, each, ops_of
from tests.plugins.conftest import Site

DEVICES: Final = ("standard:0", "standard:1", "standard:2")
_EVERY: Final = 60
"""Echo's ops, of which `make test` takes one in so many, others of each device: NumPy's arrays
prove them all."""


def _proves(site: Site, device: str, *words: str) -> None:
    environ = os.environ | {"PYTHONPATH": str(site.path), "OPDOCK_PLUGINS": "cpu,standard"}
    conforms(device, *words, env=environ)


ERRORS: Final = (
    "ApproximateEqual", "Gather", "GatherNd", "GatherTree", "ScatterNdUpdate",
    "BoostedTreesMakeStatsSummary", "SparseReshape", "UnsortedSegmentSum",
)  # fmt: skip
"""What their messages say of indices is read one by one: such arrays cannot be walked through."""


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_some_kernels_need_the_standard_alone(site: Site, device: str):
    """Devices and ops of some families, those whose errors need values; sessions on one of them."""
    of_sessions = ["L4", "L6"] if device == DEVICES[0] else []
    ops = ops_of("plugins/echo/conformance.json")[DEVICES.index(device) :: _EVERY]
    _proves(site, device, *each("--level", ["L0", "L1", *of_sessions]))
    _proves(site, device, *each("--level", ["L2", "L3"]), *each("--op", [*ops, *ERRORS]))


@pytest.mark.prove
@pytest.mark.parametrize("device", DEVICES)
def test_every_claim_needs_the_standard_alone(site: Site, device: str):
    _proves(site, device)
