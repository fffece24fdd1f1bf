"""`Engine`: a session's devices, state and compiler, behind `Session.run`."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler import pipeline
from opdock.compiler.clean.prune import lone_node, prune
from opdock.compiler.emit.memory import plan_memory
from opdock.compiler.emit.overlap import overlap
from opdock.compiler.ir.block import HOST, Block, Node
from opdock.compiler.place.ladder import climb
from opdock.compiler.place.placer import Placer, place
from opdock.compiler.place.target import Target
from opdock.dtypes import DType
from opdock.graph.control.func_graph import arg_op
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime import config as configuration
from opdock.runtime import targets
from opdock.runtime.inspect.trace import Tracer, partition_graphs, traced
from opdock.runtime.program import body
from opdock.runtime.program.collector import collector_waits
from opdock.runtime.program.control import bind_control
from opdock.runtime.program.parallel import Helpers, run_parallel
from opdock.runtime.program.program import NoBuffersError, Program, bind_kernel
from opdock.runtime.recover.fallback import Fallback
from opdock.runtime.resources import ResourceManager
from opdock.shapes import Shape

_THREADS: Final = 4
"""Steps at the same time, unless a session asks for more: blocking work is seldom wider."""


class Engine:
    """Everything of a session that is neither the graph nor the caller's structures."""

    def __init__(self, config: Any) -> None:
        self._config = configuration.read(config)
        self._proto = config
        self.resources = ResourceManager()
        self.stale = False
        self._logged: set[str] = set()
        self._log_done = 0
        self._placeable: set[str] = set()  # devices that operations ask for and somebody has
        self._placeable_done = 0
        self._steps: weakref.WeakKeyDictionary[Program, int] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._devices: targets.SessionDevices | None = None
        self._placer_made: Placer | None = None
        self._fallback: Fallback | None = None

    # ------------------------------------------------------------ devices
    def prepare(self) -> None:
        """Finds and opens devices now, as TensorFlow does, rather than in the first step."""
        # Without devices a session can still be made: what it runs says what is missing.
        with contextlib.suppress(errors.NotFoundError):
            self.devices.open_likely()

    @property
    def devices(self) -> targets.SessionDevices:
        """The session's devices, discovered on first use."""
        if self._devices is None:
            with self._lock:
                if self._devices is None:
                    self._devices = targets.discover(self._config)
        return self._devices

    @property
    def placer(self) -> Placer:
        """Placement under this session's rules."""
        if self._placer_made is None:
            self._placer_made = Placer(
                targets=self.devices.targets,
                soft=self._config.soft,
                resources=self.resources,
                unavailable=self.devices.unavailable,
                hook=self.devices.hook,
            )
            self.devices.lost = self._placer_made.lost
        return self._placer_made

    @property
    def fallback(self) -> Fallback:
        """The run-time fallback."""
        if self._fallback is None:
            self._fallback = Fallback(self.placer, self.resources, self.between, self._mark_stale)
        return self._fallback

    def _mark_stale(self) -> None:
        self.stale = True

    def plain(self, program: Program) -> bool:
        """Whether a step may take the straight line: nothing limits, measures or spreads it."""
        config = self._config
        return program.overlap is None and not config.deadline_ms and not config.cost_model_every

    @property
    def threads(self) -> int:
        """How many steps may run at the same time; by default a few, if there are cores."""
        return self._config.inter_op_threads or min(_cores(), _THREADS)

    @functools.cached_property
    def _helpers(self) -> Helpers:
        return Helpers(self.threads - 1)

    def list_devices(self) -> list[Any]:
        """The devices with name, type and memory limit."""
        return self.devices.attributes()

    def close(self) -> None:
        """Drops the session's state."""
        self.resources.clear()
        if "_helpers" in self.__dict__:
            self._helpers.close()
        if self._devices is not None:
            self._devices.close()

    # ------------------------------------------------------------ compiling
    @collector_waits()
    def compile(
        self,
        graph: Graph,
        fetches: Sequence[Tensor],
        runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
    ) -> Program:
        """A bound program."""
        if self._config.log_placement:
            self._log(graph)
        if not self._config.place_pruned:
            self._check_devices(graph)
        block, lined_up, plan = pipeline.lower(
            fetches, runs, feeds, self.placer, self.evaluate, self.options
        )
        program = self.bind(block, lined_up, plan)
        one_core = self._config.intra_op_threads == 1
        program.overlap = overlap(lined_up.steps, self.threads, _cores(), one_core)
        return program

    def _check_devices(self, graph: Graph) -> None:
        """TF places the whole graph before it prunes: a device that nobody has fails any step.

        Raises:
            InvalidArgumentError: an operation asks for such a device.
        """
        fresh = graph._ops[self._placeable_done :]
        for op in fresh:
            if op._device and op._device not in self._placeable:
                with contextlib.suppress(errors.UnavailableError):  # lost: who needs it will hear
                    self.placer.candidates(lone_node(op), op._device)
                self._placeable.add(op._device)
        self._placeable_done += len(fresh)

    def bind(self, block: Block, lined_up: Any, plan: Any) -> Program:
        """Binds kernels, constants and buffers."""
        make = functools.partial(
            Program, resources=self.resources, copier=self.copier, control=self.control,
            decline=self.fallback, replays="replay" not in self.options.disabled,
        )  # fmt: skip
        try:
            return make(block, lined_up, plan)
        except NoBuffersError:
            # Each kernel may still find room for its own result, or move where there is some.
            for step in lined_up.steps:
                step.out, step.outs = None, ()
            return make(block, lined_up, plan_memory(lined_up, share=False))

    @functools.cached_property
    def options(self) -> pipeline.Options:
        """The compiler options of the session."""
        return pipeline.Options(
            self._config.disabled_passes, self.devices.passes(), self.devices.router,
            self._config.relaxed,
        )  # fmt: skip

    def prefers(self, node: Node, target: Target) -> bool:
        """Whether a node of a function body should stay on the device of its data."""
        if node.builtin:
            return True
        choice, _ = climb(node, target, self.resources, self.placer.banned)
        return choice is not None

    def control(self, node: Node) -> Callable[..., Any]:
        """The callable of a control-flow node."""
        return bind_control(node, functools.partial(body.compile_body, self))

    def evaluate(self, node: Node, inputs: list[Any]) -> list[Any] | None:
        """Runs one node on host arrays, for constant folding; None when no host kernel can."""
        if node.builtin:
            return None
        host = self.devices.host
        if host is None:
            return None
        choice, _ = climb(node, host, self.resources, lambda *_: None)
        if choice is None or choice.kernel is None:
            return None
        saved, node.target, node.kernel = node.target, host, choice.kernel
        try:
            fn = bind_kernel(node, self.resources)
            args = [*inputs, None] if choice.kernel.out else inputs
            with np.errstate(all="ignore"):
                result = fn(*args)
        except errors.OpError:
            return None
        except (ValueError, TypeError, IndexError, ZeroDivisionError, NotImplementedError):
            return None
        finally:
            node.target, node.kernel = saved, None
        return [result] if len(node.out_dtypes) == 1 else list(result)

    # ------------------------------------------------------------ copies
    def copier(self, node: Node) -> Callable[[Any], Any]:
        """The callable of a copy node."""
        carry: Callable[[Any], Any] | None = node.attrs.get("carry")
        if carry is None:
            return self.between(node.attrs["from"], node.attrs["to"], node.name)
        return carry

    def between(self, source: str, destination: str, name: str = "") -> Callable[[Any], Any]:
        """A function that moves a buffer from one place to another, for copies outside the plan.

        Args:
            source, destination: names of devices, or `HOST`.
            name: what traces call the value.
        """
        if source == destination:
            return lambda value: value
        for device in {source, destination} - {HOST}:
            self._target(device).opened()
        hops = self.devices.router.find({source: False}, destination, own=True)
        return traced(hops, name)

    def _target(self, name: str) -> Target:
        return next(t for t in self.devices.targets if t.name == name)

    # ------------------------------------------------------------ running with options
    def run(
        self, program: Program, values: Sequence[Any], options: Any, metadata: Any
    ) -> Sequence[Any]:
        """One step under RunOptions, filling RunMetadata."""
        timeout = getattr(options, "timeout_in_ms", 0) or self._config.deadline_ms
        tracing = options is not None and options.trace_level > 0
        if self._config.cost_model_every:
            step = self._steps[program] = self._steps.get(program, -1) + 1
            tracing = tracing or self._config.wants_cost_model(step)
        if timeout:
            return body.with_deadline(
                timeout, lambda: self._run(program, values, options, metadata, tracing)
            )
        return self._run(program, values, options, metadata, tracing)

    def _run(
        self, program: Program, values: Sequence[Any], options: Any, metadata: Any, tracing: bool
    ) -> Sequence[Any]:
        tracer = Tracer(_devices(program), _planned(program)) if tracing else None
        if tracer is not None:
            with tracer:
                raw = program.interpret(values, tracer)
                tracer.constants(program.block)
        elif program.overlap is not None:
            raw = run_parallel(program, values, program.overlap, self._helpers)
        else:
            raw = program.run(values)
        if metadata is not None:
            metadata.Clear()
            if tracer is not None:
                metadata.step_stats.CopyFrom(tracer.step_stats())
                metadata.cost_graph.CopyFrom(tracer.cost_graph())
            if options is not None and options.output_partition_graphs:
                metadata.partition_graphs.extend(partition_graphs(program))
        return raw

    # ------------------------------------------------------------ log_device_placement
    def _log(self, graph: Graph) -> None:
        """Prints TF's placement lines for operations that it has not printed yet.

        TF places the whole graph before it prunes, and prints sources last.
        """
        fresh = [op for op in graph.get_operations()[self._log_done :] if op.spec is not arg_op]
        self._log_done = len(graph.get_operations())
        lines: list[tuple[bool, str]] = []
        try:
            block = prune([], fresh, [])
            place(block, self.placer)
            where = {n.name: n.target.name for n in block.nodes if n.target is not None}
        except errors.OpError:
            where = {}
        for op in fresh:
            device = where.get(op.name)
            if device is not None:
                source = (
                    not op.inputs and len(op.outputs) == 1 and not op.outputs[0].dtype._is_ref_dtype
                )
                lines.append((source, f"{op.name}: ({op.type}): {device}"))
        for _, line in sorted(lines, key=lambda x: x[0]):
            print(line, flush=True)


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _devices(program: Program) -> list[Any]:
    """The devices, other than the host, on which a program runs."""
    targets = {s.node.target for s in program.schedule.steps if s.node.target is not None}
    return [t.device for t in targets if not t.is_host]


def _planned(program: Program) -> dict[str, int]:
    """For each device the bytes of the program's planned buffers."""
    sizes = {target.name: size for target, size in program.plan.blocks.items()}
    for planned in program.plan.buffers:
        if planned.offset is None:
            name = planned.form.target.name
            sizes[name] = sizes.get(name, 0) + planned.form.nbytes
    return sizes
