"""The whole conformance suite on PyTorch, against what passed before."""

from __future__ import annotations

import json
import os

from tests.conformance import loses_nothing


def test_every_claim_passes_and_nine_ops_in_ten_stay_on_the_device(tmp_path):
    report = tmp_path / "report.json"
    # On a machine with accelerators the first devices are those.
    environ = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    baseline = "plugins/torch/conformance.json"
    loses_nothing("torch:0", baseline, "--json", str(report), env=environ)
    ways = json.loads(report.read_text())["ways"]
    assert not ways.get("failed")
    ran = sum(count for way, count in ways.items() if way != "exempt")
    assert ways["fallback"] <= 0.1 * ran, ways
