"""Says how long a graph takes, and which of its ops: TensorFlow's benchmark_model."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.io import protos
from opdock.io.benchmark_entries import check_free, write_entries
from opdock.runtime.inspect.explain import Memory
from opdock.runtime.session import Session
from opdock.tools.arguments import (
    ToolParser,
    add_json,
    add_switch,
    listed,
    naming,
    shape_of,
    split_by,
    type_of,
)
from opdock.tools.model_flops import count_flops
from opdock.tools.protos_in_files import read_graph
from opdock.tools.step_tables import StepTables, readable_bytes

__all__ = ["Latencies", "create_parser", "latencies", "main", "value_of"]


class Latencies(NamedTuple):
    """How long runs took, in seconds, sorted."""

    seconds: list[float]

    @property
    def mean(self) -> float:
        """The average."""
        return sum(self.seconds) / len(self.seconds)

    def percentile(self, percent: float) -> float:
        """The time that as many percent of the runs did not exceed."""
        rank = int(np.ceil(len(self.seconds) * percent / 100)) - 1
        return self.seconds[max(rank, 0)]

    def figures(self) -> dict[str, float]:
        """The usual percentiles by name, in microseconds."""
        usual = {f"p{p}": self.percentile(p) for p in (50, 90, 95, 99)}
        found = {"min": self.seconds[0], "mean": self.mean, **usual, "max": self.seconds[-1]}
        return {name: seconds * 1e6 for name, seconds in found.items()}

    def line(self) -> str:
        """A line with the usual percentiles, in microseconds."""
        parts = [f"{name} {us:.0f}" for name, us in self.figures().items()]
        return f"{len(self.seconds)} runs, us: {', '.join(parts)}"


def latencies(
    run: Callable[[], Any], most_runs: int, most_seconds: float, delay: float = -1
) -> Latencies:
    """Times calls.

    Args:
        run: what is called, once at least.
        most_runs: how often at most.
        most_seconds: when to stop; never if negative.
        delay: seconds to sleep between two calls; none if negative.
    """
    found: list[float] = []
    end = time.perf_counter() + most_seconds
    while not found or (len(found) < most_runs and (most_seconds < 0 or time.perf_counter() < end)):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
        if delay > 0:
            time.sleep(delay)
    return Latencies(sorted(found))


def value_of(
    shape: tuple[int, ...], dtype: DType, given: Sequence[float] = ()
) -> np.ndarray[Any, Any]:
    """What an input is fed: the numbers that were given, over and over, or a ramp.

    Raises:
        InvalidArgumentError: numbers were given for a type that is none.
    """
    count = int(np.prod(shape))
    if dtype is dtypes.string or dtype is dtypes.bool:
        if given:
            raise errors.InvalidArgumentError(
                None, None, f"--input_layer_values: an input of {dtype.name} takes no numbers"
            )
        return np.zeros(shape, dtype.np) if dtype is dtypes.bool else np.full(shape, b"", object)
    ramp = np.asarray(given) if given else np.arange(count) % 256 / (1 if dtype.is_integer else 256)
    values = np.resize(ramp, shape)
    if dtype.is_quantized:
        return values.astype(dtype.np[0]).view(dtype.np)
    return values.astype(dtype.np)


def main(argv: Sequence[str] | None = None, prog: str = "benchmark_model") -> int:
    """Runs the tool; returns its exit status.

    Raises:
        NotFoundError: there is no graph.
        InvalidArgumentError: a layer does not exist, or an input does not fit.
    """
    parser = create_parser(prog)
    args = parser.parse_args(argv)
    layers, shapes, types = args.input_layer, args.input_layer_shape, args.input_layer_type
    if not len(layers) == len(shapes) == len(types):
        parser.error(
            "There must be the same number of items in --input_layer, --input_layer_shape, and "
            f"--input_layer_type; they have {len(layers)}, {len(shapes)} and {len(types)}"
        )
    if args.output_prefix and not args.benchmark_name:
        parser.error("--output_prefix needs --benchmark_name: files are named by both")
    if args.output_prefix:
        with naming("--output_prefix"):
            check_free(args.output_prefix, args.benchmark_name)
    graph_def = read_graph(args.graph)
    start = time.perf_counter()
    with Graph().as_default() as graph, graph.device(args.device or None):
        import_graph_def(graph_def, name="")
    with Session(graph=graph, config=_config(args)) as session:
        took = time.perf_counter() - start
        for name in args.init_ops:
            session.run(_element(graph, "init_ops", name, False))
        given = [*args.input_layer_values, *([()] * len(layers))]
        feeds = {
            _element(graph, "input_layer", name): value_of(shape, dtype, values)
            for name, shape, dtype, values in zip(layers, shapes, types, given, strict=False)
        }
        for tensor, value in feeds.items():
            _check_fit(tensor, value)
        fetches = [_element(graph, "output_layer", name) for name in args.output_layer]
        fetches += [_element(graph, "target_layer", name, False) for name in args.target_layer]
        found = _benchmark(session, fetches, feeds, args)
    if args.output_prefix:
        moved = next((value.nbytes for value in feeds.values()), None)
        with naming("--output_prefix"):
            for entry in found.entries(args.benchmark_name, took, moved):
                write_entries(args.output_prefix, entry)
    if args.json:
        print(json.dumps({"initialized_us": took * 1e6, **found.to_dict()}, indent=2))
        return 0
    if args.benchmark_name:
        print(f"Benchmark: {args.benchmark_name}")
    print(f"Initialized session in {took:.6f}s")
    for line in found.lines(args):
        print(line)
    return 0


def _check_fit(tensor: Any, value: np.ndarray[Any, Any]) -> None:
    told = f"'{tensor.op.name}' has"
    if not tensor.get_shape().is_compatible_with(value.shape):
        raise errors.InvalidArgumentError(
            None, None, f"--input_layer_shape: {told} shape {tensor.get_shape()}, not {value.shape}"
        )
    if tensor.dtype.base_dtype.np != value.dtype:
        raise errors.InvalidArgumentError(
            None, None, f"--input_layer_type: {told} type {tensor.dtype.name}, not {value.dtype}"
        )


@dataclass(slots=True)
class _Found:
    """What was measured.

    Attributes:
        warm: the runs before, if there were any.
        plain: the runs that count.
        traced: those in which each op was timed.
        tables: what the ops took in these.
        memory: the plan of the program.
        flops: an estimate for one run; None if none was asked for.
    """

    warm: Latencies | None
    plain: Latencies
    traced: Latencies
    tables: StepTables
    memory: Memory
    flops: int | None

    def lines(self, args: Any) -> Iterator[str]:
        """The report of TensorFlow's tool, with the tables that the options ask for."""
        warm = 0 if self.warm is None else self.warm.mean * 1e6
        yield (
            f"Average inference timings in us: Warmup: {warm:.0f}, "
            f"no stats: {self.plain.mean * 1e6:.0f}, with stats: {self.traced.mean * 1e6:.0f}"
        )
        yield f"Latency: {self.plain.line()}"
        planned, buffers = self.memory.planned_bytes, self.memory.buffers
        yield f"Planned memory: {readable_bytes(planned)} in {buffers} buffers"
        yield from self.tables.lines(
            run_order=args.run_order_limit if args.show_run_order else None,
            by_time=args.time_limit if args.show_time else None,
            by_memory=args.memory_limit if args.show_memory else None,
            by_type=args.show_type, summary=args.show_summary,
        )  # fmt: skip
        if args.show_sizes:
            yield from self.tables.size_lines()
        if self.flops is not None:
            rate = self.flops / self.plain.mean
            yield f"FLOPs estimate: {self.flops:,}; FLOPs/second: {rate:,.0f}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "runs": len(self.plain.seconds), "latency_us": self.plain.figures(),
            "warmup_us": None if self.warm is None else self.warm.mean * 1e6,
            "traced_us": self.traced.mean * 1e6, "planned_bytes": self.memory.planned_bytes,
            "buffers": self.memory.buffers, "flops": self.flops, "ops": self.tables.records(),
        }  # fmt: skip

    def entries(self, name: str, initialized: float, moved: int | None) -> Iterator[Any]:
        """What TF's tool writes: the runs, their beginning, and what each op type took.

        Args:
            name: of the benchmark, with which all names begin.
            initialized: seconds that graph and session took to make.
            moved: bytes of the first input; None without inputs.
        """

        def entry(postfix: str, runs: int, seconds: float, throughput: float = -1) -> Any:
            return protos.BenchmarkEntry(
                name=f"{name}_{postfix}" if postfix else name, iters=runs, cpu_time=-1,
                wall_time=seconds, throughput=throughput,
            )  # fmt: skip

        rate = -1 if moved is None else moved / self.plain.mean / 2**20
        yield entry("", len(self.plain.seconds), self.plain.mean, rate)
        yield entry("meta-init", 1, initialized)
        if self.warm is not None:
            first = self.warm.mean
            yield entry("meta-first-inference", len(self.warm.seconds), first)
            yield entry("meta-init-plus-first-inference", 1, initialized + first)
        for op, us in self.tables.us_by_type().items():
            yield entry(op, self.tables.steps, us / 1e6)


