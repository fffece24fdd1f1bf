"""The whole conformance suite on the CPU, against what passed before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_claim_passes_and_nothing_is_lost(tmp_path):
    report = tmp_path / "report.md"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "opdock.cli.main", "conformance", "--device", "cpu:0"),
            *("--baseline", str(ROOT / "backends/cpu/conformance.json")),
            *("--markdown", str(report)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "MatMul" in report.read_text()
