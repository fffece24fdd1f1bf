"""What saving and restoring a checkpoint costs: time, and memory beside the model's own.

    python benchmarks/checkpoints.py                        # 64 variables of 16 MiB
    python benchmarks/checkpoints.py --tensors 8 --mib 4    # the same, shortly

Each figure comes from a process of its own, whose largest resident size is read at its end, once
with the step and once without. `files` are the writer and the reader alone, which hold one tensor
at a time; `saver` is a `tf.train.Saver` in a session that holds the variables.
"""

from __future__ import annotations

import argparse
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


def step(name: str, prefix: str, tensors: int, mib: int) -> None:
    """Runs one step and prints its time and this process's peak; `-none` does all but the step."""
    size = mib * (1 << 20) // 4
    kind, _, what = name.partition("-")
    if kind == "files":
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
        print(time.perf_counter() - start, peak())
        return
    import opdock as tf

    for i in range(tensors):
        tf.get_variable(f"v{i}", [size], initializer=tf.ones_initializer(), use_resource=True)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start = time.perf_counter()
        if what == "save":
            saver.save(session, prefix, write_meta_graph=False)
        elif what == "restore":
            saver.restore(session, prefix)
        print(time.perf_counter() - start, peak())


def main() -> None:
    """Reads the command line and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensors", type=int, default=64)
    parser.add_argument("--mib", type=int, default=16, help="size of each tensor")
    parser.add_argument("--directory", default=None)
    parser.add_argument("--step", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step is not None:
        step(args.step, args.directory, args.tensors, args.mib)
        return
    folder = args.directory or tempfile.mkdtemp()
    prefix = str(Path(folder) / "model")

    def measure(name: str) -> tuple[float, float]:
        command = [sys.executable, __file__, "--step", name, "--directory", prefix]
        command += ["--tensors", str(args.tensors), "--mib", str(args.mib)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return float(out[0]), float(out[1])

    print(f"{args.tensors} tensors of {args.mib} MiB, {args.tensors * args.mib} MiB in all")
    for kind in ("files", "saver"):
        _, base = measure(f"{kind}-none")
        for what in ("save", "restore"):
            seconds, highest = measure(f"{kind}-{what}")
            print(
                f"{kind} {what}: {seconds:.2f} s, {highest - base:.0f} MiB above the"
                f" {base:.0f} MiB of the process without it"
            )


if __name__ == "__main__":
    main()
