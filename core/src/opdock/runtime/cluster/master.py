"""The master of a session over a cluster: it places, splits, and has tasks compile their parts."""

from __future__ import annotations

import collections
import functools
import itertools
import logging
import secrets
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.clean.prune import as_written as block_of
from opdock.compiler.clean.prune import refine_shapes
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.placeable import Placeable
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target, parsed
from opdock.compiler.tasks.assign import Tasks, assign
from opdock.compiler.tasks.split import Part, split
from opdock.dtypes import DType
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.io import protos
from opdock.runtime import config as configuration
from opdock.runtime import servers
from opdock.runtime.cancellation import Cancellation
from opdock.runtime.cluster import peers
from opdock.runtime.cluster.messages import Message
from opdock.runtime.cluster.program import ClusterProgram, Members
from opdock.runtime.cluster.task import TaskSession
from opdock.runtime.deadline import allowance, with_deadline
from opdock.runtime.inspect.explain import Explanation
from opdock.runtime.inspect.placement_log import PlacementLog
from opdock.runtime.program.program import Program
from opdock.runtime.targets import DeviceInfo
from opdock.shapes import Shape

__all__ = ["Master", "reset"]

_log = logging.getLogger("opdock.cluster")
_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 1.0
_TELL_EVERY: Final = 10.0
_HERE: Final = 30.0
"""Seconds for which a task that only this process could start is waited for."""
_Released = dict[str, collections.deque[int]]
"""The numbers of parts that tasks may forget, which each is told with the next part it gets."""


