"""The router: the cheapest way step by step, the host as the last resort, DLPack where it may."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from opdock.devices.base import BaseDevice
from opdock.devices.protocols import DeviceAttributes
from opdock.devices.router import Place, Router
from opdock.devices.routes import HOST, CopyRoute, RouteTable


class Traced(BaseDevice):
    """Buffers are lists that tell the way they came."""

    def __init__(self, name, is_host=False):
        super().__init__(DeviceAttributes(index=0))
        self.name, self.is_host = name, is_host

    def upload(self, array):
        return [*array.tolist(), f"up {self.name}"]

    def download(self, buffer):
        return [*buffer, f"down {self.name}"]


def direct(src, dst, cost=0.5, **fields):
    def copy(buffer, src_device, dst_device):
        ends = [getattr(d, "name", HOST) for d in (src_device, dst_device)]
        return [*buffer, ">".join(ends)]

    return CopyRoute(src=src, dst=dst, cost=cost, copy=copy, **fields)


def router(*routes, names=("A0", "A1", "B0", "C0", "H0"), closed=()):
    places = [
        Place(n, n[0], Traced(n, is_host=n[0] == "H"), passable=n not in closed) for n in names
    ]
    return Router(RouteTable(routes), lambda: places)


def way(hops):
    return [(h.src, h.dst) for h in hops]


def carried(hops, value=()):
    for hop in hops:
        value = hop.carry(np.array(value, object) if hop.how == "upload" else value)
    return list(value)


def test_through_the_host_by_default():
    hops = router().find({"A0": False}, "B0")
    assert way(hops) == [("A0", HOST), (HOST, "B0")]
    assert [h.how for h in hops] == ["download", "upload"]
    assert carried(hops) == ["down A0", "up B0"]


def test_nothing_to_do_where_the_value_is():
    assert router().find({"A0": False, HOST: True}, HOST) == ()


def test_a_direct_route_is_cheaper_and_an_expensive_one_is_not_taken():
    assert carried(router(direct("A", "B")).find({"A0": False}, "B0")) == ["A0>B0"]
    assert len(router(direct("A", "B", 5.0)).find({"A0": False}, "B0")) == 2


def test_two_devices_of_one_backend():
    assert carried(router(direct("A", "A")).find({"A0": False}, "A1")) == ["A0>A1"]
    assert carried(router().find({"A0": False}, "A1")) == ["down A0", "up A1"]


def test_through_a_third_device_if_it_is_open_and_not_lost():
    table = direct("A", "C", 0.2), direct("C", "B", 0.2)
    assert carried(router(*table).find({"A0": False}, "B0")) == ["A0>C0", "C0>B0"]
    without = router(*table, names=("A0", "B0"))
    assert len(without.find({"A0": False}, "B0")) == 2
    lost = router(*table, closed=("C0",))
    assert way(lost.find({"A0": False}, "B0")) == [("A0", HOST), (HOST, "B0")]
    # What it still holds may be asked for; its own word says that it is gone.
    assert way(lost.find({"C0": False}, "B0")) == [("C0", "B0")]


def test_through_the_host_and_a_plugin():
    """A pinned way up from the host, and only a plain one down to it."""
    hops = router(direct("H", "B", 0.2)).find({"A0": False}, "B0")
    assert [(h.src, h.dst, h.cost) for h in hops] == [("A0", HOST, 1.0), (HOST, "B0", 0.2)]
    assert carried(hops) == ["down A0", "H0>B0"]
    assert carried(router(direct(HOST, "B", 0.2)).find({HOST: False}, "B0")) == ["host>B0"]


def test_from_the_nearest_copy():
    found = router(direct("C", "B", 0.2))
    assert way(found.find({"A0": False, "C0": True, HOST: True}, "B0")) == [("C0", "B0")]
    assert way(found.find({"A0": False, HOST: True}, "B0")) == [(HOST, "B0")]


def test_ties_go_to_fewer_steps_and_then_to_the_name():
    table = direct("A", "C", 0.5), direct("C", "B", 0.5), direct("A", "B", 1.0)
    assert len(router(*table).find({"A0": False}, "B0")) == 1
    assert way(router(names=("B0", "A1", "A0")).find({"A1": True, "A0": True}, HOST)) == [
        ("A0", HOST)
    ]


def test_a_route_or_device_that_comes_later_counts():
    table, places = RouteTable(), [Place("A0", "A", Traced("A0")), Place("B0", "B", Traced("B0"))]
    found = Router(table, lambda: places)
    assert len(found.find({"A0": False}, "B0")) == 2
    table.add(direct("A", "B"))
    assert len(found.find({"A0": False}, "B0")) == 1
    places.pop()
    with pytest.raises(LookupError, match="A0 to B0"):
        found.find({"A0": False}, "B0")


def test_ways_that_share_only_for_memory_that_may_be_shared():
    found = router(direct("A", "B", 0.1, shares=True), direct("B", "C", 0.1, shares=True))
    assert way(found.find({"A0": True}, "B0")) == [("A0", "B0")]
    assert len(found.find({"A0": False}, "B0")) == 2
    assert len(found.find({"A0": True}, "B0", own=True)) == 2
    # What has been copied once is nobody else's.
    assert way(found.find({HOST: False}, "C0")) == [(HOST, "C0")]
    cheap = router(direct(HOST, "A", 0.1), direct("A", "B", 0.1, shares=True))
    assert way(cheap.find({HOST: False}, "B0")) == [(HOST, "A0"), ("A0", "B0")]


# ---------------------------------------------------------------- DLPack
class Side(BaseDevice):
    """NumPy behind a buffer class, in host memory or in memory that it calls a GPU's."""

    namespace = SimpleNamespace(asarray=lambda x, copy: np.array(x, copy=copy))
    synchronized = 0

    def __init__(self, memory):
        super().__init__(DeviceAttributes(index=0))
        self.dlpack = memory

    def upload(self, array):
        return np.array(array)

    def download(self, buffer):
        return np.array(buffer)

    def from_dlpack(self, buffer):
        return np.from_dlpack(buffer)

    def synchronize(self):
        self.synchronized += 1


