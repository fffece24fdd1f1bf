"""Recordings: whole steps of a session in one file, to be run again anywhere.

A step is its graph, what was fed, the variables and the random streams as they were before it, what
came from outside of the graph while it ran (elements of datasets and queues, random numbers, what
Python functions gave), and its results. The file is a zip archive of NumPy's arrays, none of them
compressed or pickled: `recording` is JSON, `graph_0` ... are GraphDefs.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.compiler.clean.prune import prune
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import FEED, HOST
from opdock.compiler.place.target import memory_of
from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Control
from opdock.io import protos
from opdock.io.array_files import Arrays
from opdock.io.files import atomic_write
from opdock.runtime.engine import Engine
from opdock.runtime.inspect.cases import pack, unpack
from opdock.runtime.inspect.walk import cell_key, variable_of
from opdock.runtime.program.program import Program
from opdock.shapes import Shape

__all__ = ["RecordedStep", "Recorder", "Recording", "load_recording"]

Array = npt.NDArray[Any]
_FORMAT: Final = "opdock recording 1"


@dataclass(frozen=True, slots=True)
class Decision:
    """Where an operation ran, and how: a row of `Session.explain`."""

    op: str
    type: str
    device: str
    how: str
    kernel: str
    line: str


@dataclass
class RecordedStep:
    """A step.

    Attributes:
        graph: the number of its graph.
        fetches, targets: names of the tensors that were fetched, and of the operations that ran.
        feeds: what was fed, by name of the tensor.
        given: what came from outside of the graph, likewise.
        outside: operations with effects beyond the session, which a replay leaves out.
        state: the variables before, by container and name.
        streams: the random streams before, by operation: key and counter.
        results: of the fetches.
        decisions: where operations ran.
    """

    graph: int
    fetches: list[str]
    targets: list[str]
    feeds: dict[str, Array]
    given: dict[str, Array] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)
    state: dict[tuple[str, str], Array] = field(default_factory=dict)
    streams: dict[str, tuple[int, int]] = field(default_factory=dict)
    results: list[Array] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


@dataclass
class Recording:
    """Steps and their graphs.

    Attributes:
        graphs: as `GraphDef` messages.
        steps: in the order in which they ran.
    """

    graphs: list[Any]
    steps: list[RecordedStep]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the recording; the file appears complete or not at all."""
        arrays = _Arrays()
        data = {"format": _FORMAT, "steps": [_step_as_data(s, arrays) for s in self.steps]}
        members: dict[str, Array] = dict(arrays.found)
        members["recording"] = np.frombuffer(json.dumps(data).encode(), np.uint8)
        for number, graph in enumerate(self.graphs):
            raw = graph.SerializeToString(deterministic=True)
            members[f"graph_{number}"] = np.frombuffer(raw, np.uint8)
        with atomic_write(os.fspath(path)) as file:
            np.savez(file, **members)  # type: ignore[arg-type]
        return Path(path)


class _Arrays:
    """Arrays of a file, each once: most variables are the same before every step."""

    def __init__(self) -> None:
        self.found: dict[str, Array] = {}

    def put(self, value: Array) -> dict[str, Any]:
        """Keeps an array, and says how it is read."""
        own: dict[str, Array] = {}
        packed = pack(own, "", value)
        (array,) = own.values()
        about = f"{array.dtype}{array.shape}".encode()
        key = "a" + hashlib.sha256(about + np.ascontiguousarray(array).tobytes()).hexdigest()
        self.found[key] = array
        return packed | {"key": key}


def _step_as_data(step: RecordedStep, arrays: _Arrays) -> dict[str, Any]:
    return {
        "graph": step.graph, "fetches": step.fetches, "targets": step.targets,
        "feeds": {n: arrays.put(v) for n, v in step.feeds.items()},
        "given": {n: arrays.put(v) for n, v in step.given.items()},
        "outside": step.outside,
        "state": [[*key, arrays.put(v)] for key, v in step.state.items()],
        "streams": {n: [f"{word:x}" for word in place] for n, place in step.streams.items()},
        "results": [arrays.put(v) for v in step.results],
        "decisions": [asdict(d) for d in step.decisions],
    }  # fmt: skip


