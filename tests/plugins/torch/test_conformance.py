"""The whole conformance suite on PyTorch, against what passed before."""

from __future__ import annotations

import json
import os

from tests.conformance import ROOT, loses_nothing

BASELINE = "plugins/torch/conformance.json"


def test_every_claim_passes_and_nothing_is_lost():
    """An op that stayed on the device and no longer does counts as lost."""
    # On a machine with accelerators the first devices are those.
    environ = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    loses_nothing("torch:0", BASELINE, env=environ)


def test_nine_ops_in_ten_stay_on_the_device():
    """Of those in the baseline: arithmetic. No device computes files, tables and queues."""
    ways = json.loads((ROOT / BASELINE).read_text(encoding="utf-8"))["ways"]
    ran = [way for way in ways.values() if way != "exempt"]
    assert len(ran) > 400
    assert ran.count("fallback") <= 0.1 * len(ran)
