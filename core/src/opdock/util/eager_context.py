"""TF's `eager.context`, as graph programs ask it: nothing runs eagerly in opdock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opdock.errors import UnimplementedError

__all__ = [
    "EAGER_MODE", "GRAPH_MODE", "eager_mode", "executing_eagerly", "graph_mode",
    "in_eager_execution", "in_eager_mode", "in_graph_mode", "num_gpus",
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


def num_gpus() -> int:
    """How many GPUs a session would find."""
    from opdock.api.test import gpu_device_name

    return int(bool(gpu_device_name()))
