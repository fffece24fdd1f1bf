"""The script for a machine with a GPU: it parses, and says what it would do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "gpu.sh"


def bash(*args, **options):
    return subprocess.run(
        ["bash", *args], cwd=ROOT, capture_output=True, text=True, check=False, **options
    )


def test_it_parses():
    done = bash("-n", str(SCRIPT))
    assert done.returncode == 0, done.stderr


def test_a_dry_run_names_every_step_and_its_files_are_there():
    done = bash(str(SCRIPT), "--dry-run", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    programs = [word for line in lines for word in line.split() if word.endswith(".py")]
    assert programs and all((ROOT / p).is_file() for p in programs)
    seeds = {f"tests/programs/seeds/{p.name}" for p in (ROOT / "tests/programs/seeds").glob("*.py")}
    assert seeds <= set(programs)
    for part in ("doctor", "conformance --device cuda:0", "gpu.py", "cuda[cuda12,cudnn]"):
        assert part in done.stdout


def test_it_wants_a_driver_and_known_arguments(tmp_path):
    assert bash(str(SCRIPT), "--what").returncode == 2
    done = bash(str(SCRIPT), env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1 and "nvidia-smi is not found" in done.stderr


def test_the_measurements_run(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/gpu.py", "--device", "/device:CPU:0", "--quick"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {line[:32].strip() for line in done.stdout.splitlines()}
    assert {"product 256", "training step"} <= names
