"""Libraries side by side: each in a process of its own, in turns; only right answers count."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads.agree import apart
from workloads.spec import Workload

HERE = Path(__file__).resolve().parent
PEERS = ("tensorflow", "torch", "jax")
OWN = "cpu"
"""opdock on the CPU, beside which another device of opdock's is measured."""
_THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA")


@dataclass(frozen=True)
class Side:
    """A library and the interpreter that has it.

    Attributes:
        variables: NAME=VALUE of the environment that it gets beside all that others get.
    """

    library: str
    python: str = sys.executable
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: turns of each library.
        seconds: of a turn.
        least: steps of a turn, however long they take.
        warm: seconds before the first turn.
        pause: seconds before each turn, in which the other libraries' threads fall asleep.
        patience: seconds after which a library that does not answer is ended.
    """

    rounds: int
    seconds: float
    least: int
    warm: float
    pause: float
    patience: float = 600.0


SHORT = Effort(rounds=3, seconds=0.25, least=2, warm=0.25, pause=0.0)
FULL = Effort(rounds=7, seconds=0.5, least=3, warm=0.5, pause=0.15)


class Worker:
    """A process with one library; `ask` gives its answer, or {"error": ...}.

    Attributes:
        ended: whether it is gone, and will answer no more.
    """

    def __init__(self, side: Side, setting: Setting) -> None:
        words = [side.python, str(HERE / "worker.py"), side.library]
        words += ["--threads", str(setting.threads)]
        if setting.device:
            words += ["--device", setting.device]
        if setting.processor:
            words += ["--processor"]
        self.patience = setting.effort.patience
        self.ended = False
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=HERE,
            env=setting.environment(side),
        )
        self.hello = self._answer()

    def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """Asks for something, and waits."""
        try:
            self._process.stdin.write(json.dumps({"do": do, **words}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says how it ended
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        timer = threading.Timer(self.patience, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        late = not timer.is_alive()
        timer.cancel()
        if line:
            return json.loads(line)
        self.ended = True
        if late:
            return {"error": f"no answer within {self.patience:.0f} s"}
        status = self._process.wait()
        self._errors.seek(0)
        last = [text.strip() for text in self._errors.read().splitlines() if text.strip()][-1:]
        return {"error": f"ended with status {status}: {''.join(last)}"[:300]}

    def close(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run have in common.

    Attributes:
        sides: opdock first, then its peers.
        threads: of each library.
        device: where opdock computes; its own choice without one.
        gpu: whether peers may see GPUs.
        effort: how long to measure.
        processor: whether the time of processors counts, not what a clock on the wall shows: on a
            busy machine the latter is others' time.
        settled: whether code is generated before a step goes on, not meanwhile.
    """

    sides: Sequence[Side]
    threads: int
    device: str | None = None
    gpu: bool = False
    effort: Effort = SHORT
    processor: bool = False
    settled: bool = False

    def environment(self, side: Side) -> dict[str, str]:
        """Same threads, same precision, and no GPU that was not asked for."""
        env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", NVIDIA_TF32_OVERRIDE="0")
        env |= {f"{name}_NUM_THREADS": str(self.threads) for name in _THREADS}
        if self.settled:
            env["OPDOCK_JIT"] = "sync"
        if side.python != sys.executable:
            env.pop("PYTHONPATH", None)
        if side.library != "opdock" and not self.gpu:
            env["CUDA_VISIBLE_DEVICES"] = ""
        env |= dict(one.split("=", 1) for one in side.variables)
        return env


def placed(name: str, setting: Setting) -> str:
    """The device that a name means, "/device:OPENCL:0"."""
    worker = Worker(setting.sides[0], setting)
    heard = worker.ask("where", name=name)
    worker.close()
    if "error" in heard:
        raise SystemExit(f"--device {name}: {heard['error']}")
    return heard["device"]


def imports(setting: Setting, runs: int) -> dict[str, dict[str, Any]]:
    """For each library its version, and medians: seconds of the import, seconds from there to the
    first result of one op ("ready", import included), bytes resident then.
    """
    heard: dict[str, list[dict[str, Any]]] = {}
    for _ in range(runs):
        for side in setting.sides:
            worker = Worker(side, setting)
            ready = worker.ask("ready")
            worker.close()
            if error := worker.hello.get("error") or ready.get("error"):
                raise SystemExit(f"{side.library} does not work: {error}")
            heard.setdefault(side.library, []).append({**worker.hello, **ready})
    return {
        library: {
            "version": hellos[0]["version"],
            **{
                key: statistics.median(h[key] for h in hellos)
                for key in ("seconds", "ready", "resident")
            },
        }
        for library, hellos in heard.items()
    }


def smoke(setting: Setting, chosen: Sequence[Workload]) -> dict[str, dict[str, Any]]:
    """Workload -> library -> "right", or what is wrong; libraries without a twin are left out."""
    found: dict[str, dict[str, Any]] = {w.name: {} for w in chosen}
    for side in setting.sides:
        worker = Worker(side, setting)
        for workload in chosen:
            heard = smoked(worker, workload)
            if "missing" not in heard:
                found[workload.name][side.library] = verdict(heard, workload) or "right"
        worker.close()
    return found


