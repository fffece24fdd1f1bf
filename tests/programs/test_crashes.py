"""Training that is killed and goes on ends as if nobody had touched it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "crash_training.py"


@pytest.mark.parametrize(
    ("kind", "source", "kills"),
    [
        ("estimated", "saved", 3), ("monitored", "fed", 3), ("supervised", "saved", 3),
        *(
            pytest.param(kind, source, 200, marks=pytest.mark.prove)
            for kind in ("estimated", "monitored", "supervised")
            for source in ("saved", "fed")
        ),
    ],
)  # fmt: skip
def test_weights_survive_kills(kind: str, source: str, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--kind", kind, "--kills", str(kills), "--seed", "3",
         "--input", source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{kind}: killed" in done.stdout