def _benchmark(session: Session, fetches: list[Any], feeds: dict[Any, Any], args: Any) -> _Found:
    def run() -> None:
        session.run(fetches, feeds)

    tables = StepTables(session.graph)

    def traced() -> None:
        options = protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE)
        metadata = protos.RunMetadata()
        session.run(fetches, feeds, options=options, run_metadata=metadata)
        tables.add(metadata.step_stats)

    delay = args.inference_delay
    warm = latencies(run, args.warmup_runs, -1, delay) if args.warmup_runs > 0 else None
    time.sleep(max(args.inter_benchmark_delay, 0))
    plain = latencies(run, args.max_num_runs, args.max_time, delay)
    time.sleep(max(args.inter_benchmark_delay, 0))
    seen = latencies(traced, args.max_num_runs, args.max_time, delay)
    flops = None
    if args.show_flops:
        flops = count_flops(session.graph, {t: v.shape for t, v in feeds.items()})
    return _Found(warm, plain, seen, tables, session.explain(fetches, feeds).memory, flops)


def _config(args: Any) -> Any:
    config = protos.ConfigProto(allow_soft_placement=True)
    if args.num_threads > 0:
        config.intra_op_parallelism_threads = args.num_threads
    return config


def _element(graph: Graph, option: str, name: str, is_tensor: bool = True) -> Any:
    try:
        if is_tensor:
            return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
        return graph.get_operation_by_name(name)
    except (KeyError, ValueError) as e:
        raise errors.InvalidArgumentError(None, None, f"--{option}: {e.args[0]}") from None


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in listed(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no numbers") from None


def create_parser(prog: str) -> ToolParser:
    """The tool's options."""
    parser = ToolParser(prog=prog, description=__doc__)
    parser.add_argument("--graph", required=True, help="file of the GraphDef")
    parser.add_argument("--init_ops", type=listed, default=[], help="ops to run first, by commas")
    parser.add_argument("--input_layer", type=listed, default=[], help="inputs, by commas")
    parser.add_argument(
        "--input_layer_shape", type=split_by(":", shape_of), default=[],
        help="their shapes, with colons between them: 1,224,224,3:1,20",
    )  # fmt: skip
    parser.add_argument(
        "--input_layer_type", type=split_by(",", type_of), default=[], help="types, by commas"
    )
    parser.add_argument(
        "--input_layer_values", type=split_by(":", _numbers), default=[],
        help="numbers to feed, by commas, inputs by colons",
    )  # fmt: skip
    parser.add_argument("--output_layer", type=listed, default=[], help="outputs, by commas")
    parser.add_argument("--target_layer", type=listed, default=[], help="ops to run, by commas")
    parser.add_argument(
        "--benchmark_name", default="", help="name of the benchmark in the report and of its files"
    )
    parser.add_argument(
        "--output_prefix", default="",
        help="write BenchmarkEntries to files whose names begin with this",
    )  # fmt: skip
    parser.add_argument("--device", default="", help="where ops run that name no device")
    for name, kind, default, text in (
        ("--max_num_runs", int, 1000, "runs at most"),
        ("--max_time", float, 10.0, "seconds at most"),
        ("--warmup_runs", int, 1, "runs before"),
        ("--inference_delay", float, -1.0, "seconds between runs"),
        ("--inter_benchmark_delay", float, -1.0, "seconds before each series of runs"),
        ("--num_threads", int, -1, "threads that an op may use"),
        ("--run_order_limit", int, 0, "rows by run order; 0 for all"),
        ("--time_limit", int, 10, "rows by time"),
        ("--memory_limit", int, 10, "rows by memory"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{text} (default: {default})")
    for name, default_on, text in (
        ("--show_sizes", False, "list types and sizes of what each op made"),
        ("--show_run_order", True, "list ops in the order in which they ran"),
        ("--show_time", True, "list ops by the time they took"),
        ("--show_memory", True, "list ops by the memory of their results"),
        ("--show_type", True, "list op types"),
        ("--show_summary", True, "tell the totals"),
        ("--show_flops", False, "estimate floating-point operations"),
    ):
        add_switch(parser, name, default_on, text)
    add_json(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
