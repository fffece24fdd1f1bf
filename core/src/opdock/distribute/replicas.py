"""Runs a function once for each replica, and stops all of them where they have to meet.

Each replica has a thread, of which one runs at a time, in the order of the replicas: so the graph
is the same each time. A replica that calls `merge_call` waits until all others have come to a call,
which then runs once, on the thread of the caller.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from opdock.distribute.modes import require_replica_context
from opdock.distribute.replica import ReplicaContext
from opdock.distribute.values import Mirrored, PerReplica, regroup, select_replica
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.replication import Mode, inside
from opdock.graph.nodes.scopes import control_dependencies, device, name_scope
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope
from opdock.util import nest
from opdock.util.threads import begin

__all__ = ["call_for_each_replica"]


def call_for_each_replica(
    strategy: Any, devices: Sequence[str], fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """What a function gives on each replica, as values of replicas.

    Args:
        strategy: the strategy, whose scope the program is in.
        devices: one for each replica.
        fn, args, kwargs: what to call.

    Raises:
        RuntimeError: replicas differ in how often they call `merge_call`.
    """
    get_default_graph().switch_to_thread_local()
    shared: dict[str, list[Any]] = {}
    mirrored: dict[tuple[int, ...], Mirrored] = {}
    replicas = [
        _Replica(
            strategy, i, devices, shared, fn, select_replica(i, args), select_replica(i, kwargs)
        )
        for i in range(len(devices))
    ]
    try:
        while True:
            for replica in replicas:
                replica.advance()
            done = [replica.done for replica in replicas]
            if all(done):
                return regroup(devices, [replica.result for replica in replicas])
            if any(done):
                raise RuntimeError(
                    "Some replicas made a different number of replica_context().merge_call() calls."
                )
            _merge(strategy, devices, replicas, mirrored)
    finally:
        for replica in replicas:
            replica.end()


def _merge(
    strategy: Any, devices: Sequence[str], replicas: Sequence[_Replica],
    mirrored: dict[tuple[int, ...], Mirrored],
) -> None:  # fmt: skip
    """Runs the call that the replicas have come to.

    Args:
        strategy: the strategy.
        devices: those of the replicas.
        replicas: the replicas.
        mirrored: what earlier calls gave, by its copies: where all replicas hand on the copies that
            they were given, they are one value still, as Keras' optimizers take it for granted.
    """

    def one(devices: Sequence[str], values: Sequence[Any]) -> Any:
        return mirrored.get(_identity(values)) or PerReplica(devices, values)

    calls = [replica.call for replica in replicas]
    args = regroup(devices, [call.args for call in calls], one)
    kwargs = regroup(devices, [call.kwargs for call in calls], one)
    waits = dict.fromkeys(op for call in calls for op in call.controls)
    first = calls[0]
    with (
        inside(Mode(strategy, None)),
        name_scope(first.name_scope),
        control_dependencies(list(waits)),
        variable_scope(first.variable_scope),
    ):
        result = first.fn(strategy, *args, **kwargs)
    for value in nest.flatten(result):
        if isinstance(value, Mirrored):
            mirrored[_identity(value.values)] = value
    for i, replica in enumerate(replicas):
        replica.answer = select_replica(i, result)


def _identity(copies: Sequence[Any]) -> tuple[int, ...]:
    return tuple(id(copy) for copy in copies)


class _Call:
    """A `merge_call`, and where the replica was that made it."""

    def __init__(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        graph = get_default_graph()
        self.fn, self.args, self.kwargs = fn, args, kwargs
        scope = graph.get_name_scope()
        self.name_scope = f"{scope}/" if scope else None
        self.variable_scope = get_variable_scope()
        self.controls = [op for block in graph._scopes.controllers for op in block.inputs]


class _Stopped(BaseException):
    """Another replica has failed."""


class _Replica:
    """One replica's call of a function, on a thread that runs when it is its turn.

    Attributes:
        done: whether the function has returned.
        result: what it gave.
        call: the `merge_call` that it waits for.
        answer: what that gave for this replica.
    """

    call: _Call
    answer: Any = None
    result: Any = None

    def __init__(
        self, strategy: Any, index: int, devices: Sequence[str], shared: dict[str, list[Any]],
        fn: Callable[..., Any], args: Any, kwargs: Any,
    ) -> None:  # fmt: skip
        self.done = False
        self._strategy, self._index, self._devices = strategy, index, devices
        self._shared, self._fn, self._args, self._kwargs = shared, fn, args, kwargs
        self._error: BaseException | None = None
        self._stopping = False
        self._turn, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._graph = get_default_graph()
        self._creators = self._graph._variable_creator_stack
        self._variable_scope = get_variable_scope()
        scope = self._graph.get_name_scope()
        self._name_scope = f"{scope}/" if scope else ""
        if index:
            self._name_scope += f"replica_{index}/"
        self._thread = threading.Thread(target=self._run, name=f"replica-{index}", daemon=True)
        begin(self._thread)

    # ------------------------------------------------------------ the caller's thread
    def advance(self) -> None:
        """Has the replica go on until its end or its next `merge_call`; raises what it raised."""
        self._turn.release()
        self._paused.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Ends the thread, wherever it waits."""
        self._stopping = True
        self._turn.release()
        self._thread.join()

    # ------------------------------------------------------------ the replica's thread
    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._stopping:
                with self._surroundings():
                    self.result = self._fn(*self._args, **self._kwargs)
                self.done = True
        except _Stopped:
            pass
        except BaseException as e:
            self._error = e
        finally:
            self._paused.release()

    @contextlib.contextmanager
    def _surroundings(self) -> Any:
        """The scopes that the caller was in, and the replica's own."""
        graph = self._graph
        with graph.as_default():
            graph._variable_creator_stack = self._creators
            with (
                _Context(self._strategy, constant(self._index), self),
                device(self._devices[self._index]),
                name_scope(self._name_scope or None),
                variable_scope(self._variable_scope, reuse=self._index > 0 or None),
                variable_creator_scope(_sharing(self._shared, self._index)),
            ):
                yield

    def merge(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Waits for the others, and gives this replica's part of what the call gave."""
        if get_default_graph() is not self._graph:
            raise RuntimeError(
                "`merge_call` called while defining a new graph or a tf.function: the replicas "
                "cannot meet inside a function, a branch or a loop that each builds for itself."
            )
        self.call = _Call(fn, args, kwargs)
        self._paused.release()
        self._turn.acquire()
        if self._stopping:
            raise _Stopped
        return self.answer


class _Context(ReplicaContext):
    """The context of a replica that has others beside it."""

    def __init__(self, strategy: Any, number: Any, replica: _Replica) -> None:
        super().__init__(strategy, number)
        self._replica = replica

    def _merge_call(self, merge_fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return self._replica.merge(merge_fn, args, kwargs)

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of the replica."""
        require_replica_context(self)
        return (self._replica._devices[self._replica._index],)


def _sharing(shared: dict[str, list[Any]], index: int) -> Callable[..., Any]:
    """A variable creator: what the first replica has made, the others find, by name and order."""
    taken: dict[str, int] = {}

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        name = kwargs.get("name")
        key = "Variable" if name is None else re.sub(r"_\d+(?=/|$)", "", name)
        if index == 0:
            made = next_creator(**kwargs)
            shared.setdefault(key, []).append(made)
            return made
        taken[key] = taken.get(key, 0) + 1
        if taken[key] > len(shared.get(key, ())):
            raise RuntimeError(
                f"Tried to create variable {name} with mismatching name on device {index}"
            )
        return shared[key][taken[key] - 1]

    return create
