"""`tf.train.QueueRunner`: threads that keep a queue filled."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any, Final

from opdock import errors
from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import refuse_eagerly
from opdock.io import protos
from opdock.runtime.session import BaseSession
from opdock.train.meta_graph import prepend_name_scope, strip_name_scope
from opdock.util.threads import begin

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]


NOT_EAGERLY: Final = (
    "Input pipelines based on Queues are not supported when eager execution is enabled. Please use "
    "tf.data to ingest data into your model instead."
)


class QueueRunner:
    """Runs enqueue operations, each in a thread of its own, until their input ends.

    When all of them have met the end, the queue is closed; with an error or when a coordinator
    asks to stop, those who wait for room give up too.

    Args:
        queue: the queue that is filled.
        enqueue_ops: the operations, one a thread.
        close_op: closes the queue; made if absent.
        cancel_op: closes it and ends the waiting for room; made if absent.
        queue_closed_exception_types: errors that mean that the input has ended.
        queue_runner_def: a QueueRunnerDef message in place of all these.
        import_scope: a scope before the names in the message.

    Raises:
        ValueError: too much or too little is given.
        TypeError: the exception types are no tuple of error classes.
    """

    def __init__(
        self, queue: Any = None, enqueue_ops: Any = None, close_op: Any = None,
        cancel_op: Any = None, queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None, import_scope: str | None = None,
    ) -> None:  # fmt: skip
        refuse_eagerly(NOT_EAGERLY)
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._read(queue_runner_def, import_scope)
        else:
            if not queue or not enqueue_ops:
                raise ValueError("Must provide queue and enqueue_ops.")
            self._queue, self._enqueue_ops = queue, enqueue_ops
            self._ends = _checked(queue_closed_exception_types)
            self._close_op = queue.close() if close_op is None else close_op
            self._cancel_op = (
                queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
            )
        # Runners that feed, as tensorflow-estimator's, have threads of their own and these names.
        self._lock = threading.RLock()
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    def _read(self, message: Any, scope: str | None) -> None:
        graph = get_default_graph()

        def named(name: str) -> Any:
            return graph.as_graph_element(prepend_name_scope(name, scope))

        self._queue = named(message.queue_name)
        self._enqueue_ops = [named(n) for n in message.enqueue_op_name]
        self._close_op = named(message.close_op_name)
        self._cancel_op = named(message.cancel_op_name)
        codes = message.queue_closed_exception_types
        self._ends = tuple(errors.exception_type_from_error_code(c) for c in codes) or (
            errors.OutOfRangeError,
        )

    # ------------------------------------------------------------ facts
    @property
    def queue(self) -> Any:
        """The queue; its operation, if it was read from a message."""
        return self._queue

    @property
    def enqueue_ops(self) -> Any:
        """The operations that fill it."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """What closes the queue."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """What closes the queue and ends the waiting for room."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[errors.OpError], ...]:
        """Errors that mean that the input has ended."""
        return self._ends

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What threads without a coordinator ended with."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The queue's name."""
        return str(self._queue.name)

    # ------------------------------------------------------------ threads
    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Threads for the operations, and one that waits for the coordinator's stop.

        Args:
            sess: the session in which they run.
            coord: a `tf.train.Coordinator` that is told of errors and asked when to stop.
            daemon: whether they let the program end.
            start: whether they are started here.

        Returns:
            The threads; none if those of an earlier call still run in the session.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            threading.Thread(
                target=self._run, args=(sess, op, coord),
                name=f"QueueRunnerThread-{self.name}-{op.name}",
            )
            for op in self._enqueue_ops
        ]  # fmt: skip
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=self._close_on_stop, args=(sess, self._cancel_op, coord),
                    name=f"QueueRunnerThread-{self.name}-close_on_stop",
                )
            )  # fmt: skip
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = daemon or thread.daemon
            if start:
                begin(thread)
        return threads

    def _run(self, sess: Any, enqueue_op: Any, coord: Any = None) -> None:
        counted = True
        try:
            enqueue = sess.make_callable(enqueue_op)
            while not (coord and coord.should_stop()):
                try:
                    enqueue()
                except self._ends:
                    counted = False
                    if self._one_less(sess) == 0:
                        with contextlib.suppress(Exception):
                            sess.run(self._close_op)
                    return
        except BaseException as e:  # in a thread nobody else would hear of it
            if coord:
                # The end of the session is how those end who wait when the coordinator has stopped.
                if not (coord.should_stop() and isinstance(e, errors.CancelledError)):
                    coord.request_stop(e)
                return
            logging.error("Exception in QueueRunner: %s", str(e))
            with self._lock:
                self._exceptions_raised.append(e)
            raise
        finally:
            if counted:
                self._one_less(sess)

    def _one_less(self, sess: Any) -> int:
        with self._lock:
            self._runs_per_session[sess] -= 1
            return self._runs_per_session[sess]

    def _close_on_stop(self, sess: Any, cancel_op: Any, coord: Any) -> None:
        coord.wait_for_stop()
        # The queue may be closed already, and the session too.
        with contextlib.suppress(Exception):
            sess.run(cancel_op)

    # ------------------------------------------------------------ as a message
    def to_proto(self, export_scope: str | None = None) -> Any:
        """A QueueRunnerDef message; None if the queue is in another scope."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        message = protos.QueueRunnerDef()
        message.queue_name = strip_name_scope(self.name, export_scope)
        for op in self._enqueue_ops:
            message.enqueue_op_name.append(strip_name_scope(op.name, export_scope))
        message.close_op_name = strip_name_scope(self._close_op.name, export_scope)
        message.cancel_op_name = strip_name_scope(self._cancel_op.name, export_scope)
        codes = [errors.error_code_from_exception_type(t) for t in self._ends]
        message.queue_closed_exception_types.extend(codes)
        return message

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner of a QueueRunnerDef message."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def _checked(types: Any) -> tuple[type[errors.OpError], ...]:
    if types is None:
        return (errors.OutOfRangeError,)
    good = isinstance(types, tuple) and types and all(
        isinstance(t, type) and issubclass(t, errors.OpError) for t in types
    )  # fmt: skip
    if not good:
        raise TypeError(
            "queue_closed_exception_types, when provided, must be a tuple of tf.error types, "
            f"but saw: {types}"
        )
    return types  # type: ignore[no-any-return]


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to those that `start_queue_runners` starts.

    Args:
        qr: the queue runner.
        collection: the collection, QUEUE_RUNNERS by default.
    """
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None, coord: Any = None, daemon: bool = True, start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:  # fmt: skip
    """Starts the threads of all runners in a collection.

    Args:
        sess: the session, the default one when absent.
        coord: a `tf.train.Coordinator` for the threads.
        daemon: whether they let the program end.
        start: False makes the threads only.
        collection: where the runners are.

    Returns:
        The threads.

    Raises:
        ValueError: there is no session.
        TypeError: `sess` is no session.
    """
    refuse_eagerly(NOT_EAGERLY)
    if sess is None:
        sess = get_default_session()
        if not sess:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess."
                "as_default()` or pass an explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []  # they start the runners themselves
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = get_collection(collection)
    if not runners:
        logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You "
            "can safely remove the call to this deprecated function."
        )
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]
