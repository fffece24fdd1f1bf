"""`Session`: compiles what is asked for, keeps the programs, and runs them."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from opdock import errors, shapes
from opdock.codes import coded
from opdock.graph.nodes.default_session import pop_default_session, push_default_session
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.runtime import mixed_precision, process_settings, servers
from opdock.runtime.cache.callables import callable_of_options, make_callable
from opdock.runtime.cache.programs import Call, ProgramCache
from opdock.runtime.cache.variants import Entry, Key
from opdock.runtime.config import check_arguments, interactive
from opdock.runtime.deadline import allowed
from opdock.runtime.engine import Engine
from opdock.runtime.fetch import feed_array, feed_items
from opdock.runtime.recover.located import at_step
from opdock.runtime.recover.lost import runs_again
from opdock.runtime.recover.misfit import as_it_runs
from opdock.runtime.running import Runnable, Runner
from opdock.util.interrupts import finalizer

if TYPE_CHECKING:
    from opdock.kernels.select.table import Kernel
    from opdock.runtime.inspect.bisect import Bisection
    from opdock.runtime.inspect.explain import Explanation
    from opdock.runtime.inspect.shadow import Shadow
    from opdock.runtime.partial import PartialRun

_ARRAY: Final = np.ndarray
_NOTHING: Final[tuple[Sequence[Any], Key]] = (), ()


class BaseSession:
    """What `Session` and `InteractiveSession` share."""

    _closed = _ended = True  # as long as it is being made

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        check_arguments(target, graph, config)
        address = servers.find(target)
        self._graph = get_default_graph() if graph is None else graph
        config = process_settings.asked() if config is None else config
        self._config = config = mixed_precision.asking(config)
        self._aborted = False
        self._target = "" if address is None else target
        self._engine = self._engine_for(address)
        self._engine.prepare()
        self._cache = ProgramCache(self._graph, self._engine)
        self._partial_runs: dict[str, PartialRun] = {}
        self._partial_count = itertools.count(1)
        self._closed = self._ended = False

    def _engine_for(self, address: str | None) -> Runner:
        """What runs the steps: on its own, with a server's state, or, as few do, over tasks."""
        server = None if address is None else servers.at(address)
        alone = server is None or (
            len(server.tasks) == 1 and not (self._config and self._config.cluster_def.job)
        )
        if address is not None and (server is None or not alone):
            from opdock.runtime.cluster.master import Master

            return Master(address, self._config)
        if server is not None:
            server.add(self)
        return Engine(self._config, server)

    # ------------------------------------------------------------ facts
    @property
    def graph(self) -> Graph:
        """The graph that the session runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef message, with shapes where the ConfigProto asks for them."""
        asked = self._config is not None and self._config.graph_options.infer_shapes
        return self._graph.as_graph_def(add_shapes=bool(asked))

    @property
    def sess_str(self) -> str:
        """The target, empty for a session of its own."""
        return self._target

    @property
    def config(self) -> Any:
        """The ConfigProto that the session was made with or `tf.config` asks for, or None."""
        return self._config

    def list_devices(self) -> list[Any]:
        """The devices of the session, with name, type and memory limit."""
        return self._engine.list_devices()

    def close(self) -> None:
        """Frees the session's state; running it afterwards is an error."""
        if not self._ended:
            self._closed = True
            self._cache.forget()
            self._partial_runs.clear()
            try:
                self._engine.close()
            except errors.OpError:
                self._ended = True
                raise
            self._ended = True  # what a Ctrl-C left undone, the next call does

    def _abort(self) -> None:
        """Ends the session as its server was reset; close it all the same."""
        self._aborted = True
        self._cache.forget()

    @finalizer
    def __del__(self) -> None:
        with contextlib.suppress(errors.OpError):  # nobody is left to be told
            self.close()

    # ------------------------------------------------------------ running
    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs what `fetches` needs and returns the values in the same structure.

        Args:
            fetches: a Tensor, Operation, variable or name, or a nested structure of those.
            feed_dict: values for tensors, any of the graph's.
            options: a RunOptions message (trace level, time-out, partition graphs).
            run_metadata: a RunMetadata message to fill.

        Raises:
            RuntimeError: the session is closed or the graph empty.
            TypeError: a fetch or feed key has a wrong type.
            ValueError: a fetch or feed names nothing, or a fed value does not fit.
            OpError: an op failed; the error names it and the user's line.
        """
        values, key = self._feeds(feed_dict) if feed_dict else _NOTHING
        call = self._cache.find(fetches) or self._prepare(fetches)
        return self._step(call, values, key, options, run_metadata)

    def _step(
        self, call: Call, values: Sequence[Any], key: Key, options: Any, run_metadata: Any
    ) -> Any:
        """One step that is fed `values`, arrays of the right types, whose tensors are in `key`."""
        try:
            entry = call.programs.get(key)
            if entry is None:
                with allowed(options):
                    entry = self._entry(call, values, key)
            if entry.keep:
                values = entry.own(values)
            if options is None and run_metadata is None and entry.plain:
                raw = entry.program.run(values)
            else:
                raw = self._engine.run(entry.program, values, options, run_metadata)
            return call.restore(entry.deliver(raw))
        except MemoryError as e:
            # Not from a kernel, which is known then: the program, a constant, what is handed out.
            text = f"The step does not fit into the host's memory: {e or 'none is left'}"
            raise errors.ResourceExhaustedError(None, None, text) from e
        except errors.OpError as e:
            if self._closed and isinstance(e, errors.FailedPreconditionError):
                # What the step missed went with the session.
                raise errors.CancelledError(e.node_def, e.op, servers.CLOSED) from e
            if not runs_again(e):
                at_step(e, self)
                raise
        # A device was lost or full, nothing has outlasted the step: place it elsewhere.
        again = self._cache.renew(call)
        return self._step(again, values, key, options, run_metadata)

    def _feeds(self, feed_dict: Any) -> tuple[Sequence[Any], Key]:
        """The fed arrays, and the key of the program that takes them."""
        values: list[Any] = []
        key: list[Any] = []
        types = self._cache.kept.fed
        for tensor, value in feed_dict.items():
            try:
                wanted = types[tensor]
            except KeyError:
                return self._slow_feeds(feed_dict)
            kind = type(value)
            if kind is _ARRAY and value.dtype is wanted:
                array = value
            elif kind is wanted.type:
                # Kernels take arrays faster than NumPy's scalar objects.
                array = np.asarray(value)
            else:
                array = feed_array(tensor, value)
            values.append(array)
            key += (tensor, array.shape)
        return values, tuple(key)

    def _slow_feeds(self, feed_dict: Any) -> tuple[Sequence[Any], Key]:
        kept = self._cache.kept
        if (tensors := kept.unnamed(feed_dict)) is not None:
            return self._feeds(tensors)
        self._check_runs()
        values: list[Any] = []
        key: list[Any] = []
        for tensor, value in feed_items(self._graph, feed_dict):
            array = feed_array(tensor, value)
            values.append(array)
            key += (tensor, getattr(array, "shape", ()))
            kept.allow(tensor)
        return values, tuple(key)

    # ------------------------------------------------------------ programs
    def _check_runs(self) -> None:
        """Raises RuntimeError where nothing can run. Nothing is cached then: hits need no look."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._aborted:
            raise errors.AbortedError(None, None, "The session was ended: its server was reset.")
        if self._graph.version == 0:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        for (op, _), (_, text) in self._graph._mistyped.items():
            raise errors.InvalidArgumentError(None, op, text)

    def _prepare(self, fetches: Any) -> Call:
        self._check_runs()
        return self._cache.prepare(fetches)

    def _entry(self, call: Call, values: Sequence[Any], key: Key, any_shape: bool = False) -> Entry:
        """The entry for values, of `any_shape` or of the graph's: it fails as a step does."""
        try:
            if any_shape:
                return call.programs.get(key) or self._cache.compile(call, key)
            return self._compile(call, values, key)
        except errors.InvalidArgumentError as e:
            if self._closed:  # meanwhile, and the devices are gone
                raise errors.CancelledError(e.node_def, e.op, servers.CLOSED) from e
            raise as_it_runs(e, self._engine, self._graph, values, key) from None

    def _compile(self, call: Call, values: Sequence[Any], key: Key) -> Entry:
        """The entry for fed values whose key has none of its own."""
        for tensor, shape, value in zip(key[::2], key[1::2], values, strict=True):
            if not shapes.is_compatible(tensor._shape, shape):
                feed_array(tensor, value)
        return self._cache.compile(call, key)

    def _program(self, fetches: Any, feed_dict: Any = None) -> Runnable:
        """The program that `run` would take, compiled if there is none."""
        values, key = self._feeds(feed_dict) if feed_dict else _NOTHING
        call = self._cache.find(fetches) or self._prepare(fetches)
        return (call.programs.get(key) or self._compile(call, values, key)).program

    # ------------------------------------------------------------ partial runs
    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Begins a step that is taken in several `partial_run` calls.

        Args:
            fetches: everything that the calls will fetch.
            feeds: the tensors that they will feed.

        Returns:
            The handle of the step.
        """
        from opdock.runtime.partial import PartialRun

        handle = f"partial_run_{next(self._partial_count)}"
        self._partial_runs[handle] = PartialRun(self, fetches, feeds)
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a step: feeds and fetches a part of what was announced.

        Raises:
            RuntimeError: the session is closed.
            InvalidArgumentError: there is no such step, it is complete, or a feed or fetch was not
                announced or had its turn.
            UnimplementedError: an operation with effects would have to run a second time.
        """
        step = self._partial_runs.get(handle)
        if step is None:
            self._check_runs()
            raise errors.InvalidArgumentError(
                None, None, "Must run 'setup' before performing partial runs!"
            )
        result = step.run(fetches, feed_dict)
        if step.finished:
            self._partial_runs.pop(handle, None)  # a session that closes forgets them all
        return result

    def explain(self, fetches: Any, feed_dict: Any = None, run_metadata: Any = None) -> Explanation:
        """Where each op of `fetches` runs, with which kernel of which plugin, and why.

        Compiles the program if needed; runs nothing.

        Args:
            fetches: as for `run`.
            feed_dict: as for `run`.
            run_metadata: that of a traced step of the same, which says what each node took.

        Raises:
            OpError: a task of the session's cluster is gone.
        """
        return self._engine.explain(self._program(fetches, feed_dict), run_metadata)

    def bisect(
        self,
        fetches: Any,
        device_a: str,
        device_b: str,
        feed_dict: Any = None,
        *,
        save: str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Bisection:
        """Finds the first op at which two devices disagree, and saves it as a replayable case.

        Every op of `fetches` runs once on `device_a`, whose results count as right, and once by
        itself on `device_b` with the inputs it had there. If each is right by itself, the answer is
        the first op whose value drifts too far when all of them run on `device_b`. Variables start
        as they are in this session, which keeps its own. Ops with effects outside of it (files,
        prints, Python functions) run once a time.

        Args:
            fetches: as for `run`.
            device_a: the device that is right, "cpu:0" or "/device:CPU:0".
            device_b: the device to compare with it.
            feed_dict: as for `run`.
            save: the case's file; by default "opdock-case-<op>.npz" in the working directory.
            rtol: relative slack in place of that of each element type.
            atol: absolute slack likewise.

        Returns:
            A record, true when the devices diverge; `str` of it is a report.
        """
        # It runs sessions of its own.
        from opdock.runtime.inspect.bisect import bisect

        return bisect(self, fetches, device_a, device_b, feed_dict, save, rtol, atol)

    def shadow(
        self, device: str, *, share: float = 0.05, budget: float = 0.25, seed: int = 0,
        rtol: float | None = None, atol: float | None = None,
    ) -> Shadow:  # fmt: skip
        """Runs a share of the ops of all further steps on a second device too, and compares.

        Results stay those of the first device. Use it as a context manager, or close it.

        Args:
            device: the second device, "opencl:0" or "/device:OPENCL:0".
            share: of all kernels that run, how many are looked at, from 0 to 1.
            budget: what this may cost, as a share of the steps' time; one comparison may exceed it.
            seed: which ones are looked at.
            rtol, atol: slack in place of that of each element type.

        Raises:
            InvalidArgumentError: there is no such device.
            UnimplementedError: the session spans the tasks of a cluster.
        """
        from opdock.runtime.inspect.shadow import Shadow

        return Shadow(self._in_one_task("shadow"), device, share, budget, seed, (rtol, atol))

    def use_kernel(self, kernel: Kernel, node: str = "", device: str = "") -> Callable[[], None]:
        """Computes an op by another kernel from the next step on, in this session alone.

        No pass changes or fuses nodes that get it. Where it does not admit a node the others are
        asked, as they are under soft placement where it declines; `explain` tells of both.

        Args:
            kernel: an `opdock.plugin.Kernel`.
            node: the name of the only node that gets it; all of the op's by default.
            device: the only device on which it serves; all by default.

        Returns:
            A function that takes the kernel back.

        Raises:
            UnimplementedError: the session spans the tasks of a cluster.
        """
        from opdock.runtime.inspect.swapping import swap

        return swap(self._in_one_task("use_kernel"), kernel, node, device)

    def _in_one_task(self, what: str) -> Engine:
        if isinstance(self._engine, Engine):
            return self._engine
        told = f"Session.{what} knows sessions without a target; this one spans tasks of a cluster."
        raise errors.UnimplementedError(None, None, coded("OPD-CLUSTER-002", told))

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches` with positional values for `feed_list`."""
        return make_callable(self, fetches, feed_list or ())

    def _make_callable_from_options(self, callable_options: Any) -> Callable[..., Any]:
        return callable_of_options(self, callable_options)

    def as_default(self) -> contextlib.AbstractContextManager[BaseSession]:
        """Makes this the default session of the thread."""
        return self._default()

    @contextlib.contextmanager
    def _default(self) -> Iterator[BaseSession]:
        push_default_session(self)
        try:
            yield self
        finally:
            pop_default_session(self)


class Session(BaseSession):
    """Runs a graph.

    Args:
        target: a `tf.train.Server`'s, or "" for a session of its own.
        graph: the graph, the default graph when absent.
        config: a `tf.ConfigProto`.

    Use it as a context manager to make it and its graph the defaults and to close it at the end.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._contexts: list[contextlib.ExitStack] = []

    def __enter__(self) -> Self:
        if self._contexts:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you "
                "want to enter a session multiple times."
            )
        stack = contextlib.ExitStack()
        stack.enter_context(self._graph.as_default())
        stack.enter_context(self.as_default())
        self._contexts.append(stack)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._contexts.pop().__exit__(kind, value, tb)
        self.close()

    @staticmethod
    def reset(target: str, containers: list[str] | None = None, config: Any = None) -> None:
        """Forgets what a server keeps, and ends its sessions.

        Args:
            target: the server's target; sessions without one share nothing, so "" does nothing.
            containers: what to forget, all by default.
            config: a ConfigProto; `operation_timeout_in_ms` says how long tasks may take to
                answer, `device_filters` which of them are asked.

        Raises:
            NotFoundError: the target is no server's.
            UnimplementedError: it is that of another process, and there is no cluster engine.
        """
        address = servers.find(target)
        if address is not None:
            from opdock.runtime.cluster.master import reset

            reset(address, containers or (), config)


class InteractiveSession(BaseSession):
    """A session that makes itself the default until it is closed, for notebooks."""

    _active_session_count: ClassVar[int] = 0

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, interactive(config))
        if InteractiveSession._active_session_count:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory errors in "
                "some cases. You must explicitly call `InteractiveSession.close()` to release "
                "resources held by the other session(s).",
                stacklevel=2,
            )
        InteractiveSession._active_session_count += 1
        self._stack = contextlib.ExitStack()
        if graph is not None:
            self._stack.enter_context(graph.as_default())
        push_default_session(self)

    def close(self) -> None:
        """Closes the session and restores the former defaults."""
        if not self._closed:
            InteractiveSession._active_session_count -= 1
            pop_default_session(self, nested=False)
            self._stack.close()
        super().close()
