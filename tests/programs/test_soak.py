"""What `make soak` opens and drops leaves nothing behind, after few rounds as after many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "soak.py"


def test_every_kind_of_round_both_ways_leaves_nothing():
    done = subprocess.run(
        [sys.executable, str(TOOL), "--rounds", "40"], capture_output=True, text=True, check=True
    )
    first, last, verdict = done.stdout.splitlines()
    assert first.startswith("after 20 rounds")
    assert last.startswith("after 40 rounds")
    assert verdict == "nothing has grown"