def smoked(worker: Worker, workload: Workload) -> dict[str, Any]:
    """What a library says of a workload at its tiny size."""
    with workload.prepared(workload.smoke) as sizes:
        return worker.ask("smoke", workload=workload.name, sizes=sizes)


def verdict(heard: dict[str, Any], workload: Workload) -> str:
    """What is wrong with a workload at its tiny size, or nothing."""
    if "error" in heard:
        return heard["error"]
    if heard["apart"] > workload.tolerance:
        return f"{heard['apart']:.1e} from the right answer, where {workload.tolerance:.0e} may be"
    return ""


def measure(setting: Setting, workload: Workload, sizes: dict[str, Any]) -> dict[str, Any]:
    """One workload in all libraries: {"libraries": {name: figures}, "ratios": {peer: ...}}."""
    with workload.prepared(sizes) as found:
        return measured(setting, workload, found)


def measured(setting: Setting, workload: Workload, sizes: dict[str, Any]) -> dict[str, Any]:
    """The same, where the files of the workload are there."""
    workers: dict[str, Worker] = {}
    heads: dict[str, dict[str, Any]] = {}
    libraries: dict[str, dict[str, Any]] = {}
    try:
        for side in setting.sides:
            workers[side.library] = Worker(side, setting)
            head = workers[side.library].ask("start", workload=workload.name, sizes=sizes)
            if "error" in head:
                libraries[side.library] = {"wrong": head["error"]}
            elif "missing" not in head:
                heads[side.library] = head
        times, ratios = turns(setting.effort, workers, heads, libraries)
        for library, head in heads.items():
            if library not in libraries:
                figures = finished(workers[library], head, workload)
                libraries[library] = {**summary(times[library]), **figures}
    finally:
        for worker in workers.values():
            worker.close()
    disagree(libraries, heads, workload)
    right = {name for name, figures in libraries.items() if "wrong" not in figures}
    return {
        "name": workload.name,
        "about": workload.text(sizes),
        "libraries": libraries,
        "ratios": {peer: r for peer, r in ratios.items() if {peer, "opdock"} <= right},
    }


def turns(
    effort: Effort,
    workers: dict[str, Worker],
    heads: dict[str, dict[str, Any]],
    libraries: dict[str, dict[str, Any]],
) -> tuple[dict[str, list[float]], dict[str, dict[str, float]]]:
    """All step times, and of the rounds' ratios to opdock median, least and most."""
    order = list(heads)
    times: dict[str, list[float]] = {name: [] for name in order}
    rounds: dict[str, list[float]] = {name: [] for name in order if name != "opdock"}
    for turn in range(-1, effort.rounds):  # the first one warms up
        medians = {}
        for name in order if turn % 2 else order[::-1]:
            if name in libraries:
                continue  # it failed before
            time.sleep(effort.pause)
            warm = turn < 0
            seconds, least = (effort.warm, 1) if warm else (effort.seconds, effort.least)
            heard = workers[name].ask("run", seconds=seconds, least=least)
            if "error" in heard:
                libraries[name] = {"wrong": heard["error"]}
            elif not warm:
                times[name] += heard["times"]
                medians[name] = statistics.median(heard["times"])
        if "opdock" in medians:
            for name in rounds.keys() & medians.keys():
                rounds[name].append(medians[name] / medians["opdock"])
    ratios = {
        name: {"median": statistics.median(found), "low": min(found), "high": max(found)}
        for name, found in rounds.items()
        if found
    }
    return times, ratios


def summary(times: list[float]) -> dict[str, Any]:
    """Seconds of a step."""
    ordered = sorted(times)
    return {
        "step": statistics.median(ordered),
        "tenth": ordered[len(ordered) // 10],
        "ninetieth": ordered[len(ordered) * 9 // 10],
        "steps": len(ordered),
    }


def finished(worker: Worker, head: dict[str, Any], workload: Workload) -> dict[str, Any]:
    """The figures beside the times, and what was wrong."""
    end = worker.ask("finish")
    if "error" in end:
        return {"wrong": end["error"]}
    figures = {"build": head["build"], "first": head["first"], **end}
    last, kept = figures.pop("last", None), figures.pop("kept")
    wrong = verdict(smoked(worker, workload), workload)
    if not kept:
        wrong = "a later step changed an earlier result"
    elif last is not None and not apart(last, head["values"][0]) <= workload.tolerance:
        wrong = "the last step gave another result than the first"
    return {**figures, "wrong": wrong} if wrong else figures


def disagree(
    libraries: dict[str, dict[str, Any]], heads: dict[str, dict[str, Any]], workload: Workload
) -> None:
    """Marks peers whose first steps are not opdock's."""
    if "opdock" not in heads or "wrong" in libraries["opdock"]:
        return
    ours = heads["opdock"]["values"]
    for name, head in heads.items():
        gap = max((apart(a, b) for a, b in zip(ours, head["values"])), default=math.inf)
        if gap > workload.tolerance and "wrong" not in libraries[name]:
            libraries[name]["wrong"] = f"{gap:.1e} from opdock's result"
