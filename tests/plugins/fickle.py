"""A backend that fails on demand and counts its bytes: lost, out of memory, declining."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    MemoryStats,
    Probe,
    errors,
    hookimpl,
    register,
    unregister,
)

table = KernelTable()


class Demand:
    """What the device shall do; `calls` counts the kernels that it was asked to run.

    Without `updates` it declines to change variables, though not to compute. `planned` says what
    happens at the call of a number: "lost" for good, or once "declined" or "full".
    """

    def __init__(self) -> None:
        self.lost = False
        self.room: int | None = None
        self.declines = False
        self.updates = True
        self.kept: dict[int, int] = {}  # bytes, by buffer; threads of a step make and drop them
        self.calls = 0
        self.planned: dict[int, str] = {}

    @property
    def in_use(self) -> int:
        """Bytes of the buffers that are kept."""
        return sum(list(self.kept.values()))

    def call(self) -> None:
        """A kernel is asked to run."""
        self.calls += 1
        fault = self.planned.get(self.calls)
        self.lost = self.lost or fault == "lost"
        self.check()
        if self.declines or fault == "declined":
            raise errors.UnimplementedError(None, None, "does not feel like it")
        if fault == "full":
            raise errors.ResourceExhaustedError(None, None, "no room at all")

    def check(self) -> None:
        if self.lost:
            raise errors.UnavailableError(None, None, "fell off the bus")


demand = Demand()


class Buffer:
    """Memory of the device: not reachable when it is lost, and accounted for."""

    def __init__(self, array: np.ndarray) -> None:
        self.nbytes = 0
        self._counted = demand  # buffers of the test before may go during the next one
        demand.check()
        if demand.room is not None and demand.in_use + array.nbytes > demand.room:
            raise errors.ResourceExhaustedError(None, None, f"no room for {array.nbytes} bytes")
        self.shape, self.dtype = array.shape, array.dtype
        self._array, self.nbytes = array, array.nbytes
        demand.kept[id(self)] = self.nbytes

    def __del__(self) -> None:
        self._counted.kept.pop(id(self), None)

    @property
    def array(self) -> np.ndarray:
        demand.check()
        return self._array


class Fickle(BaseDevice):
    def upload(self, array: np.ndarray) -> Buffer:
        return Buffer(np.array(array))

    def download(self, buffer: Buffer) -> np.ndarray:
        return np.array(buffer.array)

    def synchronize(self) -> None:
        demand.check()

    def memory(self) -> MemoryStats:
        return MemoryStats(in_use=demand.in_use)


def probe() -> Probe:
    return Probe(devices=[DeviceAttributes(index=0)])


def run(fn: Any, *inputs: Buffer) -> Buffer:
    demand.call()
    return Buffer(fn(*(x.array for x in inputs)))


@table.kernel("AddV2", "Add")
def add(ctx: Any, x: Buffer, y: Buffer) -> Buffer:
    return run(np.add, x, y)


@table.kernel("Mul")
def multiply(ctx: Any, x: Buffer, y: Buffer) -> Buffer:
    return run(np.multiply, x, y)


@table.kernel("AssignAdd")
def assign_add(ctx: Any, cell: Any, value: Buffer) -> Any:
    if not demand.updates:
        raise errors.UnimplementedError(None, None, "writes to nothing")
    cell.write(run(np.add, cell.read(), value))
    return cell


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="fickle", device_type="FICKLE", own_type="FICKLE", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Fickle", kernels=(f"{__name__}:table",),
    )  # fmt: skip


def install() -> Demand:
    """Registers the backend and returns what it listens to."""
    demand.__init__()
    register(sys.modules[__name__], "fickle")
    return demand


def uninstall() -> None:
    """Forgets the backend."""
    unregister("fickle")
