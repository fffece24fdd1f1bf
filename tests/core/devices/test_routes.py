"""Copy routes as plugins declare them: checked when they are made, the cheaper of two stays."""

from __future__ import annotations

import pytest

from opdock.devices.routes import CopyRoute, RouteTable


def route(src="A", dst="B", **fields):
    return CopyRoute(**{"src": src, "dst": dst, "copy": print} | fields)


def carry(buffer, src_device, dst_device):
    return buffer


def test_of_two_routes_the_cheaper_stays():
    table = RouteTable([route(cost=0.9), route(cost=0.1), route(cost=0.5), route("B", "A")])
    assert [(r.src, r.dst, r.cost) for r in table] == [("A", "B", 0.1), ("B", "A", 0.5)]


def test_a_route_that_shares_does_not_hide_one_that_copies():
    assert len(RouteTable([route(cost=0.1, shares=True), route(cost=0.5)])) == 2


def test_its_name_says_where_its_function_lives():
    assert route().name == "builtins.print"
    assert route(copy=carry).name.endswith("test_routes.carry")


@pytest.mark.parametrize(
    "fields", [{"src": ""}, {"dst": 3}, {"copy": None}, {"cost": 0}, {"shares": "yes"}]
)
def test_a_malformed_route_is_refused(fields):
    with pytest.raises((TypeError, ValueError), match=next(iter(fields))):
        route(**fields)


def test_a_function_that_takes_something_else_is_refused():
    with pytest.raises(TypeError, match=r"must take \(buffer, src_device, dst_device\), got "):
        route(copy=lambda buffer, src_device, dst_device, stream: buffer)
