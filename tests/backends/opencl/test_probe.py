"""The probe: which devices it offers, and what it says of those that it does not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from opdock.plugin import DeviceAttributes
from opdock_opencl import driver, opdock_backends, probe


def test_it_registers():
    (spec,) = opdock_backends()
    assert (spec.name, spec.device_type, spec.own_type) == ("opencl", "GPU", "OPENCL")


def fake(platforms, failing=()):
    """As much of pyopencl as the probe uses."""
    module = types.ModuleType("pyopencl")
    module.Error = type("Error", (Exception,), {})
    module.device_type = types.SimpleNamespace(CPU=2, GPU=4, ACCELERATOR=8)
    module.Context = lambda devices: devices[0]

    def build(context):
        if context.name in failing:
            raise module.Error("Build failed:\nerror: unknown target CPU 'generic'\n(options: )")

    def get_platforms():
        if platforms is None:
            raise module.Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return platforms

    module.Program = lambda context, source: types.SimpleNamespace(build=lambda: build(context))
    module.get_platforms = get_platforms
    return module


def device(name, kind=4, version="OpenCL 3.0 Test", extensions=""):
    return types.SimpleNamespace(
        name=name, type=kind, version=version, extensions=extensions, compiler_available=True,
        global_mem_size=1 << 30,
    )  # fmt: skip


def platform(*devices):
    return types.SimpleNamespace(get_devices=lambda: devices)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("OPDOCK_CACHE", "")  # what other tests' devices can do is not kept

    def probe_with(platforms, failing=()):
        monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object())
        monkeypatch.setitem(sys.modules, "pyopencl", fake(platforms, failing))
        return probe.probe()

    return probe_with


def test_without_pyopencl(monkeypatch):
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None)
    found = probe.probe()
    assert found.reason == "PyOpenCL is not installed" and found.installable


def test_parts_are_a_number(run, monkeypatch):
    monkeypatch.setenv("OPDOCK_OPENCL_PARTS", "two")
    found = run(None)
    assert found.reason == "OPDOCK_OPENCL_PARTS takes a number, got 'two'"
    assert not found.installable


def test_without_a_driver_the_hint_helps(run):
    found = run(None)
    assert "no OpenCL driver is installed (clGetPlatformIDs failed" in found.reason
    assert found.installable


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        ([], "find no device"),
        ([device("Old", version="OpenCL 1.1 x")], "Old (OpenCL 1.1 x): it lacks OpenCL 1.2"),
        ([device("Odd", version="?")], "it lacks OpenCL 1.2"),
    ],
)
def test_why_there_is_none(run, devices, told):
    found = run([platform(*devices)])
    assert told in found.reason
    assert found.devices == () and not found.installable


def test_a_device_whose_compiler_fails_is_left_out(run):
    found = run([platform(device("Bad"), device("Good"))], failing=("Bad",))
    assert [d.index for d in found.devices] == [0]
    assert found.devices[0].description.startswith("Good")
    assert "Bad (OpenCL 3.0 Test): its compiler fails: error: unknown target CPU" in found.reason


def test_what_it_tells_of_a_device(run):
    found = run([platform(device("A", 2, extensions="cl_khr_fp64 cl_khr_fp16"), device("B", 4))])
    first, second = found.devices
    assert (first.kind, second.kind) == ("cpu", "gpu")
    assert first.features == {"opencl", "float64", "float16"} and second.features == {"opencl"}
    assert first.memory_bytes == 1 << 30


def test_a_compiler_that_works_is_tried_once(monkeypatch, tmp_path):
    monkeypatch.setenv("OPDOCK_CACHE", str(tmp_path))
    built = []

    def usable(driver, failing=()):
        module = fake([platform(device("Fast"))], failing)
        for one in module.get_platforms()[0].get_devices():
            one.driver_version = driver
        plain = module.Program
        module.Program = lambda context, source: built.append(driver) or plain(context, source)
        return probe.usable_devices(module)

    assert len(usable("1")[0]) == len(usable("1")[0]) == 1
    assert built == ["1"]
    # Another driver is tried, and one that fails each time.
    for _ in range(2):
        good, bad = usable("2", failing=("Fast",))
        assert not good and "its compiler fails" in bad[0]
    assert built == ["1", "2", "2"]
    monkeypatch.setenv("POCL_SOMETHING", "1")
    usable("1")
    assert built == ["1", "2", "2", "1"]
    (tmp_path / "opencl-compilers").chmod(0o777)  # others could say that it works
    usable("1")
    assert built[-2:] == ["1", "1"]


@pytest.fixture
def real():
    """The loader of drivers in PyOpenCL's wheel, and PyOpenCL."""
    cl = pytest.importorskip("pyopencl")
    loader = driver.loader(Path(cl.__file__).parent)
    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error:
        devices = []
    if loader is None or not devices:
        pytest.skip("PyOpenCL brings no loader of its own here, or there is no OpenCL driver")
    return loader, cl


