"""The whole conformance suite on PyTorch, against what passed before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_claim_passes_and_nine_ops_in_ten_stay_on_the_device(tmp_path):
    report = tmp_path / "report.json"
    # On a machine with accelerators the first devices are those.
    environ = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "opdock.cli.main", "conformance", "--device", "torch:0"),
            *("--baseline", str(ROOT / "plugins/torch/conformance.json")),
            *("--json", str(report)),
        ],
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    ways = json.loads(report.read_text())["ways"]
    assert not ways.get("failed")
    ran = sum(count for way, count in ways.items() if way != "exempt")
    assert ways["fallback"] <= 0.1 * ran, ways
