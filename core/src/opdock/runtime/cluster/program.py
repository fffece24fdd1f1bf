"""A step over several tasks: one call a task, and all that can go wrong between them."""

from __future__ import annotations

import itertools
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import FEED, Block
from opdock.compiler.tasks.split import Part
from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.runtime.cancellation import Cancellation, wait
from opdock.runtime.cluster.messages import Message
from opdock.runtime.cluster.peers import Peer
from opdock.runtime.cluster.task import TaskSession

__all__ = ["ClusterProgram", "Members", "Step", "located"]

_GRACE: Final = 10.0
"""Seconds in which tasks are to say that they have ended a step that failed elsewhere."""
_steps = itertools.count(secrets.randbits(40) << 20)


class Members:
    """The tasks of one session.

    Args:
        session: the session's name.
        peers: the ways to them, by name.
        home: the task of the master, where it is one of this process: its name and its session.
        cancellation: ends all waiting in the session.
    """

    def __init__(
        self, session: str, peers: Mapping[str, Peer], home: tuple[str, TaskSession] | None,
        cancellation: Cancellation,
    ) -> None:  # fmt: skip
        self.session, self.peers, self.cancellation = session, peers, cancellation
        self._home = home

    def here(self, task: str) -> TaskSession | None:
        """The task, if it is the master's own."""
        return self._home[1] if self._home is not None and self._home[0] == task else None

    def message(self, kind: str, tensors: Sequence[Any] = (), **fields: Any) -> Message:
        """A request of this session."""
        return Message(kind, {"session": self.session, **fields}, tensors)

    def answers(
        self, asked: Sequence[tuple[str, Future[Message]]], limit_ms: int,
        graph: Graph | None = None,
    ) -> list[Message]:  # fmt: skip
        """What tasks answer, in order.

        Args:
            asked: each task, and its answer to come.
            limit_ms: how long they may take, all together; 0 for no limit.
            graph: the user's, where operations are found that errors name.

        Raises:
            DeadlineExceededError: one took longer.
            CancelledError: the session was closed meanwhile.
            OpError: what a task has raised, the first of them in order.
        """
        changed = threading.Condition()
        until = time.monotonic() + limit_ms / 1000 if limit_ms else None

        def arrived(_: Future[Message]) -> None:
            with changed:
                changed.notify_all()

        def failed(answer: Future[Message]) -> bool:
            return answer.done() and answer.exception() is not None

        def ready() -> bool:
            return (
                all(answer.done() for _, answer in asked)
                or any(failed(answer) for _, answer in asked)
                or (until is not None and time.monotonic() >= until)
            )

        for _, answer in asked:
            answer.add_done_callback(arrived)
        with changed:
            wait(self.cancellation, changed, ready, lambda: None, until)
        for task, answer in asked:
            error = answer.exception() if failed(answer) else None
            if error is not None:
                raise (error if graph is None else located(task, error, graph)) from None
        late = ", ".join(task for task, answer in asked if not answer.done())
        if late:
            raise errors.DeadlineExceededError(
                None, None,
                f"Timed out waiting for notification ({limit_ms} ms). No answer from {late}.",
            )  # fmt: skip
        return [answer.result() for _, answer in asked]


class ClusterProgram:
    """The parts of a step, each registered with its task.

    Args:
        members: the tasks.
        parts: by the numbers under which they are registered.
        block: the whole step, a node for each operation.
        graph: the user's.

    Attributes:
        steps_run: how often it ran.
    """

    def __init__(
        self, members: Members, parts: Mapping[int, Part], block: Block, graph: Graph
    ) -> None:
        self.steps_run = 0
        self.block = block
        self._members, self._parts, self._graph = members, parts, graph
        self._fed = {
            i: v.node.attrs["index"] for i, v in enumerate(block.fetches) if v.node.op == FEED
        }

    @property
    def shared_fetches(self) -> list[bool]:
        """For each fetch whether others may hold its buffer."""
        return [i in self._fed for i in range(len(self.block.fetches))]

    @property
    def kept_feeds(self) -> list[int]:
        """The positions of feeds that outlive the step: each task keeps its own."""
        return []

    @property
    def parts(self) -> Mapping[int, Part]:
        """What each task does, by the numbers under which they are registered."""
        return self._parts

    def begin(self) -> Step:
        """A step that has not begun."""
        return Step(self._members, self._graph, next(_steps))

    def run(
        self, feeds: Sequence[Any], options: Any = None, metadata: Any = None,
        step: Step | None = None,
    ) -> list[Any]:  # fmt: skip
        """One step.

        Args:
            feeds: what is fed, in order.
            options: a RunOptions message, if the step is to be traced.
            metadata: a RunMetadata message to fill.
            step: from `begin`, for callers that watch it.

        Raises:
            OpError: an operation failed; the error names task, operation and line.
        """
        self.steps_run += 1
        step = self.begin() if step is None else step
        step.run(self._parts, feeds, options)
        results: list[Any] = [None] * len(self.block.fetches)
        for i, index in self._fed.items():
            results[i] = feeds[index]
        for number, part in self._parts.items():
            answer = step.answers[number]
            for i, value in zip(part.fetched, answer.tensors, strict=True):
                results[i] = _own(value)
            if metadata is not None and "metadata" in answer.fields:
                metadata.MergeFrom(protos.RunMetadata.FromString(answer.fields["metadata"]))
        return results


