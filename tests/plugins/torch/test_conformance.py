"""The whole conformance suite on PyTorch, against what passed before."""

from __future__ import annotations

import json
import os

from opdock.graph.nodes import registry
from opdock.testing.levels.device import open_device
from opdock.testing.report.survey import on_arrays
from tests.conformance import ROOT, loses_nothing

BASELINE = "plugins/torch/conformance.json"


def test_every_claim_passes_and_nothing_is_lost():
    """An op that stayed on the device and no longer does counts as lost."""
    # On a machine with accelerators the first devices are those.
    environ = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    loses_nothing("torch:0", BASELINE, env=environ)


def test_nine_ops_in_ten_stay_on_the_device():
    """Of those that compute on what it holds: strings, files and records are the host's."""
    ways = json.loads((ROOT / BASELINE).read_text(encoding="utf-8"))["ways"]
    held = open_device("torch:0").dtypes
    ran = [way for op, way in ways.items() if on_arrays(registry.get(op), held)]
    assert len(ran) > 550
    assert ran.count("fallback") <= 0.1 * len(ran)
