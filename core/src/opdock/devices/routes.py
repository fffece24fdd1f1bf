"""Copy routes: a weighted digraph over device types, with host memory as the default way."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opdock.devices.protocols import Buffer, Device

HOST: Final = "host"
"""The node of plain NumPy arrays; no device type can have this lower-case name."""

Copy = Callable[..., Buffer]


@dataclass(frozen=True, kw_only=True)
class CopyRoute:
    """A direct way from the buffers of one device type to those of another.

    Attributes:
        src, dst: own types of the two backends; equal ones copy between devices of one backend.
        copy: `copy(buffer, src_device, dst_device, stream) -> buffer`; `stream` may be None.
        cost: relative cost; a step between a device and host memory costs 1.0.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    src: str
    dst: str
    copy: Copy
    cost: float = 0.5

    def __post_init__(self) -> None:
        for name in ("src", "dst"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise TypeError(f"CopyRoute.{name} must be a device type, got {value!r}")
        if not callable(self.copy):
            raise TypeError(f"CopyRoute.copy must be callable, got {self.copy!r}")
        if not self.cost > 0:
            raise ValueError(f"CopyRoute.cost must be positive, got {self.cost!r}")


@dataclass(frozen=True)
class Route:
    """A shortest path: the types on the way and what it costs.

    `hops` holds a `CopyRoute` for a direct step and None for a step from or to host memory.
    """

    types: tuple[str, ...]
    hops: tuple[CopyRoute | None, ...]
    cost: float

    def bind(
        self, src: Device, dst: Device, via: Mapping[str, Device] | None = None
    ) -> Callable[[Buffer], Buffer]:
        """One callable that carries a buffer of `src` to a buffer of `dst`.

        Args:
            src: the device that holds the buffer.
            dst: the device that is to hold it.
            via: devices by own type, for the types in between.

        Returns:
            A function of the buffer. Between two host devices it returns the buffer itself.
        """
        steps = list(self._steps(src, dst, via or {}))
        if not steps:
            return _same
        if len(steps) == 1:
            return steps[0]

        def carry(buffer: Buffer) -> Buffer:
            for step in steps:
                buffer = step(buffer)
            return buffer

        return carry

    def _steps(
        self, src: Device, dst: Device, via: Mapping[str, Device]
    ) -> Iterable[Callable[[Any], Buffer]]:
        stops: list[Device | None] = [src]
        stops += [None if t == HOST else via[t] for t in self.types[1:-1]]
        stops.append(dst)
        for hop, (a, b) in zip(self.hops, itertools.pairwise(stops), strict=True):
            if hop is not None:
                yield _direct(hop, a, b)
            elif b is None and a is not None and not a.is_host:
                yield a.download
            elif a is None and b is not None and not b.is_host:
                yield b.upload


def _same(buffer: Buffer) -> Buffer:
    return buffer


def _direct(hop: CopyRoute, src: Device | None, dst: Device | None) -> Callable[[Any], Buffer]:
    copy = hop.copy
    return lambda buffer: copy(buffer, src, dst, None)


class RouteTable:
    """All copy routes that plugins brought; finds the cheapest way between two device types."""

    def __init__(self, routes: Iterable[CopyRoute] = ()) -> None:
        self._direct: dict[str, dict[str, CopyRoute]] = {}
        self._found: dict[tuple[str, str, frozenset[str]], Route] = {}
        for route in routes:
            self.add(route)

    def add(self, route: CopyRoute) -> None:
        """Adds a route; of two between the same types the cheaper one stays."""
        known = self._direct.setdefault(route.src, {}).get(route.dst)
        if known is None or route.cost < known.cost:
            self._direct[route.src][route.dst] = route
            self._found.clear()

    def __iter__(self) -> Iterator[CopyRoute]:
        return iter([r for by_dst in self._direct.values() for r in by_dst.values()])

    def find(self, src: str, dst: str, via: Iterable[str] = ()) -> Route:
        """The cheapest way; through host memory it always exists.

        Args:
            src, dst: own types. Equal ones mean two devices of one backend.
            via: types of open devices that a copy may pass through.
        """
        key = (src, dst, frozenset(via))
        route = self._found.get(key)
        if route is None:
            route = self._found[key] = self._search(*key)
        return route

    def _search(self, src: str, dst: str, via: frozenset[str]) -> Route:
        # The start has no type of its own, so that src == dst is a path of at least one step.
        # Ties go to fewer hops, then to the alphabet: the same way on every run.
        queue: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (src,))]
        best: dict[str, float] = {}
        passable = via | {HOST, dst}
        while queue:
            cost, length, path = heapq.heappop(queue)
            here = path[-1]
            if length and here == dst:
                hops = tuple(self._hop(a, b) for a, b in itertools.pairwise(path))
                return Route(path, hops, cost)
            if length and best.get(here, float("inf")) <= cost:
                continue
            if length:
                best[here] = cost
            for there, weight in self._edges(here, via | {dst}):
                if there in passable:
                    heapq.heappush(queue, (cost + weight, length + 1, (*path, there)))
        raise AssertionError("host memory connects every pair of devices")

    def _edges(self, here: str, types: frozenset[str]) -> Iterable[tuple[str, float]]:
        if here == HOST:
            for there in types:
                yield there, 1.0
            return
        for there, route in self._direct.get(here, {}).items():
            yield there, route.cost
        yield HOST, 1.0

    def _hop(self, a: str, b: str) -> CopyRoute | None:
        return None if HOST in (a, b) else self._direct[a][b]
