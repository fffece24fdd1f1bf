"""The router: the cheapest way for a value from one memory to another, step by step.

Places are host memory and the open devices with memory of their own. Each of those has a step to
the host and one back; plugins bring direct ones; devices whose buffers speak DLPack about the same
memory need not go through the host.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.devices.protocols import Device
from opdock.devices.routes import HOST, CopyRoute, RouteTable
from opdock.late import record

Carry = Callable[[Any], Any]
STEP: Final = 1.0
"""The cost of an upload or a download."""
SHARE: Final = 0.01
"""The cost of sharing memory: nothing is copied."""
WITHIN: Final = 0.2
"""The cost of a copy within one piece of hardware."""
HOST_MEMORY: Final = (1, 0)
"""Host memory as DLPack calls it."""
DLPACK_REFUSALS: Final = (BufferError, TypeError, ValueError, RuntimeError, AttributeError)
"""What the two sides of DLPack raise for an array that one of them cannot describe."""


@record(frozen=True, slots=True)
class Place:
    """An open device under the name that a session gives it.

    Attributes:
        name: the canonical name.
        own_type: the type of its backend.
        device: the device.
        passable: whether values may pass through on their way elsewhere.
    """

    name: str
    own_type: str
    device: Device
    passable: bool = True


def _same(buffer: Any) -> Any:
    return buffer


@record(frozen=True, slots=True)
class Hop:
    """One step of a route.

    Attributes:
        src, dst: names of devices, or `HOST`.
        how: "upload", "download", "dlpack", or where the function of a plugin's route lives.
        cost: what it adds to the route.
        shares: whether the result may share memory with the argument.
        carry: the step itself, buffer to buffer.
    """

    src: str
    dst: str
    how: str
    cost: float
    shares: bool = False
    carry: Carry = field(default=_same, compare=False, repr=False)


class Router:
    """Finds routes between the devices of a session.

    Args:
        table: the routes of plugins.
        places: gives the devices that are open now.
    """

    def __init__(self, table: RouteTable, places: Callable[[], Sequence[Place]]) -> None:
        self._table = table
        self._places = places
        self._found: dict[Any, tuple[Hop, ...]] = {}

    def find(self, sources: Mapping[str, bool], dst: str, own: bool = False) -> tuple[Hop, ...]:
        """The cheapest way; through host memory there always is one.

        Args:
            sources: the places that hold the value, each with whether its memory may be shared,
                because nothing writes to it any more.
            dst: where the value is wanted.
            own: whether it must be a copy that nobody else has.

        Returns:
            The steps; none when the value is there already. Of equal ways the shortest, then the
            first by name: the same on every run.

        Raises:
            LookupError: a place is no open device.
        """
        places = tuple(self._places())
        state = tuple((p.name, id(p.device), p.passable) for p in places), len(self._table)
        key = (tuple(sources.items()), dst, own, state)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._search(sources, dst, own, places)
        return found

    def _search(
        self, sources: Mapping[str, bool], dst: str, own: bool, places: Sequence[Place]
    ) -> tuple[Hop, ...]:
        closed = {p.name for p in places if not p.passable}
        edges: dict[str, list[Hop]] = {}
        for hop in _hops(self._table, places):
            edges.setdefault(hop.src, []).append(hop)
        ties = itertools.count()
        waiting: list[tuple[float, int, tuple[str, ...], int, tuple[Hop, ...]]]
        waiting = [(0.0, 0, (source,), next(ties), ()) for source in sources]
        heapq.heapify(waiting)
        done: set[str] = set()
        while waiting:
            cost, length, path, _, hops = heapq.heappop(waiting)
            here = path[-1]
            if here == dst:
                return hops
            if here in done or (hops and here in closed):
                continue
            done.add(here)
            for hop in sorted(edges.get(here, ()), key=lambda h: (h.cost, h.how)):
                # What a step has copied is fresh, so only the first one needs leave to share.
                refused = not hops and not sources[here]
                if hop.shares and (refused or (own and hop.dst == dst)):
                    continue
                step = (cost + hop.cost, length + 1, (*path, hop.dst), next(ties), (*hops, hop))
                heapq.heappush(waiting, step)
        raise LookupError(f"no way from {' or '.join(sources)} to {dst}: one of them is not open")


# ---------------------------------------------------------------- steps
def _hops(table: RouteTable, places: Sequence[Place]) -> Iterator[Hop]:
    apart = [p for p in places if not p.device.is_host]
    for place in apart:
        yield Hop(place.name, HOST, "download", STEP, carry=place.device.download)
        yield Hop(HOST, place.name, "upload", STEP, carry=from_host(place.device.upload))
    for route in table:
        yield from _direct(route, places)
    yield from _by_dlpack(apart)


def from_host(take: Carry) -> Carry:
    """A device's `upload` or `borrow`, for whatever NumPy takes for an array."""
    return lambda value: take(np.asarray(value))


