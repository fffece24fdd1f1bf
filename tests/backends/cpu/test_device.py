"""The host as a device."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
import threadpoolctl

from opdock.dtypes import float32
from opdock.plugins.manager import get_manager


@pytest.fixture
def device():
    manager = get_manager()
    return manager.open(next(d for d in manager.devices() if d.spec.name == "cpu")).device


def test_copies_are_copies(device):
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    buffer = device.upload(array)
    array[:] = 0
    assert buffer.tolist() == [[0, 1, 2], [3, 4, 5]] and buffer.flags.c_contiguous
    out = device.download(buffer)
    buffer[:] = 7
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_buffers_are_host_arrays(device):
    assert device.is_host
    assert type(device.empty((2, 0), float32)) is np.ndarray
    assert device.memory().limit > 0


def test_threads_are_limited_and_given_back(device):
    def threads():
        return {
            i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"
        }

    before = threads()
    with device.within({"intra_op_parallelism_threads": 1}):
        assert threads() == {1}
    assert threads() == before
    assert device.within({"intra_op_parallelism_threads": 0}) is None


def test_every_kernel_module_is_in_the_backend():
    """A family's table that no record names would never be found."""
    import importlib
    import pkgutil

    import opdock_cpu.kernels
    import opdock_cpu.onednn.kernels

    spec = next(d.spec for d in get_manager().devices() if d.spec.name == "cpu")
    tables = {
        f"{package.__name__}.{module.name}:table"
        for package in (opdock_cpu.kernels, opdock_cpu.onednn.kernels)
        for module in pkgutil.iter_modules(package.__path__)
        if hasattr(importlib.import_module(f"{package.__name__}.{module.name}"), "table")
    }
    named = {k if isinstance(k, str) else k.table for k in spec.kernels}
    assert tables == {name for name in named if ".jit." not in name}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators keep what is freed")
def test_freed_arrays_leave_their_memory_to_the_next() -> None:
    """Counted in pages that the system had to give, of a process that frees nothing before."""
    code = """
import resource, numpy as np, opdock as tf
tf.Session(config=tf.ConfigProto(device_count={"GPU": 0}))
make = lambda: [np.ones(1 << 16, np.float32) for _ in range(8)]
make()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    make()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 100 * 8 * 64 / 4, "of 64 pages of each array few are new"
