"""Reads very many hostile files: `make fuzz`.

    python -m tests.hostile --cases 100000 --formats graph,png --seed 0 --minutes 60
    python -m tests.hostile --guided --formats graph,png --minutes 60

Goes on where it stopped (build/fuzz), whether it was told to stop or a case broke it. A case is
known by its format, the seed and its number; `--show FORMAT:SEED:NUMBER` reads one of them here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.formats import FORMATS
from tests.hostile.trial import judge

FOLDER = Path("build/fuzz")
PORTION = 2000
"""Cases a process by default: fresh ones find what old ones got used to."""


def portion(name: str, seed: int, first: int, count: int) -> int:
    """Runs cases in a process of their own; the number of the first that did not run."""
    state, found = FOLDER / f"{name}-{seed}.at", FOLDER / f"{name}-{seed}.jsonl"
    state.write_bytes(first.to_bytes(8, "little"))
    words = [sys.executable, "-m", "tests.hostile.trial", name]
    words += [str(v) for v in (seed, first, count, state, found)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    reached = int.from_bytes(state.read_bytes(), "little")
    if done.returncode == 0:
        return reached
    if done.returncode == 1:
        raise SystemExit(f"no case's fault, but the trial's:\n{done.stderr}")
    stack = Path(f"{found}.stack").read_text()[-4000:]
    line = {
        "case": reached,
        "where": f"died: {done.returncode}",
        "what": stack + done.stderr[-2000:],
    }
    with found.open("a") as out:
        out.write(json.dumps(line) + "\n")
    return reached + 1


def faults(name: str, seed: int) -> dict[str, dict[str, object]]:
    """What was found, one of each kind."""
    found = FOLDER / f"{name}-{seed}.jsonl"
    lines = found.read_text().splitlines() if found.exists() else []
    return {r["where"]: r for r in map(json.loads, reversed(lines))}


def guided(names: list[str], minutes: float) -> int:
    """Has coverage guide the changes, so many minutes for all kinds together; 1 for any fault."""
    seconds = max(int(60 * min(minutes, 60.0 * len(names)) / len(names)), 1)
    bad = False
    for name in names:
        words = [sys.executable, "-m", "tests.hostile.guided", name, str(seconds)]
        with (FOLDER / f"{name}-guided.log").open("w") as log:
            subprocess.run(words, check=False, stderr=log, stdout=log)
        wrong = sorted(p.name for p in (FOLDER / f"{name}-faults").iterdir())
        print(f"{name}: {seconds} s by coverage, {len(wrong)} files with faults", flush=True)
        print("".join(f"  {FOLDER}/{name}-faults/{w}\n" for w in wrong), end="", flush=True)
        bad = bad or bool(wrong)
    return bad


def show(case: str) -> int:
    """Reads one case in this process."""
    name, seed, number = case.split(":")
    data = FORMATS[name].case(int(seed), int(number))
    with tempfile.TemporaryDirectory() as folder:
        wrong = judge(FORMATS[name], data, Path(folder))
    print(f"{len(data)} bytes: {data[:200]!r}")
    print(wrong[1] if wrong else "a typed error or a right answer")
    return wrong is not None


def main() -> int:
    """Runs what is left of the cases; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--portion", type=int, default=PORTION, help="cases a process")
    parser.add_argument("--show")
    parser.add_argument("--guided", action="store_true", help="by coverage, through atheris")
    args = parser.parse_args()
    if args.show:
        return show(args.show)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if args.guided:
        return guided(args.formats.split(","), args.minutes)
    end = time.monotonic() + 60 * args.minutes
    bad = 0
    for name in args.formats.split(","):
        done = FOLDER / f"{name}-{args.seed}.done"
        at = int(done.read_text()) if done.exists() else 0
        while at < args.cases and time.monotonic() < end:
            size = args.portion - at % args.portion
            at = portion(name, args.seed, at, min(size, args.cases - at))
            done.write_text(str(at))
        wrong = faults(name, args.seed)
        bad += len(wrong)
        print(f"{name}: {at} cases of seed {args.seed}, {len(wrong)} faults", flush=True)
        for where, record in wrong.items():
            print(f"  {name}:{args.seed}:{record['case']}  {where}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
