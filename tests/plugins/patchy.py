"""A plugin whose array library has no extensions of the array API, and not all of its functions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import array_api_compat.numpy
import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    Probe,
    hookimpl,
    register,
    unregister,
)
from opdock.plugins.manager import get_manager

HOLES: Final = frozenset({"linalg", "fft", "cumulative_sum", "max"})


class Patchy:
    """NumPy with holes."""

    def __getattr__(self, name: str) -> Any:
        if name in HOLES:
            raise AttributeError(f"this library has no {name}")
        return getattr(array_api_compat.numpy, name)


class PatchyDevice(BaseDevice):
    """Computes with what there is."""

    namespace = Patchy()

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy."""
        return np.array(array)

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A copy."""
        return np.array(buffer)


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="patchy",
        device_type="PATCHY",
        own_type="PATCHY",
        api=(1, 2),
        priority=-50,
        probe="tests.plugins.patchy:probe",
        device="tests.plugins.patchy:PatchyDevice",
    )


def probe() -> Probe:
    """Always one."""
    return Probe(devices=(DeviceAttributes(index=0, description="patchy 0"),))


def install() -> None:
    """Registers the plugin."""
    register(sys.modules[__name__], "patchy")


def uninstall() -> None:
    """Forgets it."""
    unregister("patchy")
    get_manager().close()
