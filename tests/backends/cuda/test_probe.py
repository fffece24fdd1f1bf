"""The CUDA skeleton: whatever is missing, the probe says so."""

from __future__ import annotations

import pytest

from opdock_cuda import driver, opdock_backends, probe

GPU = driver.Gpu("Tester 9000", "pci:0000:01:00.0", 1 << 30)


def test_it_registers():
    (spec,) = opdock_backends()
    assert (spec.name, spec.device_type, spec.own_type) == ("cuda", "GPU", "CUDA")


def test_without_a_driver(monkeypatch):
    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", no_library)
    found = probe.probe()
    assert found.devices == () and not found.installable
    assert found.reason == "no NVIDIA driver: libcuda.so.1 is not found"


@pytest.mark.parametrize(
    ("gpus", "cupy", "told", "installable"),
    [
        ([], False, "finds no GPU", False),
        ([GPU], False, "found Tester 9000, but CuPy is not installed", True),
        ([GPU], True, "found Tester 9000, but this release of opdock-cuda has no kernels", False),
    ],
)
def test_what_is_missing(monkeypatch, gpus, cupy, told, installable):
    monkeypatch.setattr(probe, "gpus", lambda: gpus)
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object() if cupy else None)
    found = probe.probe()
    assert told in found.reason
    assert (found.devices, found.installable) == ((), installable)


def test_a_driver_that_does_not_start(monkeypatch):
    class Broken:
        def cuInit(self, flags):
            return 999

        def cuGetErrorString(self, code, text):
            return 0

    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: Broken())
    assert probe.probe().reason == (
        "the NVIDIA driver does not start: cuInit: unknown error (999)"
    )
