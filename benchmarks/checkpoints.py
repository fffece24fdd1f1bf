"""What saving and restoring a checkpoint costs, beside the disk and TensorFlow: time and memory.

    python benchmarks/checkpoints.py                        # 64 variables of 16 MiB
    python benchmarks/checkpoints.py --tensors 8 --mib 4    # the same, shortly
    python benchmarks/checkpoints.py --peer tensorflow=PYTHON --write docs/benchmarks.md
    python benchmarks/checkpoints.py --device /device:OPENCL:0      # variables of a device

Each figure comes from processes of their own, which take turns; the largest resident size of each
is read at its end, once with the step and once without. `disk` is as many bytes in one plain file,
written and synced, or read; `files` are opdock's writer and reader alone; a library's name is a
`tf.train.Saver` of it in a session that holds the variables. What is read is first dropped from the
system's cache (`--warm` leaves it).
"""

from __future__ import annotations

import argparse
import glob
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}


def peak() -> float:
    """The largest size that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Has `peak` tell of what comes from now on, where the system can (Linux): to make variables
    takes more than to hold them.
    """
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


# ---------------------------------------------------------------- steps
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


def saver(library: str, what: str, prefix: str, tensors: int, size: int, device: str) -> float:
    """Seconds that a Saver needs in a session for variables of a device."""
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
    with tf.device(device or None):
        # Random, since equal numbers would be kept as one.
        variables = [
            tf.get_variable(
                f"v{i}", [size], initializer=tf.random_uniform_initializer(), use_resource=True
            )
            for i in range(tensors)
        ]
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([v[:1] for v in variables])  # a device has made them by then
        forget_peak()
        start = time.perf_counter()
        if what == "save":
            saver.save(session, prefix, write_meta_graph=False)
        elif what == "restore":
            saver.restore(session, prefix)
        return time.perf_counter() - start


def step(kind: str, what: str, place: str, tensors: int, size: int, device: str) -> float:
    """Seconds that a step of some kind takes."""
    if kind == "disk":
        return plain_file(what, place, tensors, size)
    if kind == "files":
        return bundle(what, place, tensors, size)
    return saver(kind, what, place, tensors, size, device)


# ---------------------------------------------------------------- measuring
def forget(folder: str) -> None:
    """Asks the system to drop what it has cached of the files in a folder."""
    for path in glob.glob(f"{folder}/*"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Measures:
    """Steps in processes of their own.

    Args:
        folder: on the disk that is meant.
        args: the command line.
    """

    def __init__(self, folder: str, args: argparse.Namespace) -> None:
        self.folder, self.args = folder, args

    def one(self, kind: str, python: str, what: str) -> tuple[float, float]:
        """Seconds of a step, and the largest size of its process in MiB."""
        if what == "restore" and not self.args.warm:
            forget(self.folder)
        command = [python, __file__, "--step", f"{kind}-{what}"]
        command += ["--directory", str(Path(self.folder) / kind)]
        command += ["--tensors", str(self.args.tensors), "--mib", str(self.args.mib)]
        command += ["--device", self.args.device]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return float(out[0]), float(out[1])

    def row(self, kind: str, python: str) -> list[str]:
        """The cells of a kind: GiB a second and MiB, saving and restoring."""
        from report import number

        _, base = self.one(kind, python, "none")
        cells, gib = [], self.args.tensors * self.args.mib / 1024
        for what in ("save", "restore"):
            turns = [self.one(kind, python, what) for _ in range(self.args.turns)]
            seconds = statistics.median(t for t, _ in turns)
            above = max(0.0, statistics.median(m for _, m in turns) - base)
            cells += [f"{gib / seconds:.2f}", number(above) if above >= 1 else "< 1"]
        return [kind, *cells, number(base)]


def report(folder: str, args: argparse.Namespace, sides: dict[str, str]) -> str:
    """A Markdown table of all kinds."""
    from report import rows_of

    measures = Measures(folder, args)
    kinds = {"disk": sys.executable, "files": sys.executable, **sides}
    rows = [measures.row(kind, python) for kind, python in kinds.items()]
    head = ["", "save, GiB/s", "MiB above", "restore, GiB/s", "MiB above", "process without, MiB"]
    return f"{args.tensors} variables of {args.mib} MiB.\n\n{rows_of(head, rows)}"


def main(words: Sequence[str]) -> None:
    """Reads the command line and prints a table."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tensors", type=int, default=64)
    p.add_argument("--mib", type=int, default=16, help="size of each tensor")
    p.add_argument("--device", default="", help="of the variables; the host's if none is named")
    p.add_argument("--turns", type=int, default=3, help="of which the median is told")
    p.add_argument("--directory", default=None, help="on the disk that is meant")
    p.add_argument("--warm", action="store_true", help="read from the system's cache")
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--step", default=None, help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.step is not None:
        kind, what = args.step.split("-")
        size = args.mib * (1 << 20) // 4
        print(step(kind, what, args.directory, args.tensors, size, args.device), peak())
        return
    from options import peer, quoted
    from report import machine

    sides = {"opdock": sys.executable}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = side.python
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        found = report(folder, args, sides)
    about = machine()
    text = (
        f"{about['processor']}, {about['cores']} cores · Python {about['python']}, NumPy "
        f"{about['numpy']}, opdock {about['opdock']} · {time.strftime('%Y-%m-%d')} · "
        f"`{quoted(words, 'checkpoints.py')}` · {found}"
    )
    print(text)
    if args.write:
        from report import replace

        replace(args.write, {"benchmarks: checkpoints": text})


if __name__ == "__main__":
    main(sys.argv[1:])
