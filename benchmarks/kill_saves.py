"""Kills a program that saves to one prefix over and over, and reads what is left each time.

    python benchmarks/kill_saves.py --kills 1000

A child saves 1, 2, 3, ... into all tensors of a checkpoint, always to the same prefix, and writes
each number to its standard output once it is saved. SIGKILL comes after a random time. What can be
read then must be one number in all tensors: the last that was reported, or the next.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from opdock.io.checkpoint_v2 import BundleReader, BundleWriter

TENSORS = 20
SIZE = 1 << 12


def save(prefix: str, number: int) -> None:
    """Writes a checkpoint full of one number."""
    with BundleWriter(prefix) as writer:
        for i in range(TENSORS):
            writer.add(f"tensor{i}", np.full(SIZE, number, np.int64))


def load(prefix: str) -> int:
    """The number in the checkpoint.

    Raises:
        ValueError: there are several.
    """
    with BundleReader(prefix) as reader:
        found = {int(n) for name in reader.names() for n in np.unique(reader.get(name))}
    if len(found) != 1:
        raise ValueError(f"{prefix} has the numbers {sorted(found)}")
    return found.pop()


def work(prefix: str, start: int) -> None:
    """Saves for ever."""
    for number in range(start, sys.maxsize):
        save(prefix, number)
        print(number, flush=True)


def one_kill(prefix: str, start: int, seconds: float) -> tuple[int, int]:
    """Runs a child, kills it; returns the last number it reported and the one that is there."""
    command = [sys.executable, __file__, "--directory", prefix, "--child", str(start)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    # The kill falls into a save, not into the start of the child.
    reported = int(child.stdout.readline())
    time.sleep(seconds)
    os.kill(child.pid, signal.SIGKILL)
    lines = child.stdout.read().split("\n")[:-1]
    child.wait()
    child.stdout.close()
    return int(lines[-1]) if lines else reported, load(prefix)


def main() -> None:
    """Reads the command line and reports; exits with 1 if a checkpoint was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--directory", default=None, help="where to save; a temporary one if none")
    parser.add_argument("--child", type=int, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        work(args.directory, args.child)
    folder = args.directory or tempfile.mkdtemp()
    prefix = str(Path(folder) / "model.ckpt")
    chance = np.random.default_rng(0)
    number, lost = 0, 0
    for _ in range(args.kills):
        reported, found = one_kill(prefix, number + 1, chance.random() * 0.05)
        lost += found not in (reported, reported + 1)
        number = found
    save(prefix, number + 1)
    names = sorted(os.listdir(folder))
    usual = ["model.ckpt.data-00000-of-00001", "model.ckpt.index"]
    print(f"{args.kills} kills during {number} saves: {lost} checkpoints lost; left: {names}")
    sys.exit(1 if lost or names != usual else 0)


if __name__ == "__main__":
    main()
