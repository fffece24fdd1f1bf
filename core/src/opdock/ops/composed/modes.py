"""The switches between TF 1 and TF 2 behaviour: opdock has TF 1's."""

from __future__ import annotations

from typing import NoReturn

from opdock import errors
from opdock.ops.support import control_mode

__all__ = [
    "control_flow_v2_enabled", "disable_control_flow_v2", "disable_eager_execution",
    "disable_tensor_equality", "disable_v2_behavior", "disable_v2_tensorshape",
    "enable_control_flow_v2", "enable_tensor_equality",
    "enable_v2_behavior", "enable_v2_tensorshape",
    "load_file_system_library", "load_library", "load_op_library",
]  # fmt: skip


def disable_eager_execution() -> None:
    """Does nothing: it is off until a program enables it."""


def disable_v2_behavior() -> None:
    """Does nothing: opdock behaves as TF 1."""


def disable_v2_tensorshape() -> None:
    """Does nothing: shapes have TF 1's `Dimension` entries."""


def enable_v2_behavior() -> NoReturn:
    """Raises UnimplementedError: opdock has TF 1's behaviour only."""
    raise errors.UnimplementedError(None, None, "opdock has TF 1's behaviour only")


def control_flow_v2_enabled() -> bool:
    """What `enable_control_flow_v2` said; branches and bodies are functions in either case."""
    return control_mode.ENABLE_CONTROL_FLOW_V2


def enable_control_flow_v2() -> None:
    """Has `tf.cond` and `tf.while_loop` take conditions, and give results, as version 2 does."""
    control_mode.ENABLE_CONTROL_FLOW_V2 = True


def disable_control_flow_v2() -> None:
    """Undoes `enable_control_flow_v2`."""
    control_mode.ENABLE_CONTROL_FLOW_V2 = False


def disable_tensor_equality() -> None:
    """Does nothing: `==` compares tensors by identity."""


def enable_tensor_equality() -> NoReturn:
    """Raises UnimplementedError: `==` compares tensors by identity, as TF 1 does by default."""
    raise errors.UnimplementedError(
        None, None, "`==` compares tensors by identity; use tf.equal to compare their elements"
    )


def enable_v2_tensorshape() -> NoReturn:
    """Raises UnimplementedError: shapes have TF 1's `Dimension` entries."""
    raise errors.UnimplementedError(None, None, "shapes have TF 1's `Dimension` entries")


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


def load_file_system_library(library_filename: str) -> NoReturn:
    """Raises UnimplementedError: file systems come to opdock through fsspec."""
    raise errors.UnimplementedError(
        None, None,
        f"Cannot load '{library_filename}': it is built for TensorFlow's C++ interface. Paths such "
        "as s3://bucket/file are opened by fsspec; install the file system's package for it.",
    )  # fmt: skip
