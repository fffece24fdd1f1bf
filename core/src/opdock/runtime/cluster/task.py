"""A task at work: what it does for the masters that ask it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import as_dtype
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.io import protos
from opdock.plugins.clusters import Packet, while_asked
from opdock.runtime import servers
from opdock.runtime.cache.variants import Entry
from opdock.runtime.cancellation import Cancellation, check, current, ends_of, wait
from opdock.runtime.cluster import peers
from opdock.runtime.cluster.exchange import Exchange
from opdock.runtime.cluster.meeting import Far, Visitors
from opdock.runtime.cluster.messages import Message, decode, encode, failure
from opdock.runtime.engine import Engine
from opdock.runtime.program.program import Program
from opdock.runtime.servers import LocalServer

__all__ = ["Task", "TaskSession", "start"]

_DONE: Final = Message("done")


@dataclass(slots=True)
class _Part:
    """A part of a step, compiled."""

    entry: Entry
    program: Program
    graph: Graph


class TaskSession:
    """What a task keeps for one session of a master.

    Args:
        server: the task's.
        session: the session's name.
        name: what the task is called in it.
        tasks: the addresses of all tasks by name.
        config: the session's ConfigProto.
    """

    def __init__(
        self, server: LocalServer, session: str, name: str, tasks: Mapping[str, str], config: Any
    ) -> None:
        self.engine = Engine(config, server, name)
        self._session = session
        self.exchange = self.engine.resources.exchange = Exchange(self._send)
        leader = config.experimental.collective_group_leader
        if leader not in ("", server.task):
            self.engine.resources.place = Far(functools.partial(_leader, server, leader))
        self._name, self._tasks = name, tasks
        self._peers: dict[str, peers.Peer] = {}
        self._parts: dict[int, _Part] = {}
        # Parts that were let go while they were compiled, be it that they never come.
        self._unwanted: set[int] = set()
        self._keeping = threading.RLock()
        self._on_their_way: dict[int, list[Future[Any]]] = {}
        self._aborted = False
        server.add(self)
        self.engine.prepare()

    def _abort(self) -> None:
        """Ends the session, as its server was reset."""
        self._aborted = True

    def devices(self) -> list[list[Any]]:
        """Name, type, memory, description and whether nodes may come unasked, of each device."""
        automatic = {t.name: t.automatic for t in self.engine.devices.targets}
        return [
            [d.name, d.device_type, d.memory_limit_bytes, d.physical_device_desc, automatic[d.name]]
            for d in self.engine.devices.attributes()
        ]

    def register(
        self, number: int, graph_def: Any, feeds: Sequence[Sequence[Any]],
        fetches: Sequence[str], targets: Sequence[str],
    ) -> None:  # fmt: skip
        """Compiles a part of a step.

        Raises:
            OpError: a node cannot be placed, or does not fit.
        """
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="")
        fed = [
            (graph.get_tensor_by_name(n), as_dtype(t), None if s is None else tuple(s))
            for n, t, s in feeds
        ]
        program = self.engine.compile_part(
            [graph.get_tensor_by_name(n) for n in fetches],
            [graph.get_operation_by_name(n) for n in targets],
            fed,
        )
        part = _Part(Entry(program, self.engine.plain(program)), program, graph)
        with self._keeping:
            if number in self._unwanted:
                self._unwanted.remove(number)
            else:
                self._parts[number] = part

    def release(self, numbers: Sequence[int]) -> None:
        """Forgets parts that no step will run any more, be it that they are still compiled."""
        with self._keeping:
            self._unwanted.update(n for n in numbers if self._parts.pop(n, None) is None)

    def run(
        self, number: int, step: int, feeds: Sequence[Any], options: Any, metadata: Any
    ) -> list[Any]:
        """Does this task's part of a step.

        Raises:
            AbortedError: the server was reset.
            CancelledError: the session was closed.
            OpError: an operation failed, or the step in another task.
        """
        check(ends_of(self.engine.resources.cancellation))
        if self._aborted:
            raise errors.AbortedError(
                None, None, f"The session was ended in {self._name}: its server was reset."
            )
        part = self._parts[number]
        end = self.exchange.begin(step)
        try:
            with while_asked(end.cancel):
                if end.cancelled:  # before it came here
                    raise errors.CancelledError(None, None, end.text)
                return self._run(part, step, feeds, options, metadata, end)
        finally:
            self._on_their_way.pop(step, None)
            self.exchange.end(step)

    def _run(
        self, part: _Part, step: int, feeds: Sequence[Any], options: Any, metadata: Any,
        end: Cancellation,
    ) -> list[Any]:  # fmt: skip
        before = current.set((*current.get(), end))
        try:
            entry = part.entry
            values = entry.own([*feeds, np.array(step, np.int64)])
            if options is None and entry.plain:
                raw = entry.program.run(values)
            else:
                raw = self.engine.run(part.program, values, options, metadata)
            self._arrived(self._on_their_way.get(step, ()))
            return entry.deliver(raw)
        finally:
            current.reset(before)

    def explain(self, number: int) -> dict[str, Any]:
        """The decisions about a part, as plain data."""
        return self.engine.explain(self._parts[number].program, None).to_dict()

    def placement(self, graph_def: Any) -> dict[str, str]:
        """The devices of operations of a part that need not run, by name.

        Raises:
            OpError: one cannot be placed.
        """
        graph = Graph()
        with graph.as_default():
            import_graph_def(graph_def, name="")
        return self.engine.placement(graph.get_operations())

    def variables(self) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
        """The values of the task's variables, by container and name."""
        return self.engine.variables()

    def _send(self, to: str, step: int, key: str, values: Sequence[Any]) -> None:
        """Brings values to another task."""
        peer = self._peers.get(to)
        if peer is None:
            peer = self._peers[to] = peers.connect(self._tasks[to])
        fields = {"session": self._session, "step": step, "key": key}
        arrival = peer.tell(Message("deliver", fields, values))
        if arrival is not None:
            self._on_their_way.setdefault(step, []).append(arrival)

    def _arrived(self, deliveries: Sequence[Future[Any]]) -> None:
        """Waits until all that was sent is there: nobody else would know of what is lost.

        Raises:
            UnavailableError: something was lost.
        """
        changed = threading.Condition()

        def look(_: Future[Any]) -> None:
            with changed:
                changed.notify_all()

        for delivery in deliveries:
            delivery.add_done_callback(look)
        with changed:
            wait(
                self.engine.resources.cancellation, changed,
                lambda: all(d.done() for d in deliveries), lambda: None,
            )  # fmt: skip
        for delivery in deliveries:
            delivery.result()

    def close(self) -> None:
        """Ends what waits, and forgets what is the session's own."""
        self.engine.close()
        self._parts.clear()


