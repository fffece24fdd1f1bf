"""A backend that takes images in one data format only, or prefers one: what the tests say.

Its kernels are core's portable ones, and the CPU's for batch normalization; those for images take
the formats that `settings` name.
"""

from __future__ import annotations

import dataclasses

import array_api_compat.numpy as xp
import numpy as np

from opdock import plugin
from opdock.plugin import BackendSpec, BaseDevice, DeviceAttributes, KernelTable, Probe, hookimpl
from opdock_cpu.kernels import norm

NAME = "picky-for-tests"
DEVICE = "/device:PICKY:0"
settings = {"only": None, "prefers": None}
ran = []


@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="picky", device_type="PICKY", own_type="PICKY", api=(1, 0), priority=-20,
        probe=f"{__name__}:probe", device=f"{__name__}:PickyDevice", kernels=(f"{__name__}:table",),
    )  # fmt: skip


def probe():
    return Probe(devices=[DeviceAttributes(index=0, description="picky")])


class PickyArray(np.ndarray):
    """Memory of its own."""


class PickyDevice(BaseDevice):
    @property
    def data_format(self):
        return settings["prefers"]

    def upload(self, array):
        return np.array(array, order="C").view(PickyArray)

    def download(self, buffer):
        return np.array(buffer, order="C", subok=False)


def willing(inner):
    def when(sig):
        given = sig.attrs.get("data_format")
        if given is not None and settings["only"] not in (None, given):
            return f"only {settings['only']}"
        return True if inner is None else inner(sig)

    return when


def noting(bind):
    def binder(sig):
        ran.append((sig.op, sig.attrs.get("data_format")))
        run = bind(sig)

        def call(*arrays):
            given = [np.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]
            found = run(*given)
            if isinstance(found, tuple):
                return tuple(np.asarray(f).view(PickyArray) for f in found)
            return np.asarray(found).view(PickyArray)

        return call

    return binder


def picky(kernel):
    return dataclasses.replace(kernel, when=willing(kernel.when), bind=noting(kernel.bind))


def of_images(kernel):
    return "data_format" in plugin.find_op(kernel.op).definition.attrs


# Without a kernel of both formats behind it, a normalization would be taken to pieces.
table = KernelTable(
    [
        *map(picky, norm.table),
        *(picky(k) if of_images(k) and "Norm" not in k.op else k for k in plugin.mount(xp)),
    ]
)


def use(only=None, prefers=None):
    """What the device takes, and what it prefers, from now on."""
    settings.update(only=only, prefers=prefers)
    ran.clear()


def register():
    use()
    import sys

    plugin.register(sys.modules[__name__], NAME)


def unregister():
    plugin.unregister(NAME)