class Master:
    """A session's side of a cluster: for `Session` the same as an `Engine`.

    Args:
        address: of the target's task.
        config: a ConfigProto, or None for that of the target's server.

    Raises:
        UnimplementedError: tasks are elsewhere, and there is no cluster engine.
        DeadlineExceededError: a task did not answer within `operation_timeout_in_ms`.
        InvalidArgumentError: `cluster_def` does not have the target.
    """

    def __init__(self, address: str, config: Any) -> None:
        self.experience = Experience()
        self._cancellation = Cancellation(servers.CLOSED)
        limit = 0 if config is None else config.operation_timeout_in_ms
        default, tasks, self._home = _cluster(address, config, limit)
        chosen = default if config is None else config
        self._config = configuration.read(chosen)
        self._session = secrets.token_hex(8)
        self._peers: dict[str, peers.Peer] = {}
        self._devices: dict[str, list[Any]] = {}
        settings = _settings(chosen)
        try:
            for task in tasks:
                self._open(task, tasks, settings)
        except BaseException:
            self.close()
            raise
        server = servers.at(address)
        own: TaskSession | None = None
        if server is not None:
            own = server.service.session(self._session)
        self._own = own
        self._members = Members(
            self._session, self._peers, None if own is None else (self._home, own),
            self._cancellation,
        )  # fmt: skip
        self._placer = Placer(self._targets(), self._config.soft)
        self._placeable = Placeable(self._placer)
        self._log = PlacementLog(self._placement)
        self._numbers = itertools.count(1)
        self._released: _Released = {task: collections.deque() for task in self._peers}

    def _open(self, task: str, tasks: Mapping[str, str], settings: bytes) -> None:
        """Opens the session in a task, as soon as that is there."""
        request = Message(
            "open",
            {"session": self._session, "task": task, "tasks": dict(tasks), "config": settings},
        )
        peer, answer = _patiently(task, tasks[task], request, self._config.deadline_ms)
        self._peers[task] = peer
        self._devices[task] = answer.fields["devices"]

    def _targets(self) -> list[Target]:
        """The devices of all tasks, in the same order for the sessions of any task.

        So they find in one place what asks for no task, and share it. As in TensorFlow, what a
        device of a preferred kind can do is done there, in the task whose name comes first.
        """
        order = [
            (-kinds_behind, task, device)
            for task, devices in self._devices.items()
            for kinds_behind, device in zip(_kinds_behind(devices), devices, strict=True)
        ]
        order.sort(key=lambda entry: entry[:2])
        return [
            Target(
                name=name, aliases=(), backend="", distribution="", priority=0, open=_nowhere,
                description=text, automatic=automatic,
            )
            for _, _, (name, _, _, text, automatic) in order
        ]  # fmt: skip

    # ------------------------------------------------------------ what a session asks of an engine
    def prepare(self) -> None:
        """All devices are open by now."""

    def explain(self, program: Program | ClusterProgram, traced: Any) -> Explanation:
        """The decisions about a step, of all tasks, and what goes from one to another.

        Raises:
            OpError: a task is gone.
        """
        if isinstance(program, Program):
            assert self._own is not None
            return self._own.engine.explain(program, traced)
        asked = [
            self._ask(part.task, self._members.message("explain", part=number))
            for number, part in program.parts.items()
        ]
        crossings = [str(c) for part in program.parts.values() for c in part.sends]
        told = [answer.fields["explanation"] for answer in self._answers(asked)]
        return Explanation.of_tasks(told, crossings, traced)

    def variables(self) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """The values of the variables of all tasks, by container and name.

        Raises:
            OpError: a task is gone.
        """
        asked = [self._ask(task, self._members.message("variables")) for task in self._peers]
        found: dict[tuple[str, str], np.ndarray[Any, Any]] = {}
        for answer in self._answers(asked):
            names = [(container, name) for container, name in answer.fields["names"]]
            found.update(zip(names, answer.tensors, strict=True))
        return found

    def _placement(self, operations: Sequence[Operation]) -> dict[str, str]:
        """The devices of operations, as their tasks would place them."""
        block = block_of([], operations, [])
        parts = split(block, assign(block, self._placer), operations[0].graph) if operations else []
        asked = [
            self._ask(
                part.task,
                self._members.message("place", graph=part.graph_def.SerializeToString()),
            )
            for part in parts
        ]
        return {k: v for a in self._answers(asked) for k, v in a.fields["devices"].items()}

    def list_devices(self) -> list[DeviceInfo]:
        """The devices of all tasks."""
        found = [d for devices in self._devices.values() for d in devices]
        return [
            DeviceInfo(name, kind, memory, text, number)
            for number, (name, kind, memory, text, _) in enumerate(found, 1)
        ]

    def close(self) -> None:
        """Ends the session in all tasks."""
        self._cancellation.cancel()
        for peer in self._peers.values():
            try:
                peer.tell(Message("close", {"session": self._session}))
            except errors.OpError:
                continue  # it is gone, and the session with it

    def plain(self, program: Program | ClusterProgram) -> bool:
        """Whether a step may run without a look at its options."""
        if isinstance(program, Program):
            assert self._own is not None
            return self._own.engine.plain(program)
        return not self._config.deadline_ms

    # ------------------------------------------------------------ compiling
    def compile(
        self,
        graph: Graph,
        fetches: Sequence[Tensor],
        runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
        as_written: bool = False,
    ) -> Program | ClusterProgram:
        """What runs a step: a program, if all of it is in the master's own task.

        Raises:
            OpError: as for `Engine.compile`; or a task is gone.
        """
        if self._config.log_placement:
            self._log.tell(graph)
        if not self._config.place_pruned:
            self._placeable.check(graph)
        block = block_of(fetches, runs, feeds)
        if not as_written:
            refine_shapes(block)
        tasks = assign(block, self._placer)
        if self._own is not None and self._all_at_home(tasks, feeds):
            return self._own.engine.compile_part(fetches, runs, feeds, as_written)
        parts = {next(self._numbers): part for part in split(block, tasks, graph)}
        self._register(parts, graph)
        program = ClusterProgram(self._members, parts, block, graph)
        numbers = {number: part.task for number, part in parts.items()}
        weakref.finalize(program, _release, self._released, numbers)
        return program

    def _all_at_home(self, tasks: Tasks, feeds: Sequence[tuple[Tensor, DType, Shape]]) -> bool:
        """Whether a step is the master's own task's, what it is fed included."""
        home = parsed(self._home)
        asked = (parsed(t.op.device) for t, _, _ in feeds)
        return tasks.everywhere() <= {self._home} and all(
            s.job in (None, home.job) and s.task in (None, home.task) for s in asked
        )

    def _register(self, parts: Mapping[int, Part], graph: Graph) -> None:
        """Has the tasks compile their parts, all at the same time."""
        numbers = {number: part.task for number, part in parts.items()}
        try:
            asked = [
                self._ask(part.task, self._registration(number, part))
                for number, part in parts.items()
            ]
            self._answers(asked, graph)
        except BaseException:
            _release(self._released, numbers)
            raise

    def _registration(self, number: int, part: Part) -> Message:
        """Has a task compile a part, and forget those that no step will run any more."""
        due = self._released[part.task]
        return self._members.message(
            "register", part=number, graph=part.graph_def.SerializeToString(),
            feeds=[(n, t.name, None if s is None else list(s)) for n, t, s in part.feeds],
            fetches=part.fetches, targets=part.targets,
            released=[due.popleft() for _ in range(len(due))],
        )  # fmt: skip

    def _ask(self, task: str, request: Message) -> tuple[str, Future[Message]]:
        if self._cancellation.cancelled:
            raise errors.CancelledError(None, None, self._cancellation.text)
        return task, self._peers[task].ask(request)

    def _answers(
        self, asked: Sequence[tuple[str, Future[Message]]], graph: Graph | None = None
    ) -> list[Message]:
        limit = allowance.get() or self._config.deadline_ms
        return self._members.answers(asked, limit, graph)

    # ------------------------------------------------------------ running with options
    def run(
        self, program: Program | ClusterProgram, values: Sequence[Any], options: Any, metadata: Any
    ) -> Sequence[Any]:
        """One step under RunOptions, filling RunMetadata."""
        if isinstance(program, Program):
            assert self._own is not None
            return self._own.engine.run(program, values, options, metadata)
        timeout = getattr(options, "timeout_in_ms", 0) or self._config.deadline_ms
        if metadata is not None:
            metadata.Clear()
        step = program.begin()
        run = functools.partial(program.run, values, _for_tasks(options), metadata, step)
        return with_deadline(timeout, run, step.late) if timeout else run()


