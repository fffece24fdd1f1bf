"""One library in one process: does what `compare.py` asks for, a line of JSON each.

    python worker.py LIBRARY [--threads N] [--device NAME]

It runs in the library's own interpreter. The first line it prints is about the import; after that
it answers {"do": name, ...} with one line, {"error": text} where something failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workloads.agree import digest

MODULES = {
    "opdock": "opdock",
    "cpu": "opdock",
    "haswell": "opdock",
    "nehalem": "opdock",
    "tensorflow": "tensorflow.compat.v1",
    "torch": "torch",
    "jax": "jax",
    "pyopencl": "pyopencl",
    "numpy": "numpy",
}
TWINS = ("torch", "jax", "pyopencl", "numpy")
"""Libraries that know no graphs of TensorFlow's."""


def status(key: str) -> int:
    """Bytes, from what Linux tells about this process; 0 where it tells nothing."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            found = [line for line in lines if line.startswith(key)]
    except OSError:
        return 0
    return int(found[0].split()[1]) * 1024 if found else 0


def is_number(value: Any) -> bool:
    """Whether a result can be compared as a number."""
    return getattr(value, "dtype", None) is not None and value.dtype.kind in "biuf"


def as_large_ones_lie(array: Any) -> Any:
    """A copy 16 bytes behind a multiple of 64, where the C library has large arrays begin.

    Some libraries copy what is fed unless it begins at such a multiple, so where an array happens
    to lie must not decide between two of them.
    """
    import numpy as np

    room = np.empty(array.nbytes + 128, np.uint8)
    start = (16 - room.ctypes.data) % 64
    placed = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


class Library:
    """A library, and the workload that it was asked for last."""

    def __init__(
        self, name: str, threads: int, device: str | None, processor: bool = False
    ) -> None:
        self.clock = time.process_time if processor else time.perf_counter
        begin = time.perf_counter()
        self.module = importlib.import_module(MODULES[name])
        self.import_seconds = time.perf_counter() - begin
        self.name, self.threads, self.device = name, threads, device
        self.fetched = device is not None
        self.ended = 0.0
        self.timed: Callable[[], tuple[float, Any]] = lambda: (0.0, None)
        self.workload: Any = None
        self.first: tuple[Any, Any] = (None, None)
        self.explained: tuple[Any, ...] | None = None
        if name == "tensorflow":
            self.module.disable_v2_behavior()
            self.module.logging.set_verbosity(self.module.logging.ERROR)
        self.twins: dict[str, Any] | None = None
        if name in TWINS:
            twin = importlib.import_module(f"twins.{name}_twin")
            twin.setup(threads)
            self.twins = twin.TWINS

    def hello(self) -> dict[str, Any]:
        """What is known after the import."""
        from importlib import metadata

        package = {"opdock": "opdock-core", "tensorflow": "tensorflow"}.get(self.name, self.name)
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            version = self.module.__version__
        return {"seconds": self.import_seconds, "version": version}

    def ready(self) -> dict[str, Any]:
        """Seconds from before the import to the first result of one op."""
        head = self.start("run_overhead", {})
        seconds = self.import_seconds + head["build"] + head["first"]
        return {"ready": seconds, "resident": status("VmRSS")}

    def where(self, name: str) -> dict[str, Any]:
        """A device of opdock's as `tf.device` takes it, by any of its spellings."""
        from opdock.testing.levels.device import open_device

        return {"device": open_device(name).scope}

    def prepare(self, workload: Any, sizes: dict[str, Any]) -> bool:
        """Builds a workload; False where this library has no twin of it."""
        self.workload = workload
        data = workload.inputs(sizes)
        if self.twins is not None:
            if workload.name not in self.twins:
                return False
            self.timed = self.clocked(self.twins[workload.name](data))
            return True
        from workloads.steps import Steps

        made = Steps(self.module, workload, data, self.where_placed, self.threads, self.clock)
        self.timed = made.timed
        if made.session is not None:
            self.explained = (made.session, made.fetches, made.feeds)
        return True

    @property
    def where_placed(self) -> str | None:
        """The device that opdock is to take; other libraries take their own."""
        return self.device if self.name == "opdock" else None

    def session(self, graph: Any) -> Any:
        """With the asked number of threads; ops that the device lacks run elsewhere."""
        from workloads.steps import config

        return self.module.Session(graph=graph, config=config(self.module, self.threads))

    def start(self, workload: str, sizes: dict[str, Any]) -> dict[str, Any]:
        """Builds it and runs the first steps."""
        from workloads.spec import CHECKED
        from workloads.table import ALL

        self.explained = None
        begin = time.perf_counter()
        if not self.prepare(ALL[workload], sizes):
            return {"missing": True}
        build = time.perf_counter() - begin
        values, seconds = [], []
        for i in range(CHECKED):
            took, value = self.timed()
            seconds.append(took)
            values.append(digest(value))
            if i == 0:
                self.first = (value, values[0])
        self.ended = self.clock()
        return {"build": build, "first": seconds[0], "values": values}

    def load(self, folder: str) -> dict[str, Any]:
        """A program that `registry/programs.py` wrote: its first step, and what it gives."""
        import numpy as np

        tf, place = self.module, Path(folder)
        names = json.loads((place / "names.json").read_text(encoding="utf-8"))
        with np.load(place / "inputs.npz", allow_pickle=False) as arrays:
            stored = {key: as_large_ones_lie(array) for key, array in arrays.items()}
        if self.twins is not None:
            return self.called(names["call"], stored, names["random"])
        feed = {tensor: stored[key] for tensor, key in names["feeds"].items()}
        graph = tf.Graph()
        with graph.as_default(), tf.device(self.where_placed):
            definition = tf.GraphDef()
            definition.ParseFromString((place / "graph.pb").read_bytes())
            tf.import_graph_def(definition, name="")
            session = self.session(graph)
        session.run(names["init"])
        run = session.run
        # Operations, whose results stay where they are; what only a group asks for may be left out.
        # On another device only a result that was fetched is sure to be finished.
        targets = [graph.get_operation_by_name(name) for name in names["targets"]]
        wanted = names["outputs"] if self.fetched and names["outputs"] else targets
        self.timed = self.clocked(lambda: run(wanted, feed))
        values = [] if names["random"] else run(names["outputs"], feed)
        heard = {"first": self.timed()[0], "values": digest([v for v in values if is_number(v)])}
        if self.where_placed is not None:
            rows = session.explain(wanted, feed).rows
            asked = names["call"]["op"] if names["call"] else None
            heard["how"] = sorted({r.how for r in rows if r.op == asked})
        return heard

    def called(
        self, call: dict[str, Any] | None, stored: dict[str, Any], random: bool
    ) -> dict[str, Any]:
        """The same by functions of a library that knows no graphs of TensorFlow's."""
        ops = importlib.import_module(f"twins.{self.name}_ops")
        found = None if call is None or random else ops.function(call["op"], call["attrs"])
        if found is None:
            return {"missing": True}
        inputs = [
            [stored[k] for k in names] if isinstance(names, list) else stored[names]
            for names in call["inputs"]
        ]
        step = ops.step(found, inputs, call["known"])
        values = step()
        self.timed = self.clocked(step)
        return {"first": self.timed()[0], "values": digest(values)}

    def clocked(self, step: Callable[[], Any]) -> Callable[[], tuple[float, Any]]:
        """The step, with the seconds that it takes."""

        def timed() -> tuple[float, Any]:
            begin = self.clock()
            value = step()
            return self.clock() - begin, value

        return timed

    def run(self, seconds: float, least: int) -> dict[str, Any]:
        """Steps for so long, by the clock that counts."""
        times: list[float] = []
        begin, end = self.ended, self.clock() + seconds
        while len(times) < least or self.clock() < end:
            times.append(self.timed()[0])
        self.ended = self.clock()
        if self.clock is time.process_time:
            # Threads work ahead, between turns as well: one step has the use of another's time.
            whole = self.ended - begin if self.explained or self.twins else sum(times)
            times = [whole / len(times)]
        return {"times": times}

    def looking(self) -> dict[str, Any]:
        """Seconds that it takes to look at the clock, as `run` does three times a step."""
        spent = []
        for _ in range(20):
            begin = self.clock()
            for _ in range(99):
                self.clock()
            spent.append((self.clock() - begin) / 100)
        return {"seconds": min(spent)}

    def finish(self) -> dict[str, Any]:
        """Memory, where the ops ran, whether the first result is what it was, and a last one."""
        out: dict[str, Any] = {"peak": status("VmHWM"), "kept": digest(self.first[0])}
        out["kept"] = out["kept"] == self.first[1]
        if not self.workload.changes:
            out["last"] = digest(self.timed()[1])
        if self.name == "opdock" and self.explained is not None:
            out.update(self.explain(*self.explained))
        return out

    def explain(self, session: Any, fetches: Any, feed: dict[Any, Any]) -> dict[str, Any]:
        """The memory plan; on a device also its memory and the share of ops that ran on it."""
        found = session.explain(fetches, feed)
        out: dict[str, Any] = {"planned": found.memory.planned_bytes}
        if self.device is not None:
            from opdock.testing.levels.device import open_device

            asked = open_device(self.device)
            ran = [r for r in found.rows if r.how in ("native", "portable", "decomposed")]
            away = [r for r in ran if r.device != asked.name]
            out["elsewhere"] = f"{len(away)} of {len(ran)}"
            out["device_peak"] = asked.device.memory().peak
        return out

    def smoke(self, workload: str, sizes: dict[str, Any] | None = None) -> dict[str, Any]:
        """How far the first steps at a tiny size are from the right answer."""
        from workloads.steps import error
        from workloads.table import ALL

        chosen = ALL[workload]
        sizes = dict(chosen.smoke) if sizes is None else sizes
        if not self.prepare(chosen, sizes):
            return {"missing": True}
        return {"apart": error(self.timed, chosen, chosen.inputs(sizes))}

    def graph(self, size: int) -> dict[str, Any]:
        """Seconds of the phases of a graph of `size` ops; see `curves.py`."""
        from curves import phases

        return phases(self.module, self.session, self.device, size)


def main() -> None:
    """Answers until its input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=sorted(MODULES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device")
    parser.add_argument("--processor", action="store_true", help="the processors' time counts")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # some libraries take a thread for each core they may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    # Libraries print what they like; only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    library = Library(options.library, options.threads, options.device, options.processor)
    answer(library.hello())
    for line in sys.stdin:
        words = json.loads(line)
        try:
            answer(getattr(library, words.pop("do"))(**words))
        except Exception as e:
            text = str(e).strip().splitlines() or [""]
            answer({"error": f"{type(e).__name__}: {text[0]}"[:300]})
    os._exit(0)  # some libraries need many seconds to take themselves apart


if __name__ == "__main__":
    main()
