"""Devices that do not open: the error names device, plugin and reason."""

from __future__ import annotations

import pytest

from opdock.plugin import PluginError
from tests.core.plugins.made import Device, make


def test_a_device_that_does_not_open_says_why(manager):
    def fail(attributes):
        raise OSError("device busy")

    manager.register(make(device=fail))
    (probed,) = manager.devices()
    with pytest.raises(PluginError, match=r"MADE:0 .* cannot be opened: OSError: device busy"):
        manager.open(probed)
    assert manager.devices() == [probed]


@pytest.mark.parametrize("namespace", ["numpy", object()], ids=["name", "object"])
def test_a_namespace_that_is_none_is_told(manager, namespace):
    manager.register(make(device=type("Odd", (Device,), {"namespace": namespace})))
    (probed,) = manager.devices()
    told = (
        r"MADE:0 .* cannot be opened: TypeError: Odd.namespace is .*, which is no array namespace"
    )
    with pytest.raises(PluginError, match=told):
        manager.open(probed)


def test_a_backend_that_is_put_out_as_its_device_opens_says_why(manager):
    def opdock_kernels(backend):
        raise KeyError("slot")

    manager.register(make(hooks={"opdock_kernels": opdock_kernels}))
    (probed,) = manager.devices()
    told = r"is quarantined: .*opdock_kernels\(\): KeyError: 'slot'"
    for _ in range(2):
        with pytest.raises(PluginError, match=told):
            manager.open(probed)
