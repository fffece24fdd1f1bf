"""TF's `eager.context`, as graph programs ask it: nothing runs eagerly in opdock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from opdock.errors import UnimplementedError
from opdock.io import protos

__all__ = [
    "EAGER_MODE", "GRAPH_MODE", "LogicalDevice", "async_wait", "context", "eager_mode",
    "executing_eagerly", "get_config", "get_device_name", "graph_mode", "in_eager_execution",
    "in_eager_mode", "in_graph_mode", "list_logical_devices", "num_gpus",
]  # fmt: skip

GRAPH_MODE: Final = 0
EAGER_MODE: Final = 1


def executing_eagerly() -> bool:
    """False."""
    return False


in_eager_execution = in_eager_mode = executing_eagerly


def in_graph_mode() -> bool:
    """True."""
    return True


@contextmanager
def graph_mode() -> Iterator[None]:
    """Changes nothing: graphs are the only mode."""
    yield


def eager_mode() -> Iterator[None]:
    """Cannot be entered.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError(
        None, None, "eager execution: opdock runs TensorFlow 1's graphs; build one and run it"
    )


def async_wait() -> None:
    """Waits for nothing: a step is over when `Session.run` returns."""


class _Context:
    """What is asked of TensorFlow's context where nothing runs eagerly."""

    def executing_eagerly(self) -> bool:
        """False."""
        return False

    def num_gpus(self) -> int:
        """How many GPUs a session would find."""
        return num_gpus()


_context = _Context()


def context() -> _Context:
    """The context of the process."""
    return _context


def get_config() -> Any:
    """The configuration of sessions that are made without one."""
    return protos.ConfigProto()


def get_device_name() -> str:
    """The device that `tf.device` chose for eager code: none."""
    return ""


class LogicalDevice(NamedTuple):
    """A device that a session would find."""

    name: str
    device_type: str


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that a session would find.

    Args:
        device_type: "CPU", "GPU" and so on; without it all are listed.
    """
    from opdock.util.graph_helpers import list_local_devices

    found = [LogicalDevice(d.name, d.device_type) for d in list_local_devices()]
    return [d for d in found if device_type in (None, d.device_type)]


def num_gpus() -> int:
    """How many GPUs a session would find."""
    from opdock.api.test import gpu_device_name

    return int(bool(gpu_device_name()))
