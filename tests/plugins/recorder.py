"""A backend that records whole steps: its work is a list of calls, queued again by a replay.

`hooks` are called where another thread may come in between: while a step is recorded, before a
replay's work, before a copy of a buffer, and before an update takes its variable's lock.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    Probe,
    hookimpl,
    register,
    unregister,
)

table = KernelTable()
hooks = SimpleNamespace()


class Memory:
    """A buffer, whose elements are there once the work that fills it has run."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.array = np.zeros(shape, dtype)
        self.shape, self.dtype = self.array.shape, self.array.dtype


class Recording:
    def __init__(self, work: list[Callable[[], None]], result: Any) -> None:
        self.work, self.result = work, result

    def replay(self) -> None:
        hooks.replay()
        for call in self.work:
            call()


class Tape(threading.local):
    """What the thread that records has queued; others' work is done at once."""

    calls: list[Callable[[], None]] | None = None


class Recorder(BaseDevice):
    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        self.tape = Tape()

    def submit(self, fn: Callable[..., Any], out: Memory, *inputs: Memory) -> Memory:
        def call() -> None:
            out.array[...] = fn(*(x.array for x in inputs))

        if self.tape.calls is None:
            call()
        else:
            self.tape.calls.append(call)
        return out

    def upload(self, array: np.ndarray) -> Memory:
        made = Memory(array.shape, array.dtype)
        made.array[...] = array
        return made

    def download(self, buffer: Memory) -> np.ndarray:
        assert self.tape.calls is None
        return np.array(buffer.array)

    def record(self, work: Callable[[], Any]) -> Recording:
        self.tape.calls = kept = []
        try:
            result = work()
        finally:
            self.tape.calls = None
        hooks.record()
        return Recording(kept, result)

    def duplicate(self, buffer: Memory) -> Memory:
        hooks.duplicate()
        return self.submit(np.array, Memory(buffer.shape, buffer.dtype), buffer)

    def assign(self, target: Memory, source: Memory) -> None:
        self.submit(np.array, target, source)


def elementwise(ctx: Any, ufunc: Any, x: Memory, y: Memory) -> Memory:
    shape = np.broadcast_shapes(x.shape, y.shape)
    return ctx.device.submit(ufunc, Memory(shape, x.dtype), x, y)


@table.kernel("AddV2", "Add")
def add(ctx: Any, x: Memory, y: Memory) -> Memory:
    return elementwise(ctx, np.add, x, y)


@table.kernel("Mul")
def multiply(ctx: Any, x: Memory, y: Memory) -> Memory:
    return elementwise(ctx, np.multiply, x, y)


@table.kernel("AssignAdd", "AssignAddVariableOp")
def assign_add(ctx: Any, cell: Any, value: Memory) -> Any:
    hooks.update()
    with cell.lock:
        cell.write(elementwise(ctx, np.add, cell.read(), value))
    return cell if ctx.sig.op == "AssignAdd" else None


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="recorder", device_type="RECORDER", own_type="RECORDER", api=(1, 1), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Recorder", kernels=(f"{__name__}:table",),
        compiler="opdock.plugin:record_segment",
    )  # fmt: skip


def probe() -> Probe:
    return Probe(devices=[DeviceAttributes(index=0)])


def install() -> SimpleNamespace:
    """Registers the backend and returns its hooks, which do nothing yet."""
    for name in ("record", "replay", "duplicate", "update"):
        setattr(hooks, name, lambda: None)
    register(sys.modules[__name__], "recorder")
    return hooks


def uninstall() -> None:
    """Forgets the backend."""
    unregister("recorder")