def _direct(route: CopyRoute, places: Sequence[Place]) -> Iterator[Hop]:
    """A plugin's route between all devices of its two types."""
    seen = set()
    for src, source in _ends(route.src, places):
        for dst, destination in _ends(route.dst, places):
            if src != dst and (src, dst) not in seen:
                seen.add((src, dst))
                carry = _bound(route, source, destination)
                yield Hop(src, dst, route.name, route.cost, route.shares, carry)


def _ends(own_type: str, places: Sequence[Place]) -> Iterator[tuple[str, Device | None]]:
    if own_type == HOST:
        yield HOST, None
    for place in places:
        if place.own_type == own_type:
            yield HOST if place.device.is_host else place.name, place.device


def _bound(route: CopyRoute, source: Device | None, destination: Device | None) -> Carry:
    """A plugin's copy; what it declines goes through the host."""
    copy, plain = route.copy, _through_host(_apart(source), _apart(destination))

    def carry(buffer: Any) -> Any:
        try:
            return copy(buffer, source, destination)
        except (errors.UnimplementedError, NotImplementedError):
            return plain(buffer)

    return carry


def _apart(device: Device | None) -> Device | None:
    """A device whose memory is not the host's."""
    return None if device is None or device.is_host else device


# ---------------------------------------------------------------- DLPack
def _by_dlpack(apart: Sequence[Place]) -> Iterator[Hop]:
    """Steps between devices, and the host, whose buffers DLPack finds in the same memory."""
    ends: list[tuple[str, Device | None, Any]] = [(HOST, None, HOST_MEMORY)]
    ends += [(p.name, p.device, p.device.dlpack) for p in apart]
    for (src, source, memory), (dst, destination, other) in itertools.permutations(ends, 2):
        if memory is None or memory != other:
            continue
        if memory == HOST_MEMORY:
            yield Hop(src, dst, "dlpack", SHARE, True, _sharer(source, destination))
        else:
            yield Hop(src, dst, "dlpack", WITHIN, False, _sharer(source, destination, copy=True))


def _sharer(source: Device | None, destination: Device | None, copy: bool = False) -> Carry:
    plain = _through_host(source, destination)

    def carry(buffer: Any) -> Any:
        try:
            if source is None:
                buffer = np.asarray(buffer)
            else:
                source.synchronize()
            taken = _take(buffer, destination)
            if copy:
                # The source may be freed, and written again, once this returns.
                assert destination is not None
                taken = destination.duplicate(taken)
                destination.synchronize()
        except DLPACK_REFUSALS:
            return plain(buffer)
        return taken

    return carry


def _take(buffer: Any, destination: Device | None) -> Any:
    if destination is not None:
        return destination.from_dlpack(buffer)
    array = np.from_dlpack(buffer)
    # DLPack before 1.0 cannot say whether memory may be written; kernels get plain arrays.
    return array if array.flags.writeable else array.copy()


def _through_host(source: Device | None, destination: Device | None) -> Carry:
    if source is None:
        assert destination is not None
        return from_host(destination.upload)
    if destination is None:
        return source.download
    download, upload = source.download, destination.upload
    return lambda buffer: upload(download(buffer))
