"""Fixtures of the CPU backend's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import opdock as tf
from opdock_cpu.jit import llvm, looped
from opdock_cpu.jit.looped import Looped


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], list[Any]]]:
    """What a graph gives with generated loops, and without; and that there were some."""

    def run(build: Callable[[], Any], *names: str) -> tuple[list[Any], list[Any]]:
        with tf.Graph().as_default(), tf.Session() as session, monkeypatch.context() as patch:
            patch.setenv("OPDOCK_JIT", "sync")
            patch.setattr(looped, "_SMALL", 0)
            assert llvm.available()
            ran: list[str] = []
            original = Looped.__call__

            def spied(self: Looped, *args: Any, **words: Any) -> bool:
                done = original(self, *args, **words)
                if done:
                    ran.append(self._function.__name__)
                return done

            patch.setattr(Looped, "__call__", spied)
            fetches = build()
            fetches = fetches if isinstance(fetches, Sequence) else [fetches]
            with_loops = session.run(list(fetches))
            assert set(names) <= set(ran)
            patch.setattr(Looped, "__call__", lambda *args, **words: False)
            return with_loops, session.run(list(fetches))

    return run
