"""Makes all tables that only a quiet machine can: some hours, one measurement after the other.

    python benchmarks/quiet.py --peer tensorflow=PYTHON --peer torch=PYTHON --peer jax=PYTHON
    python benchmarks/quiet.py --list --peer tensorflow=PYTHON      # the commands, nothing is run
    python benchmarks/quiet.py 'whole*' threads --peer tensorflow=PYTHON

What belongs into a page goes into docs/benchmarks.md; what each command says, into a file of its
name in `--folder`, tables of busy machines among it. It waits until nothing else computes, says so
while it does, and goes on after a measurement that fails; the exit status tells whether one did.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from busy import WAYS
from compare import Side
from options import chosen, peer

HERE = Path(__file__).resolve().parent
PAGE = str(HERE.parent / "docs" / "benchmarks.md")
QUIET = 0.3
"""Processors that others may use."""
PAUSE = 30.0


def commands(peers: Sequence[Side]) -> dict[str, list[str]]:
    """What is run, by name."""
    known = {side.library: f"{side.library}={side.python}" for side in peers}
    every = [part for word in known.values() for part in ("--peer", word)]
    first = ["--peer", known["tensorflow"]] if "tensorflow" in known else []
    plot = ["--plot"] if importlib.util.find_spec("matplotlib") else []
    write = ["--write", PAGE]
    found = {
        "suite": ["run.py", "--full", *plot, *every, *write],
        "start": ["start.py", *first, *write],
        "first_steps": ["first_steps.py", *write],
        "fed": ["fed.py", *first, *write],
        "sessions": ["first_steps.py", "--sessions", "1000", *write],
        "whole": ["whole.py", "--turns", "3", *first, *write],
        "threads": ["side_by_side.py", "--seconds", "5", *first, *write],
    }
    for way in WAYS:
        found[f"suite_{way}"] = ["run.py", "--busy", way, *every]
        found[f"whole_{way}"] = ["whole.py", "--turns", "3", "--busy", way, *first]
    if first:
        alone = ["--threads", "1", "--processor", *first, *write]
        for name, rows in (
            ("ops", "*.usual"),
            ("ops_small", "*.small"),
            ("ops_types", "*.usual.*"),
        ):
            found[name] = ["ops.py", rows, *alone]
        found["ops_large"] = ["ops.py", "*.large", *first, *write]
    for library in ("jax", "torch"):
        if importlib.util.find_spec(library):  # both are in one process there
            device = ["--peer", library, "--device", f"{library}:0"]
            found[f"together_{library}"] = ["together.py", *device, "--seconds", "10", *write]
    return found


def others() -> float:
    """Processors that are in use while this process sleeps; 0 where the system does not tell."""
    try:
        before, seconds = _used(), time.perf_counter()
        time.sleep(2.0)
        return (_used() - before) / (time.perf_counter() - seconds)
    except OSError:
        return 0.0


def _used() -> float:
    """Seconds that all processors have computed."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    busy = sum(map(int, fields)) - int(fields[3]) - int(fields[4])  # less idle, and waiting
    return busy / os.sysconf("SC_CLK_TCK")


def measure(words: Sequence[str], said: Path) -> int:
    """Runs a command once nothing else computes; its exit status."""
    while (busy := others()) > QUIET:
        print(f"  waits: others use {busy:.1f} processors", flush=True)
        time.sleep(PAUSE)
    with said.open("w", encoding="utf-8") as file:
        command = [sys.executable, str(HERE / words[0]), *words[1:]]
        return subprocess.call(command, stdout=file, stderr=subprocess.STDOUT)


def main(words: Sequence[str]) -> int:
    """Does what the words of the command line say; the exit status."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", metavar="name", help="measurements, or patterns; or all")
    p.add_argument("--peer", action="append", default=[], type=peer)
    p.add_argument("--folder", type=Path, default=Path("build/quiet"), help="for what they say")
    p.add_argument("--list", action="store_true", help="print the commands, and run none")
    args = p.parse_args(words)
    known = commands(args.peer)
    names, failed = chosen(args.names, list(known)), []
    if not names:
        p.error(f"no measurement has such a name; there are {', '.join(known)}")
    for name in names:
        program, *rest = known[name]
        print(f"{name}: {shlex.join([f'benchmarks/{program}', *rest])}", flush=True)
        if args.list:
            continue
        args.folder.mkdir(parents=True, exist_ok=True)
        said, begin = args.folder / f"{name}.txt", time.perf_counter()
        status = measure(known[name], said)
        failed += [name] if status else []
        told = f"failed with {status}" if status else "done"
        print(f"  {told} in {(time.perf_counter() - begin) / 60:.1f} minutes: {said}", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
