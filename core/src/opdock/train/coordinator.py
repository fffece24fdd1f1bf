"""`tf.train.Coordinator`: threads that stop together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opdock import errors


class Coordinator:
    """Lets threads ask each other to stop, and passes on the first exception.

    Args:
        clean_stop_exception_types: exceptions that mean a normal end.
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean: tuple[type[BaseException], ...] = (
            (errors.OutOfRangeError,)
            if clean_stop_exception_types is None
            else tuple(clean_stop_exception_types)
        )
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; `ex` is raised again by `join` unless it is a clean end."""
        with self._lock:
            if isinstance(ex, tuple):
                ex = ex[1]
            if self._joined:
                if isinstance(ex, self._clean):
                    ex = None
                if ex is not None:
                    raise ex
                return
            if not self._stop.is_set():
                if ex is not None and not isinstance(ex, self._clean):
                    self._error = ex
                self._stop.set()

    def clear_stop(self) -> None:
        """Forgets a request to stop."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turns an exception in the block into a request to stop."""
        try:
            yield
        except BaseException as e:
            self.request_stop(e)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits for a request to stop; whether there was one."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread for `join`."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for the threads, and raises the exception that stopped them.

        Raises:
            RuntimeError: a thread is still alive after the grace period.
        """
        with self._lock:
            waiting = list(self._registered_threads.union(threads or ()))
        while any(t.is_alive() for t in waiting) and not self.wait_for_stop(1.0):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            # One that was never started, or has ended, is not waited for.
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0.0))
        alive = [t.name for t in waiting if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            if self._error is not None:
                raise self._error
            if alive and not ignore_live_threads:
                raise RuntimeError(
                    f"Coordinator stopped with threads still running: {' '.join(alive)}"
                )

    def raise_requested_exception(self) -> None:
        """Raises the exception that a thread passed on, if any."""
        with self._lock:
            if self._error is not None:
                raise self._error

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined


class LooperThread(threading.Thread):
    """A thread that repeats `run_loop` until its coordinator stops.

    Args:
        coord: the coordinator.
        timer_interval_secs: the time between two turns; None for no wait.
        target, args, kwargs: a function to call in place of `run_loop`.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Any = None,
        kwargs: Any = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._fn, self._fn_args, self._fn_kwargs = target, args or (), kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Any,
        args: Any = None,
        kwargs: Any = None,
    ) -> LooperThread:
        """Starts a looper and returns it."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """The thread's body."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._interval is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(due - time.monotonic()):
                    due += self._interval
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once before the first turn."""

    def stop_loop(self) -> None:
        """Called once after the last turn."""

    def run_loop(self) -> None:
        """One turn."""
        if self._fn is not None:
            self._fn(*self._fn_args, **self._fn_kwargs)


__all__ = ["Coordinator", "LooperThread"]
