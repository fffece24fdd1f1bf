"""`tf.test.Benchmark`: methods that time ops, kept out of the tests until they are asked for."""

from __future__ import annotations

import numbers
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from opdock.api import logging as _log
from opdock.api.timeline import Timeline
from opdock.graph.nodes.default_session import get_default_session
from opdock.io import protos
from opdock.io.benchmark_entries import write_entries
from opdock.runtime.session import Session

__all__ = ["Benchmark", "benchmark_config", "benchmarks_main"]

REPORT_PREFIX = "TEST_REPORT_FILE_PREFIX"
"""The environment variable whose value is put before the name of each file of results."""

_registry: list[type[Benchmark]] = []


def benchmark_config() -> Any:
    """A ConfigProto that keeps a graph's control dependencies as they are."""
    config = protos.ConfigProto()
    options = config.graph_options.rewrite_options
    options.dependency_optimization = options.OFF
    return config


class Benchmark:
    """Base of classes whose methods `benchmark...` are run by `--benchmarks=REGEX`.

    Such a method times ops with `run_op_benchmark`, or says what it found by `report_benchmark`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _registry.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether this is the base itself."""
        return cls is Benchmark

    def report_benchmark(
        self, iters: int | None = None, cpu_time: float | None = None,
        wall_time: float | None = None, throughput: float | None = None,
        extras: dict[str, Any] | None = None, name: str | None = None,
        metrics: list[dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Prints a result, or writes it to a file where TEST_REPORT_FILE_PREFIX says so.

        Args:
            iters: how many iterations there were.
            cpu_time: seconds of processors.
            wall_time: seconds.
            throughput: megabytes a second.
            extras: numbers, or what has a text, by name.
            name: the result's; that of the calling method by default.
            metrics: dicts with "name" and "value", and perhaps "min_value" and "max_value".

        Raises:
            TypeError: `extras` is no dict, or `metrics` no list of such dicts.
            OSError: the file exists already.
        """
        entries = protos.BenchmarkEntries()
        entry = entries.entry.add(
            name=self._name(name), iters=iters, cpu_time=cpu_time, wall_time=wall_time,
            throughput=throughput,
        )  # fmt: skip
        _add_extras(entry, extras)
        _add_metrics(entry, metrics)
        _log.info("Benchmark [%s]: %s", entry.name, entry)
        prefix = os.environ.get(REPORT_PREFIX)
        if prefix is None:
            print(entries)
            return
        write_entries(prefix, entry)

    def _name(self, given: str | None) -> str:
        """The class and the method that is being run, or what was given for the method."""
        frame: Any = sys._getframe(1)
        while given is None and frame is not None:
            if frame.f_locals.get("self") is self and frame.f_code.co_name.startswith("benchmark"):
                given = frame.f_code.co_name
            frame = frame.f_back
        if given is None:
            raise ValueError("Unable to determine calling Benchmark function.")
        return f"{type(self).__name__}.{given}"

    def run_op_benchmark(
        self, sess: Session, op_or_tensor: Any, feed_dict: Any = None, burn_iters: int = 2,
        min_iters: int = 10, store_trace: bool = False, store_memory_usage: bool = True,
        name: str | None = None, extras: dict[str, Any] | None = None, mbs: float = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Times an op, and reports the median.

        Args:
            sess: the session.
            op_or_tensor: what to run.
            feed_dict: what to feed.
            burn_iters: how often to run it before.
            min_iters: how often to run it for the time.
            store_trace: add a Chrome trace of one more run to what is returned.
            store_memory_usage: add how many bytes each allocator held in one more run.
            name: the result's; that of the calling method by default.
            extras: more for the report.
            mbs: megabytes that a run moves, for the throughput.

        Returns:
            What was reported, and the trace as "full_trace_chrome_format" in its extras.
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        seconds = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(op_or_tensor, feed_dict)
            seconds.append(time.perf_counter() - start)
        extras = {} if extras is None else extras
        unreported: dict[str, Any] = {}
        if store_trace or store_memory_usage:
            timeline = _traced(sess, op_or_tensor, feed_dict)
            if store_trace:
                unreported["full_trace_chrome_format"] = timeline.generate_chrome_trace_format()
            if store_memory_usage:
                held = timeline.analyze_step_stats(show_memory=True).allocator_maximums
                for allocator, size in held.items():
                    extras[f"allocator_maximum_num_bytes_{allocator}"] = size
        median = statistics.median(seconds) if seconds else -1.0
        values = {
            "iters": min_iters, "wall_time": median, "extras": extras, "name": name,
            "throughput": mbs / median if median else 0.0,
        }  # fmt: skip
        self.report_benchmark(**values)  # type: ignore[arg-type]
        extras.update(unreported)
        return values

    def evaluate(self, tensors: Any) -> Any:
        """Values of tensors, however nested, in the default session.

        Raises:
            ValueError: there is no default session.
        """
        session = get_default_session()
        if session is None:
            raise ValueError("Benchmark.evaluate needs a default session.")
        return session.run(tensors)


def _add_extras(entry: Any, extras: Any) -> None:
    if extras is not None and not isinstance(extras, dict):
        raise TypeError("extras must be a dict")
    for key, value in (extras or {}).items():
        if isinstance(value, numbers.Number):
            entry.extras[key].double_value = value
        else:
            entry.extras[key].string_value = str(value)


def _add_metrics(entry: Any, metrics: Any) -> None:
    if metrics is not None and not isinstance(metrics, list):
        raise TypeError("metrics must be a list")
    for metric in metrics or []:
        for key in ("name", "value"):
            if key not in metric:
                raise TypeError(f"metric must has a '{key}' field")
        added = entry.metrics.add(name=metric["name"], value=metric["value"])
        for key in ("min_value", "max_value"):
            if key in metric:
                getattr(added, key).value = metric[key]


def _traced(sess: Session, op_or_tensor: Any, feed_dict: Any) -> Timeline:
    metadata = protos.RunMetadata()
    options = protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE)
    sess.run(op_or_tensor, feed_dict, options=options, run_metadata=metadata)
    return Timeline(metadata.step_stats)


def benchmarks_main(true_main: Callable[[], None], argv: list[str] | None = None) -> None:
    """Runs the benchmarks that `--benchmarks=REGEX` names, "all" for all; without it the tests."""
    argv = sys.argv if argv is None else argv
    asked = [a for a in argv if re.match("--?benchmarks=", a)]
    if not asked:
        true_main()
        return
    argv.remove(asked[0])
    wanted = asked[0].partition("=")[2]
    for cls in _registry:
        methods = [n for n in dir(cls) if n.startswith("benchmark") and callable(getattr(cls, n))]
        names = {n: f"{cls.__module__}.{cls.__name__}.{n}" for n in methods}
        chosen = [n for n in methods if wanted == "all" or re.search(wanted, names[n])]
        benchmark = cls() if chosen else None
        for method in chosen:
            getattr(benchmark, method)()
