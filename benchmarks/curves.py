"""Scaling curves: what grows with the size of a graph, and a training step with its batch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from workloads.agree import apart

GRAPH_SIZES = (100, 1_000, 10_000, 100_000)
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
SHORT_GRAPH_SIZES = GRAPH_SIZES[:3]
SHORT_BATCHES = (1, 64, 1024)
PHASES = ("build", "gradients", "compile", "run")
TOO_LONG = 60.0  # a library that took so long for one size gets no larger one
PERCEPTRON = "mlp_train_small"


def phases(
    tf: Any,
    session: Callable[[Any], AbstractContextManager[Any]],
    device: str | None,
    size: int,
) -> dict[str, Any]:
    """Seconds to build `size` ops in a chain, to add their gradient, to run it for the first time
    less one time more ("compile"), and to run it again ("run"); and the gradient, to be compared.
    """
    import numpy as np
    from workloads.dispatch import WAVE, waves

    graph = tf.Graph()
    with graph.as_default(), tf.device(device):
        begin = time.perf_counter()
        x, y = waves(tf, size // 2)
        build = time.perf_counter() - begin
        begin = time.perf_counter()
        (slope,) = tf.gradients(y, x)
        gradients = time.perf_counter() - begin
    feed = {x: WAVE}
    with session(graph) as running:
        begin = time.perf_counter()
        value = running.run(slope, feed)
        first = time.perf_counter() - begin
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            running.run(slope, feed)
            times.append(time.perf_counter() - begin)
    run = statistics.median(times)
    found = (build, gradients, max(first - run, 0.0), run)
    return {**dict(zip(PHASES, found)), "value": np.asarray(value).tolist()}


def graph_curve(setting: Any, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """For each size and TF1 library the seconds of the phases: [{"size", "libraries"}]."""
    from compare import Worker

    sides = [s for s in setting.sides if s.library in ("opdock", "tensorflow")]
    points = []
    for size in sizes:
        libraries: dict[str, Any] = {}
        for side in sides:
            last = points[-1]["libraries"].get(side.library) if points else {}
            if last is None or "wrong" in last or sum(last.get(p, 0) for p in PHASES) > TOO_LONG:
                continue
            worker = Worker(side, setting)
            warm = worker.ask("graph", size=20)  # op definitions are parsed on first use
            heard = worker.ask("graph", size=size) if "error" not in warm else warm
            worker.close()
            wrong = heard.get("error") or _wrong(heard.pop("value"), size)
            libraries[side.library] = {"wrong": wrong} if wrong else heard
        points.append({"size": size, "libraries": libraries})
    return points


def _wrong(value: list[float], size: int) -> str:
    """What is wrong with the gradient."""
    from types import SimpleNamespace

    import numpy as np
    from workloads.agree import digest
    from workloads.dispatch import gradients_answer

    right = gradients_answer(SimpleNamespace(layers=size // 2))[0]
    gap = apart(digest(right), digest([np.array(value)]))
    return "" if gap < 1e-4 else f"{gap:.1e} from the right gradient"


def batch_curve(setting: Any, batches: tuple[int, ...]) -> list[dict[str, Any]]:
    """For each batch the seconds of a training step: [{"size", "libraries"}]."""
    from compare import measure
    from workloads.table import ALL

    points = []
    for batch in batches:
        found = measure(setting, ALL[PERCEPTRON], {"batch": batch})["libraries"]
        kept = ("step", "first", "peak", "wrong")
        libraries = {
            name: {k: v for k, v in figures.items() if k in kept} for name, figures in found.items()
        }
        points.append({"size": batch, "libraries": libraries})
    return points