# ---------------------------------------------------------------- read
def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Reads what `Recording.save` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no recording.
    """
    from google.protobuf.message import DecodeError

    try:
        with Arrays(path, packed=False) as arrays:
            data = json.loads(arrays["recording"].tobytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']!r}")
            steps = [_step_of(s, arrays) for s in data["steps"]]
            count = 1 + max((s.graph for s in steps), default=-1)
            found = [arrays[f"graph_{i}"] for i in range(count)]
        graphs = [protos.GraphDef.FromString(a.tobytes()) for a in found]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError) as e:
        raise ValueError(f"{path} is no recording: {type(e).__name__}: {e}") from e
    return Recording(graphs, steps)


def _step_of(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> RecordedStep:
    def named(part: str) -> dict[str, Array]:
        return {str(n): unpack(arrays, p) for n, p in data[part].items()}

    streams = {}
    for name, (key, counter) in data["streams"].items():
        streams[str(name)] = int(key, 16), int(counter, 16)
    if len(data["fetches"]) != len(data["results"]):
        raise ValueError(f"{len(data['results'])} results of {len(data['fetches'])} fetches")
    return RecordedStep(
        int(data["graph"]), [*map(str, data["fetches"])], [*map(str, data["targets"])],
        named("feeds"), named("given"), [*map(str, data["outside"])],
        {(str(c), str(n)): unpack(arrays, p) for c, n, p in data["state"]}, streams,
        [unpack(arrays, p) for p in data["results"]],
        [Decision(**{k: str(v) for k, v in d.items()}) for d in data["decisions"]],
    )  # fmt: skip


# ---------------------------------------------------------------- recorded
@dataclass(frozen=True, slots=True)
class _Made:
    """What a program was made of."""

    fetches: Sequence[Tensor]
    runs: Sequence[Operation]
    feeds: Sequence[tuple[Tensor, DType, Shape]]

    @property
    def graph(self) -> Graph:
        """The graph of all that."""
        return (*(t.op for t in self.fetches), *self.runs)[0].graph


class Recorder:
    """Keeps the first steps of sessions that do more than to initialize variables.

    Args:
        count: how many steps.
        path: the file, which is written again with each step: programs end in many ways.
    """

    def __init__(self, count: int, path: str | os.PathLike[str]) -> None:
        self._count, self._path = count, path
        self._lock = threading.RLock()
        self._programs: weakref.WeakKeyDictionary[Program, _Made] = weakref.WeakKeyDictionary()
        self._graphs: list[Graph] = []
        self.steps: list[RecordedStep] = []

    def compiled(
        self, program: Program, fetches: Sequence[Tensor], runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
    ) -> None:  # fmt: skip
        """Learns what a program was made of."""
        with self._lock:
            self._programs[program] = _Made(list(fetches), list(runs), list(feeds))

    def run(self, engine: Engine, program: Program, values: Sequence[Any]) -> Sequence[Any]:
        """One step, recorded if it is to be."""
        with self._lock:
            made = self._programs.get(program)
            if made is None or len(self.steps) >= self._count:
                return program.run(values)
            block = prune(made.fetches, made.runs, made.feeds)
            order = [n.origin for n in block.nodes if n.op != FEED and n.origin is not None]
            state = engine.variables()
            used = {cell_key(op) for op in order if op.spec.traits.holds}
            if not made.feeds and not used & state.keys():
                return program.run(values)
            step = self._begun(engine, made, values, {k: state[k] for k in used & state.keys()})
            outside = [op for op in order if is_outside(op, engine)]
            step.outside = [op.name for op in outside]
            raw = program.interpret(values, _Listener(engine, {*outside}, step))
            step.results = [np.array(v, copy=True) for v in raw[: len(made.fetches)]]
            step.decisions = _decisions(program, order)
            self.steps.append(step)
            self._save()
            return raw

    def _begun(
        self, engine: Engine, made: _Made, values: Sequence[Any],
        state: dict[tuple[str, str], Array],
    ) -> RecordedStep:  # fmt: skip
        if made.graph not in self._graphs:
            self._graphs.append(made.graph)
        feeds = {t.name: np.array(v, copy=True) for (t, _, _), v in zip(made.feeds, values)}
        streams = {n: s.reserve(0) for n, s in engine.resources.streams().items()}
        return RecordedStep(
            self._graphs.index(made.graph), [t.name for t in made.fetches],
            [op.name for op in made.runs], feeds, state=state, streams=streams,
        )  # fmt: skip

    def _save(self) -> None:
        graphs = [graph.as_graph_def() for graph in self._graphs]
        Recording(graphs, self.steps).save(self._path)


def is_outside(op: Operation, engine: Engine) -> bool:
    """Whether what an operation gives or does is not decided by its graph, inputs and variables."""
    traits = op.spec.traits
    if not op.spec.is_stateful or traits.local or traits.control is not Control.NONE:
        return False
    variables = engine.resources.named("variable")
    if traits.holds:
        return cell_key(op) not in variables
    state = [variable_of(t) for t in op.inputs if not t.dtype._is_data]
    return not state or any(v is None or cell_key(v) not in variables for v in state)


class _Listener:
    """Keeps what comes from outside while a step runs."""

    def __init__(self, engine: Engine, outside: set[Operation], step: RecordedStep) -> None:
        self._engine, self._outside, self._step = engine, outside, step

    def before(self, step: Step, inputs: Sequence[Any]) -> None:
        """Nothing is known of a step before it is over."""

    def after(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """Keeps the results of an operation that is outside."""
        node, op = step.node, step.node.origin
        if op not in self._outside or op is None or node.name != op.name or node.op != op.type:
            return
        for i, (tensor, value) in enumerate(zip(op.outputs, results)):
            if tensor.dtype._is_data:
                where = HOST if i in node.host_outputs else memory_of(node.target)
                self._step.given[tensor.name] = self._engine.to_host(value, where)


def _decisions(program: Program, order: Sequence[Operation]) -> list[Decision]:
    lines = {op.name: op.user_line for op in order}
    found = []
    for node in program.block.nodes:
        for one in (node, *(node.fused.members if node.fused is not None else ())):
            if one.name in lines:
                device = "" if node.target is None else node.target.name
                kernel = "" if node.kernel is None else node.kernel.qualname
                how = node.how if one is node else "fused"
                found.append(Decision(one.name, one.op, device, how, kernel, lines[one.name]))
    return found
