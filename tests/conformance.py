"""`opdock conformance` as a process of its own, which a test runs and judges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def conformance(device: str, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command, run to its end; arguments as for `conforms`."""
    command = [sys.executable, "-m", "opdock.cli.main", "conformance", "--device", device, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def conforms(device: str, *words: str, **options: Any) -> None:
    """Fails with what the command says unless every claim passes.

    Args:
        device: "cpu:0".
        *words: further words of the command.
        **options: for `subprocess.run`.
    """
    done = conformance(device, *words, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def loses_nothing(device: str, baseline: str, *words: str, **options: Any) -> None:
    """Fails unless every claim passes, and everything that passed when the baseline was made."""
    conforms(device, "--baseline", str(ROOT / baseline), *words, **options)


def ops_of(baseline: str, level: str = "L2") -> list[str]:
    """The ops that a baseline has at a level, sorted."""
    passed = json.loads((ROOT / baseline).read_text(encoding="utf-8"))["passed"]
    return sorted({name.split("/")[1] for name in passed if name.startswith(f"{level}/")})


def each(option: str, values: list[str]) -> list[str]:
    """The words of an option that repeats."""
    return [word for value in values for word in (option, value)]
