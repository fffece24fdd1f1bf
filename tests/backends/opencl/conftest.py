"""A device to test on; without one the tests say what is missing."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def opencl():
    """The first OpenCL device, opened."""
    from opdock_opencl.device import OpenCLDevice
    from opdock_opencl.probe import probe

    found = probe()
    if not found.devices:
        pytest.skip(f"no OpenCL device: {found.reason} (for a CPU: apt install pocl-opencl-icd)")
    device = OpenCLDevice(found.devices[0])
    yield device
    device.close()