def sides(first, second):
    a, b = Side(first), Side(second)
    return a, Router(RouteTable(), lambda: [Place("A0", "A", a), Place("B0", "B", b)])


def test_host_memory_is_shared():
    a, found = sides((1, 0), (1, 0))
    (hop,) = found.find({"A0": True}, "B0")
    assert (hop.how, hop.shares) == ("dlpack", True)
    value = np.ones(3, np.float32)
    assert np.shares_memory(hop.carry(value), value)
    assert a.synchronized == 1
    (up,), (down,) = found.find({HOST: True}, "B0"), found.find({"A0": True}, HOST)
    assert np.shares_memory(up.carry(value), value)
    assert np.shares_memory(down.carry(value), value)
    assert down.carry(value).flags.writeable


@pytest.mark.parametrize("memory", [None, (2, 0), (2, 1)])
def test_other_memory_is_not(memory):
    _, found = sides((1, 0), memory)
    assert [h.how for h in found.find({"A0": True}, "B0")][-1] == "upload"


def test_one_gpu_under_two_backends_copies_within_it():
    _, found = sides((2, 0), (2, 0))
    (hop,) = found.find({"A0": False}, "B0", own=True)
    assert (hop.how, hop.shares) == ("dlpack", False)
    value = np.ones(3, np.float32)
    taken = hop.carry(value)
    assert taken.tolist() == [1, 1, 1]
    assert not np.shares_memory(taken, value)


def test_what_dlpack_cannot_say_is_copied():
    _, found = sides((1, 0), (1, 0))
    (hop,) = found.find({"A0": True}, "B0")
    words = np.array([b"a", b"b"], object)
    taken = hop.carry(words)
    assert taken.tolist() == [b"a", b"b"]
    assert taken is not words