def _release(released: _Released, numbers: Mapping[int, str]) -> None:
    """Has parts forgotten, which are known by number and task."""
    for number, task in numbers.items():
        released[task].append(number)


def _nowhere() -> Any:
    raise errors.InternalError(None, None, "A device of another task was to be opened here.")


def _for_tasks(options: Any) -> Any:
    """What tasks are told of RunOptions, if that concerns them: the master looks at the time."""
    if options is None or not (options.trace_level or options.output_partition_graphs):
        return None
    told = protos.RunOptions()
    told.CopyFrom(options)
    told.timeout_in_ms = 0
    return told


def _kinds_behind(devices: Sequence[Sequence[Any]]) -> list[int]:
    """For each device of a task, most preferred first: how many kinds it is preferred to."""
    kinds = [kind for _, kind, _, _, automatic in devices if automatic]
    return [len({*kinds[kinds.index(k) :]}) - 1 if k in kinds else 0 for _, k, *_ in devices]


# ---------------------------------------------------------------- the cluster
def _cluster(address: str, config: Any, limit_ms: int) -> tuple[Any, dict[str, str], str]:
    """The ConfigProto of the target's server, the session's tasks, and which one the target is."""
    server = servers.at(address)
    if server is not None:
        definition, home, tasks = server.definition, server.task, server.tasks
    else:
        try:
            _, answer = _patiently("The target", address, Message("describe"), limit_ms)
        except errors.UnimplementedError as e:
            raise servers.no_factory(f"grpc://{address}", e.message) from None
        definition = protos.ServerDef.FromString(answer.fields["definition"])
        home = answer.fields["task"]
        tasks = {**servers.tasks_of(definition.cluster), home: address}
    if config is not None and config.cluster_def.job:
        # The session brings names of its own for the tasks.
        tasks = servers.tasks_of(config.cluster_def)
        homes = [task for task, there in tasks.items() if there == address]
        if not homes:
            raise errors.InvalidArgumentError(
                None, None,
                f"The cluster_def of the session's config has no task at {address}, its target: "
                f"{', '.join(f'{t} at {a}' for t, a in tasks.items())}.",
            )  # fmt: skip
        home = homes[0]
    chosen = config if config is not None else definition.default_session_config
    filters = [parsed(text) for text in chosen.device_filters]
    tasks = {t: a for t, a in tasks.items() if t == home or _admitted(t, filters)}
    return definition.default_session_config, tasks, home


