"""The switches between TF 1 and TF 2 behaviour: opdock has TF 1's."""

from __future__ import annotations

from typing import Any, NoReturn

from opdock import errors

__all__ = [
    "disable_eager_execution", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_eager_execution", "enable_v2_behavior", "executing_eagerly", "load_library",
    "load_op_library",
]  # fmt: skip


def executing_eagerly() -> bool:
    """False: operations are added to graphs, and sessions run them."""
    return False


def disable_eager_execution() -> None:
    """Does nothing: there is none."""


def disable_v2_behavior() -> None:
    """Does nothing: opdock behaves as TF 1."""


def disable_v2_tensorshape() -> None:
    """Does nothing: shapes have TF 1's `Dimension` entries."""


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> NoReturn:
    """Raises UnimplementedError: opdock runs graphs only."""
    raise errors.UnimplementedError(None, None, "opdock runs graphs; there is no eager execution")


def enable_v2_behavior() -> NoReturn:
    """Raises UnimplementedError: opdock has TF 1's behaviour only."""
    raise errors.UnimplementedError(None, None, "opdock has TF 1's behaviour only")


def load_op_library(library_filename: str) -> NoReturn:
    """Raises UnimplementedError: libraries built against TF's C++ interface cannot be loaded.

    Ops and kernels come to opdock as plugins (hooks `opdock_ops` and `opdock_kernels`).
    """
    raise errors.UnimplementedError(
        None, None,
        f"Cannot load '{library_filename}': it is built for TensorFlow's C++ interface. Define "
        "the ops "
        "with the plugin hooks opdock_ops and opdock_kernels instead.",
    )  # fmt: skip


def load_library(library_location: str) -> NoReturn:
    """Raises UnimplementedError; see `load_op_library`."""
    load_op_library(library_location)