def _leader(server: LocalServer, name: str) -> peers.Peer:
    """The way to the task to which all members of groups come.

    Raises:
        InvalidArgumentError: the cluster has no such task.
        UnavailableError: it is not there.
    """
    address = server.tasks.get(name)
    if address is None:
        raise errors.InvalidArgumentError(
            None, None,
            f"experimental.collective_group_leader is {name!r}, which is no task of the cluster: "
            f"{', '.join(server.tasks)}",
        )  # fmt: skip
    return peers.connect(address)


class Task:
    """A server as other tasks and masters see it.

    Args:
        server: whose state its sessions share.
    """

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._serving: Any = None
        self._sessions: dict[str, TaskSession] = {}
        self._lock = threading.RLock()
        visitors = Visitors(server.meetings)
        self._answers: dict[str, Callable[[Message], Message]] = {
            "describe": self._describe, "open": self._open, "register": self._register,
            "run": self._run, "deliver": self._deliver, "cancel": self._cancel,
            "close": self._close, "reset": self._reset, "explain": self._explain,
            "place": self._place, "variables": self._variables, "meet": visitors.meet,
            "leave": visitors.leave,
        }  # fmt: skip

    def session(self, name: str) -> TaskSession:
        """A session by its name.

        Raises:
            AbortedError: there is none: the task has been started anew, or the session was closed.
        """
        found = self._sessions.get(name)
        if found is None:
            raise errors.AbortedError(
                None, None,
                f"Session handle {name} is not found in {self._server.task}. Possibly the task has "
                "been started again, or the session is closed.",
            )  # fmt: skip
        return found

    # ------------------------------------------------------------ answers
    def handle(self, packet: Packet) -> Packet:
        """What the task answers to a packet; errors are answers, too."""
        try:
            return encode(self.answer(decode(packet)))
        except Exception as e:
            return encode(failure(e))

    def answer(self, request: Message) -> Message:
        """What the task answers.

        Raises:
            OpError: what was asked for failed.
        """
        known = self._answers.get(request.kind)
        if known is None:
            raise errors.UnimplementedError(
                None, None, f"{self._server.task} has no answer to {request.kind!r}."
            )
        return known(request)

    def _describe(self, request: Message) -> Message:
        definition = self._server.definition.SerializeToString()
        return Message("task", {"task": self._server.task, "definition": definition})

    def _open(self, request: Message) -> Message:
        fields = request.fields
        config = protos.ConfigProto.FromString(fields["config"])
        name = fields["session"]
        own = self._server.task
        if fields["task"] != own and not config.cluster_def.job:
            raise errors.FailedPreconditionError(
                None, None,
                f"it is {own}, not {fields['task']}: the processes have different ClusterSpecs, or "
                "one was started with the job name or task index of another.",
            )  # fmt: skip
        with self._lock:
            session = self._sessions.get(name)  # of a request that was carried twice
            if session is None:
                session = TaskSession(self._server, name, fields["task"], fields["tasks"], config)
                self._sessions[name] = session
        return Message("devices", {"devices": session.devices()})

    def _register(self, request: Message) -> Message:
        fields = request.fields
        session = self.session(fields["session"])
        session.release(fields["released"])
        graph_def = protos.GraphDef.FromString(fields["graph"])
        session.register(
            fields["part"], graph_def, fields["feeds"], fields["fetches"], fields["targets"]
        )
        return _DONE

    def _run(self, request: Message) -> Message:
        fields = request.fields
        options = metadata = None
        if "options" in fields:
            options, metadata = (
                protos.RunOptions.FromString(fields["options"]),
                protos.RunMetadata(),
            )
        values = self.session(fields["session"]).run(
            fields["part"], fields["step"], request.tensors, options, metadata
        )
        told = {} if metadata is None else {"metadata": metadata.SerializeToString()}
        return Message("values", told, values)

    def _explain(self, request: Message) -> Message:
        session = self.session(request.fields["session"])
        return Message("explained", {"explanation": session.explain(request.fields["part"])})

    def _place(self, request: Message) -> Message:
        session = self.session(request.fields["session"])
        graph_def = protos.GraphDef.FromString(request.fields["graph"])
        return Message("placed", {"devices": session.placement(graph_def)})

    def _variables(self, request: Message) -> Message:
        found = self.session(request.fields["session"]).variables()
        # A container without a name is the server's, which masters know by no other.
        own = self._server.store.container
        names = [("localhost" if place == own else place, name) for place, name in found]
        return Message("variables", {"names": names}, list(found.values()))

    def _deliver(self, request: Message) -> Message:
        fields = request.fields
        exchange = self.session(fields["session"]).exchange
        exchange.put(fields["step"], fields["key"], request.tensors)
        return _DONE

    def _cancel(self, request: Message) -> Message:
        self.session(request.fields["session"]).exchange.cancel(request.fields["step"])
        return _DONE

    def _close(self, request: Message) -> Message:
        with self._lock:
            session = self._sessions.pop(request.fields["session"], None)
        if session is not None:
            session.close()
        return _DONE

    def _reset(self, request: Message) -> Message:
        self._server.reset(request.fields["containers"])
        return _DONE


def start(address: str, definition: Any) -> LocalServer:
    """Starts a task in this process, and opens it to others if they are in its cluster.

    Args:
        address: "host:port"; port 0 takes any.
        definition: its ServerDef.

    Raises:
        UnknownError: somebody has the address.
        UnimplementedError: there is no engine of the name that the ServerDef has as its protocol.
    """
    engine = peers.engine(definition.protocol)
    server = servers.start(address, definition)
    task = server.service = Task(server)
    if engine is not None and len(server.tasks) > 1:
        try:
            task._serving = engine.serve(server.address, task.handle)
        except BaseException:
            servers.withdraw(server)
            raise
    return server
