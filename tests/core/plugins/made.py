"""Plugins that tests make as they go."""

from __future__ import annotations

import sys
import types

import numpy as np

from opdock.plugin import (
    API_VERSION,
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    Probe,
    hookimpl,
)

counter = iter(range(10**6))


class Device(BaseDevice):
    def upload(self, array):
        return np.array(array)

    def download(self, buffer):
        return np.array(buffer)


def make(probe=None, device=Device, table=None, hooks=None, **fields):
    """A plugin module with one backend, importable under a fresh name."""
    module = types.ModuleType(f"made_{next(counter)}")
    sys.modules[module.__name__] = module
    spec = {
        "name": "made", "device_type": "MADE", "own_type": "MADE", "api": API_VERSION,
        "probe": f"{module.__name__}:probe", "device": f"{module.__name__}:device",
        "kernels": (f"{module.__name__}:table",),
    } | fields  # fmt: skip

    @hookimpl
    def opdock_backends():
        yield BackendSpec(**spec)

    module.opdock_backends = opdock_backends
    module.probe = probe or (lambda: Probe(devices=[DeviceAttributes(index=0)]))
    module.device, module.table = device, KernelTable() if table is None else table
    for name, function in (hooks or {}).items():
        setattr(module, name, hookimpl(function))
    return module
