"""What saving and restoring a checkpoint costs: time beside the disk's own, and memory.

    python benchmarks/checkpoints.py                        # 64 variables of 16 MiB
    python benchmarks/checkpoints.py --tensors 8 --mib 4    # the same, shortly

Each figure comes from a process of its own, whose largest resident size is read at its end, once
with the step and once without. `disk` is as many bytes in one plain file, written and synced, or
read; `files` are the writer and the reader alone; `saver` is a `tf.train.Saver` in a session that
holds the variables. What is read is first dropped from the system's cache (`--warm` leaves it).
"""

from __future__ import annotations

import argparse
import glob
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def peak() -> float:
    """The largest size that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plain_file(what: str, path: str, tensors: int, size: int) -> float:
    """Seconds that the disk itself needs for the bytes."""
    value = np.ones(size, np.float32)
    start = time.perf_counter()
    if what == "save":
        with open(path, "wb") as file:
            file.writelines(value.data for _ in range(tensors))
            os.fsync(file.fileno())
    elif what == "restore":
        with open(path, "rb", buffering=0) as file:
            while file.readinto(value.view(np.uint8)):
                pass
    return time.perf_counter() - start


def bundle(what: str, prefix: str, tensors: int, size: int) -> float:
    """Seconds that the reader and the writer of checkpoints need."""
    from opdock.io.checkpoint_v2 import BundleReader, BundleWriter

    value = np.ones(size, np.float32)
    start = time.perf_counter()
    if what == "save":
        with BundleWriter(prefix) as writer:
            for i in range(tensors):
                writer.add(f"v{i}", value)
    elif what == "restore":
        del value
        with BundleReader(prefix) as reader:
            for tensor in reader.names():
                reader.get(tensor)
    return time.perf_counter() - start


def saver(what: str, prefix: str, tensors: int, size: int) -> float:
    """Seconds that a Saver needs in a session."""
    import opdock as tf

    for i in range(tensors):
        # Random, since equal numbers would be kept as one.
        start_value = tf.random_uniform_initializer()
        tf.get_variable(f"v{i}", [size], initializer=start_value, use_resource=True)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        if what == "save":
            saver.save(session, prefix, write_meta_graph=False)
        elif what == "restore":
            saver.restore(session, prefix)
        return time.perf_counter() - start


KINDS = {"disk": plain_file, "files": bundle, "saver": saver}


def forget(folder: str) -> None:
    """Asks the system to drop what it has cached of the files in a folder."""
    for path in glob.glob(f"{folder}/*"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    """Reads the command line and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensors", type=int, default=64)
    parser.add_argument("--mib", type=int, default=16, help="size of each tensor")
    parser.add_argument("--directory", default=None, help="on the disk that is meant")
    parser.add_argument("--warm", action="store_true", help="read from the system's cache")
    parser.add_argument("--step", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step is not None:
        kind, what = args.step.split("-")
        size = args.mib * (1 << 20) // 4
        print(KINDS[kind](what, args.directory, args.tensors, size), peak())
        return
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        report(folder, args.tensors, args.mib, args.warm)


def report(folder: str, tensors: int, mib: int, warm: bool) -> None:
    """Measures every kind, and prints a line for each step of it."""

    def measure(kind: str, what: str) -> tuple[float, float]:
        command = [sys.executable, __file__, "--step", f"{kind}-{what}"]
        command += ["--directory", str(Path(folder) / kind)]
        command += ["--tensors", str(tensors), "--mib", str(mib)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return float(out[0]), float(out[1])

    print(f"{tensors} tensors of {mib} MiB, {tensors * mib} MiB in all")
    for kind in KINDS:
        _, base = measure(kind, "none")
        for what in ("save", "restore"):
            if what == "restore" and not warm:
                forget(folder)
            seconds, highest = measure(kind, what)
            print(
                f"{kind:5} {what:7}: {seconds:6.2f} s, {tensors * mib / 1024 / seconds:.2f} GiB/s,"
                f" {highest - base:5.0f} MiB above the {base:.0f} MiB of the process without it"
            )


if __name__ == "__main__":
    main()
