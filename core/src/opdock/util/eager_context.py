"""TF's `eager.context`: in which way operations run, as internal code of TensorFlow asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from opdock.eager.modes import eager_mode, graph_mode
from opdock.graph.nodes.scopes import device, executing_eagerly
from opdock.io import protos

__all__ = [
    "ASYNC",
    "DEVICE_PLACEMENT_EXPLICIT",
    "DEVICE_PLACEMENT_SILENT",
    "DEVICE_PLACEMENT_SILENT_FOR_INT32",
    "DEVICE_PLACEMENT_WARN",
    "EAGER_MODE",
    "GRAPH_MODE",
    "SYNC",
    "LogicalDevice",
    "async_clear_error",
    "async_wait",
    "context",
    "device",
    "eager_mode",
    "executing_eagerly",
    "execution_mode",
    "get_config",
    "get_device_name",
    "graph_mode",
    "in_eager_execution",
    "in_eager_mode",
    "in_graph_mode",
    "list_devices",
    "list_logical_devices",
    "main",
    "num_gpus",
    "set_execution_mode",
]  # fmt: skip

GRAPH_MODE: Final = 0
EAGER_MODE: Final = 1
SYNC: Final = 0
ASYNC: Final = 1
DEVICE_PLACEMENT_EXPLICIT: Final = 0
DEVICE_PLACEMENT_WARN: Final = 1
DEVICE_PLACEMENT_SILENT: Final = 2
DEVICE_PLACEMENT_SILENT_FOR_INT32: Final = 3


in_eager_execution = in_eager_mode = executing_eagerly


def in_graph_mode() -> bool:
    """Whether operations are added to a graph."""
    return not executing_eagerly()


def async_clear_error() -> None:
    """Clears nothing: an operation raises its own error."""


def list_devices() -> list[str]:
    """The names of the devices on which operations may run."""
    from opdock.eager.modes import eager_graph

    return [d.name for d in eager_graph().engine.list_devices()]


def async_wait() -> None:
    """Waits for nothing: an operation is over when it returns its results."""


def set_execution_mode(mode: int | None) -> None:
    """Changes nothing: operations run one after the other.

    Raises:
        ValueError: the mode is none of TensorFlow's.
    """
    if mode not in (None, SYNC, ASYNC):
        raise ValueError(f"Execution mode should be None/SYNC/ASYNC. Got {mode}")


@contextmanager
def execution_mode(mode: int | None) -> Iterator[None]:
    """Changes nothing inside; see `set_execution_mode`."""
    set_execution_mode(mode)
    yield


class _Context:
    """What is asked of TensorFlow's context."""

    def executing_eagerly(self) -> bool:
        """Whether operations run when they are made."""
        return executing_eagerly()

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


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling script as an eager program's."""
    from opdock.api import test
    from opdock.eager.modes import enable_eager_execution

    enable_eager_execution()
    test.main(argv)


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
