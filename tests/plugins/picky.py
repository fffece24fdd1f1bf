"""A plugin whose devices refuse what they do not like, and whose route does, without saying so
beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import array_api_compat.numpy
import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    CopyRoute,
    DeviceAttributes,
    Probe,
    errors,
    hookimpl,
    register,
    unregister,
)
from opdock.plugins.manager import get_manager

carried: list[bool] = []
"""For each value that the route was asked to carry, whether it did."""


class PickyDevice(BaseDevice):
    """Single precision, and a hundred elements at most."""

    namespace = array_api_compat.numpy

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy, or a refusal."""
        if array.dtype != np.float32:
            raise errors.UnimplementedError(None, None, f"no arrays of {array.dtype} here")
        if array.size > 100:
            raise errors.ResourceExhaustedError(None, None, "a hundred elements at most")
        return np.array(array)

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A copy."""
        return np.array(buffer)


def across(buffer: Any, source: Any, destination: Any) -> Any:
    """Matrices alone."""
    carried.append(buffer.ndim == 2)
    if not carried[-1]:
        raise errors.UnimplementedError(None, None, "matrices alone")
    return np.array(buffer)


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="picky",
        device_type="PICKY",
        own_type="PICKY",
        api=(1, 2),
        priority=-50,
        probe="tests.plugins.picky:probe",
        device="tests.plugins.picky:PickyDevice",
    )


@hookimpl
def opdock_copy_routes() -> Iterator[CopyRoute]:
    yield CopyRoute(src="PICKY", dst="PICKY", cost=0.1, copy=across)


def probe() -> Probe:
    """Always two."""
    return Probe(devices=tuple(DeviceAttributes(index=i) for i in range(2)))


def install() -> None:
    """Registers the plugin."""
    register(sys.modules[__name__], "picky")


def uninstall() -> None:
    """Forgets it."""
    unregister("picky")
    get_manager().close()
