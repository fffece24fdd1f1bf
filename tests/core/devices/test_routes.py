"""Copy routes: the cheapest path, host memory as the last resort."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.devices.base import BaseDevice
from opdock.devices.protocols import DeviceAttributes
from opdock.devices.routes import HOST, CopyRoute, RouteTable


class Traced(BaseDevice):
    """Buffers are lists that tell the way they came."""

    def __init__(self, name, is_host=False):
        super().__init__(DeviceAttributes(index=0))
        self.name, self.is_host = name, is_host

    def upload(self, array):
        return [*array, f"up {self.name}"]

    def download(self, buffer):
        return [*buffer, f"down {self.name}"]


A, B, C = Traced("A"), Traced("B"), Traced("C")
H = Traced("H", is_host=True)


def direct(src, dst, cost=0.5):
    def copy(buffer, src_device, dst_device, stream):
        return [*buffer, f"{src_device.name}>{dst_device.name}"]

    return CopyRoute(src=src, dst=dst, cost=cost, copy=copy)


def test_through_the_host_by_default():
    route = RouteTable().find("A", "B")
    assert (route.types, route.cost) == (("A", HOST, "B"), 2.0)
    assert route.bind(A, B)([]) == ["down A", "up B"]


def test_host_devices_need_no_step_on_their_side():
    table = RouteTable()
    assert table.find("A", "H").bind(A, H)([]) == ["down A"]
    assert table.find("H", "A").bind(H, A)([]) == ["up A"]
    buffer = np.ones(3)
    assert table.find("H", "H").bind(H, H)(buffer) is buffer


def test_a_direct_route_is_cheaper():
    route = RouteTable([direct("A", "B")]).find("A", "B")
    assert route.types == ("A", "B")
    assert route.bind(A, B)([]) == ["A>B"]


def test_an_expensive_route_is_not_taken():
    assert RouteTable([direct("A", "B", 5.0)]).find("A", "B").types == ("A", HOST, "B")


def test_of_two_routes_the_cheaper_stays():
    table = RouteTable([direct("A", "B", 0.9), direct("A", "B", 0.1), direct("A", "B", 0.5)])
    assert table.find("A", "B").cost == 0.1
    assert len(list(table)) == 1


def test_through_a_third_device_only_if_it_is_open():
    table = RouteTable([direct("A", "C", 0.2), direct("C", "B", 0.2)])
    assert table.find("A", "B").types == ("A", HOST, "B")
    route = table.find("A", "B", via={"C"})
    assert route.types == ("A", "C", "B")
    assert route.bind(A, B, {"C": C})([]) == ["A>C", "C>B"]


def test_two_devices_of_one_backend():
    assert RouteTable().find("A", "A").bind(A, Traced("A1"))([]) == ["down A", "up A1"]
    peer = RouteTable([direct("A", "A")]).find("A", "A")
    assert peer.bind(A, Traced("A1"))([]) == ["A>A1"]


def test_a_route_that_comes_later_counts():
    table = RouteTable()
    assert table.find("A", "B").types == ("A", HOST, "B")
    table.add(direct("A", "B"))
    assert table.find("A", "B").types == ("A", "B")


@pytest.mark.parametrize("fields", [{"src": ""}, {"dst": 3}, {"copy": None}, {"cost": 0}])
def test_a_malformed_route_is_refused(fields):
    with pytest.raises((TypeError, ValueError), match=next(iter(fields))):
        CopyRoute(**{"src": "A", "dst": "B", "copy": print} | fields)
