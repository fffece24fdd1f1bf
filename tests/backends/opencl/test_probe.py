"""The OpenCL skeleton: whatever is missing, the probe says so."""

from __future__ import annotations

import sys
import types

import pytest

from opdock_opencl import opdock_backends, probe


def test_it_registers():
    (spec,) = opdock_backends()
    assert (spec.name, spec.device_type, spec.own_type) == ("opencl", "GPU", "OPENCL")


def fake(platforms):
    """As much of pyopencl as the probe uses."""
    module = types.ModuleType("pyopencl")
    module.Error = type("Error", (Exception,), {})

    def get_platforms():
        if platforms is None:
            raise module.Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return platforms

    module.get_platforms = get_platforms
    return module


def platform(*names):
    devices = [types.SimpleNamespace(name=n) for n in names]
    return types.SimpleNamespace(get_devices=lambda: devices)


def test_without_pyopencl(monkeypatch):
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None)
    found = probe.probe()
    assert found.reason == "PyOpenCL is not installed" and found.installable


@pytest.mark.parametrize(
    ("platforms", "told"),
    [
        (None, "no OpenCL driver is installed (clGetPlatformIDs failed"),
        ([platform()], "find no device"),
        ([platform("Tester ", "Other")], "found Tester, Other, but this release"),
    ],
)
def test_what_is_missing(monkeypatch, platforms, told):
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "pyopencl", fake(platforms))
    found = probe.probe()
    assert told in found.reason
    assert found.devices == () and not found.installable
