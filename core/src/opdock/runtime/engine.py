"""`Engine`: a session's devices, state and compiler, behind `Session.run`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from opdock import errors
from opdock.compiler import pipeline
from opdock.compiler.clean.ahead import Ahead, ahead
from opdock.compiler.clean.prune import prune
from opdock.compiler.ir.block import HOST, Node
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.placeable import Placeable
from opdock.compiler.place.placer import Placer, place
from opdock.devices import pool
from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.io import protos
from opdock.kernels.select.notes import note
from opdock.runtime import config as configuration
from opdock.runtime import targets, watcher
from opdock.runtime.cache.in_two import InTwo, comes_here
from opdock.runtime.cancellation import current
from opdock.runtime.deadline import with_deadline
from opdock.runtime.inspect.placement_log import PlacementLog
from opdock.runtime.inspect.trace import Tracer, copy_node, partition_graphs, traced
from opdock.runtime.program.bind import Services, bind_alone, bind_kernel
from opdock.runtime.program.checks import Checks
from opdock.runtime.program.control import Branches, Loop, bind_control
from opdock.runtime.program.functions import LazyFunction
from opdock.runtime.program.parallel import Helpers
from opdock.runtime.program.program import Program
from opdock.runtime.recover.fallback import Fallback
from opdock.runtime.recover.lost import Losses
from opdock.runtime.resources import ResourceManager
from opdock.runtime.servers import CLOSED, LocalServer
from opdock.runtime.watcher import Watcher
from opdock.shapes import Shape
from opdock.util.collector import collector_waits
from opdock.util.lazy import lazy

if TYPE_CHECKING:
    from opdock.compiler.emit.turns import Undecided, Whole
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.kernels.expr.turns import MakeTurns
    from opdock.runtime.inspect.explain import Explanation
    from opdock.runtime.program.turns import ManyTurns, TurnsByShape

_THREADS: Final = 4
"""Steps at the same time, unless a session asks for more: blocking work is seldom wider."""
_NO_RESULT: Final = (ValueError, TypeError, IndexError, ZeroDivisionError, NotImplementedError)


class Engine:
    """Everything of a session that is neither the graph nor the caller's structures.

    Args:
        config: a ConfigProto, or None.
        server: whose state the session shares; None for a session of its own.
        task: what the session calls the server's task; by default what that calls itself.
    """

    def __init__(self, config: Any, server: LocalServer | None = None, task: str = "") -> None:
        self._task = task or (pool.PREFIX if server is None else server.task)
        if server is not None:
            config = server.config if config is None else _with_devices_of(server, config)
        self._config = configuration.read(config)
        isolated = config is not None and config.isolate_session_state
        self.resources = ResourceManager(None if server is None or isolated else server.store)
        self.resources.task = self._task
        if server is not None:
            self.resources.place = server.meetings
            self.resources.cancellation.text = CLOSED
        self.experience = Experience()
        self.watcher = watcher.asked()
        self._log = PlacementLog(self.placement)
        self._steps: weakref.WeakKeyDictionary[Program | InTwo, int] = weakref.WeakKeyDictionary()
        self._functions: weakref.WeakKeyDictionary[FuncGraph, LazyFunction] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.RLock()
        self._devices: targets.SessionDevices | None = None

    # ------------------------------------------------------------ devices
    @collector_waits(lasting=True)
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
                    self._devices = targets.discover(self._config, self.experience, self._task)
        return self._devices

    @lazy
    def placer(self) -> Placer:
        """Placement under this session's rules."""
        devices = self.devices
        return Placer(
            devices.targets, self._config.soft, self.resources, self.experience,
            devices.unavailable, devices.hook,
        )  # fmt: skip

    def plain(self, program: Program | InTwo) -> bool:
        """Whether a step may take the straight line: nothing limits, watches or spreads it, and it
        meets nothing that outlives the session."""
        config = self._config
        if self.watcher is not None or program.overlap is not None or self.resources.shares:
            return False
        return not config.deadline_ms and not config.cost_model_every

    def watch(self, found: Watcher | None) -> None:
        """Has all further steps watched, or none; they are compiled again."""
        self.watcher = found
        self.experience.changed()

    @property
    def threads(self) -> int:
        """How many steps may run at the same time; by default a few, if there are cores."""
        return self._config.inter_op_threads or min(_cores(), _THREADS)

    def list_devices(self) -> list[Any]:
        """The devices with name, type and memory limit."""
        return self.devices.attributes()

    def close(self) -> None:
        """Drops the session's state; steps that wait for something are cancelled."""
        self.resources.close()
        if "services" in self.__dict__:
            self.services.helpers.close()
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
        as_written: bool = False,
    ) -> Program | InTwo:
        """A bound program; the arguments are those of `Compiler.step`."""
        if self._config.log_placement:
            self._log.tell(graph)
        if not self._config.place_pruned:
            self._placeable.check(graph)
        # Who watches wants to see what was asked for.
        found = None if as_written or self.watcher is not None else ahead(fetches, runs, feeds)
        if found is not None:
            taking = self.compile_part(found.results, found.takers, feeds)
            if comes_here(taking):
                rest = functools.partial(self._rest, fetches, runs, feeds, found)
                return InTwo(taking, found.results, rest, len(fetches))
        return self.compile_part(fetches, runs, feeds, as_written)

    def _rest(
        self,
        fetches: Sequence[Tensor],
        runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
        taken: Ahead,
        came: Sequence[Shape],
    ) -> Program:
        """The program of what is left of a step, for the shapes of what came."""
        more = [(t, t._dtype, s) for t, s in zip(taken.results, came, strict=True)]
        return self.compile_part(fetches, runs, [*feeds, *more], done=taken.done)

    @collector_waits()
    def compile_part(
        self,
        fetches: Sequence[Tensor],
        runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
        as_written: bool = False,
        done: AbstractSet[Operation] = frozenset(),
    ) -> Program:
        """`compile` for what is not all of the session's: no word on what else is in the graph."""
        for target in self.devices.targets:
            target.ask_again()
        program = self.bind(self.compiler.step(fetches, runs, feeds, as_written, done))
        if self._config.disabled_passes:
            self.devices.tell_unknown()
        if self.watcher is not None:
            self.watcher.compiled(program, fetches, runs, feeds)
        return program

    @lazy
    def _placeable(self) -> Placeable:
        return Placeable(self.placer)

    def bind(self, compiled: pipeline.Compiled) -> Program:
        """A program of what the compiler made."""
        return self._bind(self.services, compiled)

    def _bind(self, services: Services, compiled: pipeline.Compiled) -> Program:
        return Program(compiled, services, Fallback(self.compiler, services))

    def _control(self, node: Node, services: Services) -> Branches | Loop:
        """The callable of a control-flow node, whose bodies share what its own program has."""
        return bind_control(
            node,
            functools.partial(self._branch, services),
            functools.partial(self._loop, services),
            services.resources.cancellation,
        )

    @collector_waits()
    def _branch(self, services: Services, function: FuncGraph, node: Node) -> Program:
        """The program of a branch."""
        return self._bind(services, self.compiler.branch(function, node))

    @collector_waits()
    def _loop(
        self, services: Services, node: Node, freely: bool
    ) -> tuple[Program, Program, ManyTurns | TurnsByShape | None]:
        """The programs of a loop's condition and body, and what makes many turns in one call."""
        compiled = self.compiler.loop(node, freely)
        many = self._many(services, node, compiled.whole)
        condition = self._bind(services, compiled.condition)
        return condition, self._bind(services, compiled.body), many

    def _many(
        self, services: Services, node: Node, whole: Whole | Undecided | str
    ) -> ManyTurns | TurnsByShape | None:
        """What makes many turns of a loop in one call, if it is to be had."""
        if isinstance(whole, str):
            note(f"turn by turn: {whole}")
            return None
        if self._checks is not None:
            return None
        # Most programs have no loop.
        from opdock.compiler.emit.turns import Undecided
        from opdock.runtime.program.turns import ManyTurns, TurnsByShape

        if isinstance(whole, Undecided):
            note(f"turn by turn until its shapes are known: {whole.why}")
            return TurnsByShape(functools.partial(self._turns, services, node), whole.read)
        call = cast("MakeTurns", bind_kernel(whole.node, services.resources))
        sums = self.compiler.sums(whole)
        if sums is None:
            return ManyTurns(whole, call)
        note("what its turns only add up is added up after many of them")
        return ManyTurns(whole, call, self._bind(services, sums))

    @collector_waits()
    def _turns(
        self, services: Services, node: Node, given: Sequence[Shape], elements: Mapping[int, Shape]
    ) -> ManyTurns | None:
        """What makes turns of a loop, compiled for shapes that have come."""
        try:
            whole = self.compiler.turns(node, given, elements)
        except errors.OpError:
            return None  # the op that these shapes do not fit tells
        return cast("ManyTurns | None", self._many(services, node, whole))

    def _function(self, function: FuncGraph) -> LazyFunction:
        """A function that kernels call, compiled when it is called first."""
        with self._lock:
            found = self._functions.get(function)
            if found is None:
                found = self._functions[function] = LazyFunction(
                    function,
                    self._compile_function,
                    self._bind_functions,
                    self.resources.lasting.cancellation,
                )
        return found

    @collector_waits()
    def _compile_function(self, function: FuncGraph, given: Sequence[Shape]) -> pipeline.Compiled:
        feeds = [(t, t._dtype, s) for t, s in zip(function.inputs, given, strict=True)]
        return self.compiler.step(function.outputs, function.targets, feeds)

    def _bind_functions(self) -> tuple[ResourceManager, Callable[[pipeline.Compiled], Program]]:
        """Random streams that begin anew, and what makes programs that share them."""
        # What a function has begun, an iterator say, may go on when the session has ended.
        lasting = self.resources.lasting
        own = dataclasses.replace(self.services, resources=lasting.with_own_streams())
        return own.resources, functools.partial(self._bind, own)

    @lazy
    def compiler(self) -> pipeline.Compiler:
        """The compiler under the session's options."""
        options = pipeline.Options(
            self._config.disabled_passes, self.devices.passes(), self.devices.router,
            self._config.relaxed, self.threads, _cores(), self._config.intra_op_threads == 1,
        )  # fmt: skip
        return pipeline.Compiler(self.placer, self.evaluate, bind_alone, self.on_host, options)

    @lazy
    def services(self) -> Services:
        """What the session's programs share."""
        return Services(
            self.resources, Losses(self.placer, self.resources), self.between,
            self._control,
            self._function,
            Helpers(self.threads - 1),
            checks=self._checks,
        )  # fmt: skip

    @lazy
    def _checks(self) -> Checks | None:
        return Checks(lambda: self.devices.targets) if self._config.check else None

    @lazy
    def fallback(self) -> Fallback:
        """What stands in for kernels, where others are asked."""
        return Fallback(self.compiler, self.services)

    def evaluate(self, node: Node, inputs: list[Any]) -> list[Any] | None:
        """Runs one node on host arrays, for constant folding; None when no host kernel can."""
        try:
            fn = self.on_host(node)
            if fn is None:
                return None
            with np.errstate(all="ignore"):
                result = fn(*inputs)
        except (errors.OpError, *_NO_RESULT):
            return None
        return [result] if len(node.out_dtypes) == 1 else list(result)

    def on_host(self, node: Node) -> Callable[..., Any] | None:
        """What computes a node from host arrays, wherever it is placed; None without such a kernel.

        Raises:
            OpError: the kernel's binder failed.
        """
        host = self.devices.host
        if node.builtin or host is None:
            return None
        choice, _ = self.placer.climb(node, host)
        if choice is None or choice.kernel is None:
            return None
        here = copy.copy(node)
        here.target, here.kernel = host, choice.kernel
        fn = bind_kernel(here, self.resources, self._checks)
        return fn if not choice.kernel.out else lambda *inputs: fn(*inputs, None)

    # ------------------------------------------------------------ copies
    def between(self, source: str, destination: str, name: str = "") -> Callable[[Any], Any]:
        """A function that moves a buffer from one place to another, for copies outside the plan.

        Args:
            source, destination: names of devices, or `HOST`.
            name: what traces call the value.
        """
        if source == destination:
            return lambda value: value
        for target in self.devices.targets:
            if target.name in (source, destination):
                target.opened()
        hops = self.devices.router.find({source: False}, destination, own=True)
        if self._checks is not None:
            hops = tuple(self._checks.guarded(h, copy_node(h, name)) for h in hops)
        return traced(hops, name)

    # ------------------------------------------------------------ running with options
    def run(
        self, program: Program | InTwo, values: Sequence[Any], options: Any, metadata: Any
    ) -> Sequence[Any]:
        """One step under RunOptions, filling RunMetadata."""
        timeout = getattr(options, "timeout_in_ms", 0) or self._config.deadline_ms
        tracing = options is not None and options.trace_level > 0
        if self._config.cost_model_every:
            step = self._steps[program] = self._steps.get(program, -1) + 1
            tracing = tracing or self._config.wants_cost_model(step)
        if timeout:
            return with_deadline(
                timeout, lambda: self._run(program, values, options, metadata, tracing)
            )
        return self._run(program, values, options, metadata, tracing)

    def _run(
        self, program: Program | InTwo, values: Sequence[Any], options: Any, metadata: Any,
        tracing: bool,
    ) -> Sequence[Any]:  # fmt: skip
        if not self.resources.shares:
            return self._step(program, values, options, metadata, tracing)
        # What outlives the session knows of its end only by who waits there.
        before = current.set((*current.get(), self.resources.cancellation))
        try:
            return self._step(program, values, options, metadata, tracing)
        finally:
            current.reset(before)

    def _step(
        self, program: Program | InTwo, values: Sequence[Any], options: Any, metadata: Any,
        tracing: bool,
    ) -> Sequence[Any]:  # fmt: skip
        tracer = Tracer(_devices(program), _planned(program)) if tracing else None
        if tracer is not None:
            with tracer:
                raw = program.interpret(values, tracer)
                for part in program.parts:
                    tracer.constants(part.block)
        elif self.watcher is not None and isinstance(program, Program):
            raw = self.watcher.run(self, program, values)
        else:
            raw = program.run(values)
        if metadata is not None:
            metadata.Clear()
            if tracer is not None:
                metadata.step_stats.CopyFrom(tracer.step_stats())
                metadata.cost_graph.CopyFrom(tracer.cost_graph())
            if options is not None and options.output_partition_graphs:
                metadata.partition_graphs.extend(
                    partition_graphs([part.block for part in program.parts])
                )
        return raw

    # ------------------------------------------------------------ what became of it
    def placement(self, operations: Sequence[Operation]) -> dict[str, str]:
        """The devices of operations, and of all that they need, by name.

        Raises:
            OpError: one cannot be placed.
        """
        block = prune([], operations, [])
        place(block, self.placer)
        return {n.name: n.target.name for n in block.nodes if n.target is not None}

    def explain(self, program: Program | InTwo, traced: Any) -> Explanation:
        """The decisions about a program; `traced` is the RunMetadata of a traced step, or None."""
        # Who looks at programs pays for it, not who runs them.
        from opdock.runtime.inspect.explain import explain

        return explain(program.parts, self.experience, self.devices.unavailable, traced)

    def variables(self) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """The values of the variables that have one, by container and name."""
        return {
            key: self.to_host(cell.read(), cell.home)
            for key, cell in self.resources.named("variable").items()
            if cell.initialized
        }

    def to_host(self, value: Any, where: str) -> np.ndarray[Any, Any]:
        """A copy of what lies somewhere as an array."""
        if isinstance(value, np.ndarray | np.generic):
            return np.array(value)
        return np.asarray(self.between(where, HOST)(value))


def _with_devices_of(server: LocalServer, config: Any) -> Any:
    """A session's ConfigProto with the devices that its server has: those are no session's."""
    given = server.config
    if given is None or not (given.device_count or given.HasField("gpu_options")):
        return config
    made = protos.ConfigProto()
    made.CopyFrom(config)
    made.device_count.clear()
    made.device_count.update(given.device_count)
    made.gpu_options.CopyFrom(given.gpu_options)
    return made


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _devices(program: Program | InTwo) -> list[Any]:
    """The devices, other than the host, on which a program runs."""
    steps = [step for part in program.parts for step in part.schedule.steps]
    targets = {s.node.target for s in steps if s.node.target is not None}
    return [t.device for t in targets if not t.is_host]


def _planned(program: Program | InTwo) -> dict[str, int]:
    """For each device the bytes of the program's planned buffers."""
    sizes: dict[str, int] = {}
    for plan in (part.plan for part in program.parts):
        found = [(target.name, size) for target, size in plan.blocks.items()]
        loose = [p.form for p in plan.buffers if p.offset is None]
        for name, size in [*found, *((form.target.name, form.nbytes) for form in loose)]:
            sizes[name] = sizes.get(name, 0) + size
    return sizes