def _admitted(task: str, filters: Sequence[DeviceSpec]) -> bool:
    own = parsed(task)
    return not filters or any(
        f.job in (None, own.job) and f.replica in (None, own.replica) and f.task in (None, own.task)
        for f in filters
    )


def _settings(config: Any) -> bytes:
    """The ConfigProto for the tasks: the master looks at the time itself."""
    made = protos.ConfigProto()
    made.CopyFrom(config)
    made.operation_timeout_in_ms = 0
    shares = made.experimental.share_session_state_in_clusterspec_propagation
    if made.cluster_def.job and not shares:
        # Its names are the session's alone, and so is what it keeps under them.
        made.isolate_session_state = True
    data: bytes = made.SerializeToString()
    return data


def _patiently(
    task: str, address: str, request: Message, limit_ms: int
) -> tuple[peers.Peer, Message]:
    """The way to a task and its answer, as soon as it is there.

    Raises:
        DeadlineExceededError: it is not within the limit; 0 is none.
        UnimplementedError: there is no limit, no cluster engine that could reach it, and no other
            thread of this process that starts it.
        FailedPreconditionError: it is there, with another opdock or as another task.
    """
    began = told = time.monotonic()
    pause = _FIRST_LOOK
    while True:
        try:
            peer = peers.connect(address)
            return peer, peer.ask(request).result(limit_ms / 1000 or None)
        except (errors.UnavailableError, errors.UnimplementedError, TimeoutError) as e:
            now = time.monotonic()
            if isinstance(e, errors.UnimplementedError) and not limit_ms:
                # Without an engine only another thread of this process can start it.
                if now - began >= _HERE or not _others():
                    raise
            text = (
                f"{task} at {address} has not answered for {now - began:.1f} s ({e}). Is its "
                "process running, with the same ClusterSpec and this job and task index?"
            )
            if limit_ms and now - began >= limit_ms / 1000:
                raise errors.DeadlineExceededError(None, None, text) from None
            if now - told >= _TELL_EVERY:
                told = now
                _log.warning("CreateSession still waiting for response from worker: %s", text)
        except errors.FailedPreconditionError as e:
            raise errors.FailedPreconditionError(
                None, None, f"{task} at {address} and this process do not fit: {e.message}"
            ) from None
        time.sleep(pause)
        pause = min(2 * pause, _LAST_LOOK)


def _others() -> bool:
    """Whether the process has other threads than this one and opdock's own."""
    here = threading.current_thread()
    return any(t is not here and not t.name.startswith("opdock") for t in threading.enumerate())


def reset(address: str, containers: Sequence[str], config: Any) -> None:
    """Has all tasks of a target's cluster forget containers, or all, and end their sessions.

    Args:
        address: of the target's task.
        containers: what to forget, all by default.
        config: a ConfigProto with a time limit and filters, or None.
    """
    limit = 0 if config is None else config.operation_timeout_in_ms
    _, tasks, _ = _cluster(address, config, limit)
    for task, there in tasks.items():
        _patiently(task, there, Message("reset", {"containers": list(containers)}), limit)
