"""The same bits in every process and for any number of threads, on the device of a library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def differing(device: str, programs: int) -> str:
    """What `tools/same_bits.py` says of processes with one thread and with two; empty if equal."""
    words = ["--device", f"/device:{device}:0", "--threads", "1,2", "--programs", str(programs)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "tools/same_bits.py", *words],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    return "" if done.returncode == 0 and "; 0 differ" in done.stdout else done.stdout + done.stderr