def _own(value: Any) -> Any:
    """A value as an array that the caller may write to."""
    array = np.asarray(value) if isinstance(value, np.generic) else value
    return array.copy() if isinstance(array, np.ndarray) and not array.flags.writeable else array


class Step:
    """One step under way.

    Args:
        members: the tasks.
        graph: where operations are found that errors name.
        number: the step's.

    Attributes:
        answers: what came back, by the numbers of the parts.
    """

    def __init__(self, members: Members, graph: Graph, number: int) -> None:
        self._members, self._graph, self._number = members, graph, number
        self.answers: dict[int, Message] = {}
        self._failed: list[tuple[str, BaseException]] = []
        self._changed = threading.Condition()
        self._left = 0
        self._parts: list[int] = []
        self._tasks: list[str] = []

    def run(self, parts: Mapping[int, Part], feeds: Sequence[Any], options: Any) -> None:
        """Runs the parts, that of the caller's own task on the caller's thread.

        Raises:
            OpError: the first error of a task.
        """
        self._left = len(parts)
        self._parts, self._tasks = list(parts), [part.task for part in parts.values()]
        told = {} if options is None else {"options": options.SerializeToString()}
        own: tuple[int, Part, TaskSession] | None = None
        try:
            for number, part in parts.items():
                here = self._members.here(part.task)
                if here is not None:
                    own = number, part, here
                    continue
                values = [feeds[i] for i in part.fed]
                request = self._members.message(
                    "run", values, part=number, step=self._number, **told
                )
                self._ask(number, part.task, request)
            if own is not None:
                self._run_here(*own, feeds, options)
            self._wait()
        except BaseException:
            # Ctrl-C, a deadline or the end of the session: nobody is to go on with the step.
            self._cancel()
            raise
        if self._failed:
            raise self._error()

    def late(self) -> str:
        """Which tasks have not answered, in words."""
        tasks = [t for n, t in zip(self._parts, self._tasks, strict=True) if n not in self.answers]
        return f" No answer from {', '.join(tasks)}." if tasks else ""

    def _ask(self, number: int, task: str, request: Message) -> None:
        def arrived(answer: Future[Message]) -> None:
            error = answer.exception()
            self._ended(number, task, answer.result() if error is None else None, error)

        try:
            answer = self._members.peers[task].ask(request)
        except errors.OpError as e:
            self._ended(number, task, None, e)
        else:
            answer.add_done_callback(arrived)

    def _run_here(
        self, number: int, part: Part, here: TaskSession, feeds: Sequence[Any], options: Any
    ) -> None:
        metadata = None if options is None else protos.RunMetadata()
        try:
            values = here.run(number, self._number, [feeds[i] for i in part.fed], options, metadata)
        except Exception as e:
            self._ended(number, part.task, None, e)
        else:
            told = {} if metadata is None else {"metadata": metadata.SerializeToString()}
            self._ended(number, part.task, Message("values", told, values), None)

    def _ended(
        self, number: int, task: str, answer: Message | None, error: BaseException | None
    ) -> None:
        """Takes what a task says. The first error ends the step everywhere."""
        with self._changed:
            self._left -= 1
            if answer is not None:
                self.answers[number] = answer
            first = error is not None and not self._failed
            if error is not None:
                self._failed.append((task, error))
            self._changed.notify_all()
        if first:
            self._cancel()

    def _cancel(self) -> None:
        for task in self._tasks:
            here = self._members.here(task)
            if here is not None:
                here.exchange.cancel(self._number)
                continue
            try:
                self._members.peers[task].tell(self._members.message("cancel", step=self._number))
            except errors.OpError:
                continue  # it is gone, and its part of the step with it

    def _wait(self) -> None:
        """Waits until all tasks have answered; once one has failed, for a while."""
        with self._changed:
            wait(
                self._members.cancellation, self._changed,
                lambda: not self._left or bool(self._failed), lambda: None,
            )  # fmt: skip
            self._changed.wait_for(lambda: not self._left, _GRACE)

    def _error(self) -> errors.OpError:
        """The error that was the cause of all others, as far as that can be told."""
        causes = [f for f in self._failed if not isinstance(f[1], errors.CancelledError)]
        task, error = (causes or self._failed)[0]
        ended = self._members.cancellation
        if ended.cancelled and isinstance(error, (errors.AbortedError, errors.CancelledError)):
            # A task that has closed the session before the step came to it does not know of either.
            return errors.CancelledError(None, None, ended.text)
        return located(task, error, self._graph)


def located(task: str, error: BaseException, graph: Graph) -> errors.OpError:
    """An error of a task, with the operation of the user's graph and its line.

    Args:
        task: where it was raised.
        error: what was raised.
        graph: the user's.
    """
    if not isinstance(error, errors.OpError):
        return errors.InternalError(None, None, f"From {task}:\n{type(error).__name__}: {error}")
    name = getattr(error.op, "name", "")
    op, text = None, error.message
    if name in graph._nodes_by_name:
        op = graph._nodes_by_name[name]
        at = f" (defined at {op.user_line})" if op.user_line else ""
        told = re.compile(rf"\[\[node {re.escape(name)}( \(defined at [^)]*\))?")
        text = told.sub(lambda _: f"[[node {name}{at}", text)
    kind: Any = type(error)
    if kind is errors.OpError:
        return errors.OpError(None, op, f"From {task}:\n{text}", error.error_code)
    found: errors.OpError = kind(None, op, f"From {task}:\n{text}")
    return found