def test_the_loader_says_of_devices_what_pyopencl_says(real):
    every = [[d for p in side.get_platforms() for d in p.get_devices()] for side in real]
    for one, other in zip(*every, strict=True):
        for name in (*probe._ABOUT, "type", "global_mem_size", "compiler_available"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("name", "vendor", "version", "extensions"):
            assert getattr(one.platform, name) == getattr(other.platform, name)
        assert probe._name(one) == probe._name(other)
        with pytest.raises(AttributeError):
            _ = one.colour
        with pytest.raises(AttributeError):
            _ = one.platform.colour


def test_devices_are_told_of_and_tried_without_pyopencl(real, tmp_path):
    code = """
import sys
from opdock_opencl.probe import probe
print(probe(), "pyopencl" in sys.modules)
"""
    environ = {**os.environ, "OPDOCK_CACHE": str(tmp_path), "PYTHONHASHSEED": "0"}
    environ.pop("OPDOCK_OPENCL_PARTS", None)
    first, later = (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
        ).stdout
        for _ in range(2)
    )
    assert first.endswith(" False\n")
    assert later == first
    assert [*(tmp_path / "opencl-compilers").iterdir()]
    divided = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**environ, "OPDOCK_OPENCL_PARTS": "2"},
    ).stdout  # fmt: skip
    assert divided.endswith(" True\n")  # only PyOpenCL divides


def test_the_drivers_compiler_says_what_is_wrong(real):
    loader, _ = real
    (device, *_) = (d for p in loader.get_platforms() for d in p.get_devices())
    context = loader.Context([device])
    loader.Program(context, probe._TRIAL).build()
    with pytest.raises(driver.Error, match=r"(?s)clBuildProgram: -\d+.*error:.*nothing_such"):
        loader.Program(context, "__kernel void f() { nothing_such; }").build()
    with pytest.raises(driver.Error, match="clCreateContext: -33"):
        loader.Context([driver.Device(device.platform, ctypes.c_void_p())])


class Refusing:
    """A library of which every function says no."""

    def __getattr__(self, name):
        return lambda *arguments: -1001


def test_where_no_driver_is_found_pyopencl_says_so(run, monkeypatch, tmp_path):
    loader = driver.Loader(Refusing())
    with pytest.raises(driver.Error, match="clGetPlatformIDs: -1001"):
        loader.get_platforms()
    assert driver.loader(tmp_path) is None  # a build that uses the system's
    (tmp_path / ".libs").mkdir()
    (tmp_path / ".libs" / "libOpenCL-1.so.1").write_text("no library")
    assert driver.loader(tmp_path / "..") is None
    driver.loader.cache_clear()
    assert driver.loader(tmp_path) is None
    assert "no OpenCL driver is installed" in run(None).reason


def test_a_driver_without_devices_has_none(real, monkeypatch):
    loader, _ = real
    (platform, *_) = loader.get_platforms()
    none = driver.Loader(types.SimpleNamespace(clGetDeviceIDs=lambda *a: -1))
    assert driver.Platform(none, platform.at).get_devices() == []
    broken = driver.Loader(types.SimpleNamespace(clGetDeviceIDs=lambda *a: -6))
    with pytest.raises(driver.Error, match="clGetDeviceIDs: -6"):
        driver.Platform(broken, platform.at).get_devices()


def test_a_device_that_is_not_there_any_more_is_told_of(monkeypatch):
    monkeypatch.setenv("OPDOCK_CACHE", "")
    cl = fake([platform(device("A"), device("B"))])
    name = "B, OpenCL 3.0 Test"
    found = probe.device_of(cl, DeviceAttributes(index=1, description=name))
    assert found.name == "B"
    for index in (0, 2):
        with pytest.raises(
            RuntimeError, match=f"device {index} is not {name} any more; there are: A,"
        ):
            probe.device_of(cl, DeviceAttributes(index=index, description=name))
