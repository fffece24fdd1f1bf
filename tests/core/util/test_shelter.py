"""Work in shelter from signal handlers: in another thread where one may come."""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from opdock.util.handlers import SIGNALS
from opdock.util.shelter import ShelteredLock, _Task, shelter, sheltered

_LEFT = signal.SIGUSR1


@pytest.fixture(autouse=True)
def no_handlers() -> Iterator[None]:
    """What runs the tests may have some."""
    before = {s: signal.getsignal(s) for s in SIGNALS}
    for number, handler in before.items():
        if callable(handler) and handler is not signal.default_int_handler:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        if handler is not None:
            signal.signal(number, handler)


def _handler(*_: object) -> None: ...


def test_without_handlers_all_is_done_in_its_place() -> None:
    assert shelter(threading.get_ident) == threading.get_ident()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert shelter(threading.get_ident) == threading.get_ident()


def test_with_one_another_thread_does_it_which_goes_on_in_its_place() -> None:
    signal.signal(_LEFT, _handler)
    found = shelter(lambda: (threading.get_ident(), shelter(threading.get_ident)))
    assert found[0] == found[1] != threading.get_ident()
    assert shelter(threading.get_ident) == found[0]  # the thread is kept


@contextlib.contextmanager
def _comes_in_the_waiting(handler: Callable[[], None]) -> Iterator[None]:
    """Calls a handler as soon as this thread waits for what another one does."""
    signal.signal(_LEFT, _handler)  # that there may be one is known by this

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return line if frame.f_code is _Task.result.__code__ else None

    def line(frame: FrameType, event: str, arg: Any) -> None:
        sys.settrace(old)
        handler()

    old = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(old)


def test_a_handler_that_comes_meanwhile_has_shelter_too() -> None:
    order = list[str]()
    done = threading.Event()

    def handler() -> None:
        shelter(order.append, "handler")
        done.set()

    def work() -> None:
        assert done.wait(600)
        order.append("work")

    with _comes_in_the_waiting(handler):
        shelter(work)
    assert order == ["handler", "work"]


def test_errors_and_contexts_are_those_of_who_asks() -> None:
    signal.signal(_LEFT, _handler)
    mark: contextvars.ContextVar[int] = contextvars.ContextVar("mark", default=0)
    mark.set(3)
    assert shelter(mark.get) == 3

    @sheltered
    def fails(word: str) -> None:
        """Its words."""
        raise KeyError(word)

    with pytest.raises(KeyError, match="no") as caught:
        fails("no")
    assert caught.traceback[-1].name == "fails"
    assert fails.__doc__ == "Its words."


def test_a_handler_that_raises_ends_the_waiting_alone() -> None:
    go, ended = threading.Event(), threading.Event()

    def handler() -> None:
        raise TimeoutError

    def work() -> None:
        assert go.wait(600)
        ended.set()

    with pytest.raises(TimeoutError), _comes_in_the_waiting(handler):
        shelter(work)
    go.set()
    assert ended.wait(600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_has_threads_of_its_own() -> None:
    signal.signal(_LEFT, _handler)
    shelter(_handler)
    child = os.fork()
    if not child:
        os._exit(0 if shelter(lambda: 5) == 5 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_under_a_sheltered_lock_a_handler_waits_its_turn() -> None:
    order = list[str]()
    lock = ShelteredLock()
    has_it, came = threading.Event(), threading.Event()

    def handler() -> None:
        assert has_it.wait(600)  # the thread that works may begin late
        came.set()
        lock.within(order.append, "handler")

    def work() -> None:
        has_it.set()
        assert came.wait(600)
        lock.within(order.append, "inside")  # whoever has it goes on
        order.append("work")

    with _comes_in_the_waiting(handler):
        lock.within(work)
    assert order == ["inside", "work", "handler"]


def test_who_imports_a_module_does_the_work_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread would wait for the module, and this one for that thread."""
    signal.signal(_LEFT, _handler)
    (tmp_path / "works_as_it_comes.py").write_text(
        "import importlib, threading\n"
        "from opdock.util.shelter import shelter\n"
        "found = shelter(importlib.import_module, __name__), shelter(threading.get_ident)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("works_as_it_comes")
    assert module.found == (module, threading.get_ident())
