"""Proves that what opdock writes TensorFlow reads, and the other way.

    python tools/interop.py [--python PYTHON]

`make interop` calls it. TensorFlow goes into an environment of its own, build/tensorflow, unless
`--python` names one that has it. Each library writes checkpoints, graphs, SavedModels, records and
event files (`tools/interop_cases.py`), and each reads those of the other. The exit status is 1
where a case fails, and 3 where pip cannot install TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build/tensorflow"
CASES = ROOT / "tools/interop_cases.py"
REQUIREMENT = "tensorflow-cpu==2.21.0"
NOT_INSTALLED = 3


def installed() -> Path | None:
    """The interpreter of TensorFlow's environment, made when missing; None if pip fails."""
    python = HOME / "bin/python"
    known = HOME / "requirement"
    if not known.is_file() or known.read_text(encoding="utf-8") != REQUIREMENT:
        venv.create(HOME, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        if subprocess.run([*pip, REQUIREMENT], check=False).returncode:
            return None
        known.write_text(REQUIREMENT, encoding="utf-8")
    return python


def run(python: Path, library: str, what: str, folder: Path) -> dict[str, str]:
    """What is wrong with each case; nothing, if the text is empty.

    Raises:
        RuntimeError: the library did not get so far as to tell.
    """
    command = [python, CASES, library, what, folder]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    if done.returncode:
        raise RuntimeError(f"{library} cannot {what}:\n{done.stderr}")
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def prove(own: Path, theirs: Path) -> dict[str, list[str]]:
    """For each case what is wrong with the four steps: each library writes, the other reads."""
    sides = {"opdock": own, "tensorflow": theirs}
    found: dict[str, list[str]] = {}
    for writer, reader in (("opdock", "tensorflow"), ("tensorflow", "opdock")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for library, what in ((writer, "write"), (reader, "read")):
                for case, wrong in run(sides[library], library, what, folder).items():
                    found.setdefault(case, []).append(wrong)
    return found


def table(found: dict[str, list[str]]) -> str:
    """A line for each case."""
    lines = ["| case | opdock to TensorFlow | TensorFlow to opdock |", "| --- | --- | --- |"]
    for case, wrong in found.items():
        cells = ["fails" if any(wrong[i : i + 2]) else "read" for i in (0, 2)]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--python", type=Path, help="an interpreter that has TensorFlow")
    args = p.parse_args(words)
    theirs = args.python or installed()
    if theirs is None:
        print(f"NOT PROVEN: pip cannot install {REQUIREMENT} here", file=sys.stderr)
        return NOT_INSTALLED
    found = prove(Path(sys.executable), theirs.absolute())
    print(table(found))
    steps = ("opdock writes", "TensorFlow reads", "TensorFlow writes", "opdock reads")
    for case, wrong in found.items():
        for step, text in zip(steps, wrong, strict=True):
            if text:
                print(f"\n{case}, {step}:\n{text}", file=sys.stderr)
    return int(any(text for wrong in found.values() for text in wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
