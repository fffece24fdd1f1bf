"""The probe: whatever is missing, it says so, and quickly; what is there, it describes."""

from __future__ import annotations

import subprocess
import sys

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
    ],
)
def test_what_is_missing(monkeypatch, gpus, cupy, told, installable):
    monkeypatch.setattr(probe, "gpus", lambda: gpus)
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object() if cupy else None)
    found = probe.probe()
    assert told in found.reason
    assert (found.devices, found.installable) == ((), installable)


def test_what_it_tells_of_a_gpu(monkeypatch):
    monkeypatch.setattr(probe, "gpus", lambda: [GPU, GPU])
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object())
    first, second = probe.probe().devices
    assert (first.index, second.index) == (0, 1)
    assert first.description == "Tester 9000" and first.physical_id == "pci:0000:01:00.0"
    assert first.memory_bytes == 1 << 30 and first.kind == "gpu"


def test_importing_and_probing_load_nothing_but_the_backends_own_modules():
    code = """
import sys, opdock.plugin
before = set(sys.modules)
import opdock_cuda
from opdock_cuda.probe import probe
list(opdock_cuda.opdock_backends())
probe()
print({m.partition(".")[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'opdock_cuda'}\n"


def test_a_driver_that_does_not_start(monkeypatch):
    class Broken:
        def cuInit(self, flags):
            return 999

        def cuGetErrorString(self, code, text):
            return 0

    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: Broken())
    assert probe.probe().reason == ("the NVIDIA driver does not start: cuInit: unknown error (999)")
