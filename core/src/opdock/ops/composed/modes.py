"""The switches between single ways of TF 1 and TF 2, and what libraries in C++ would load."""

from __future__ import annotations

from typing import NoReturn

from opdock import errors
from opdock.graph.nodes.operation import Tensor
from opdock.ops.support import control_mode
from opdock.shapes import TensorShape

__all__ = [
    "control_flow_v2_enabled", "disable_control_flow_v2", "disable_tensor_equality",
    "disable_v2_tensorshape", "enable_control_flow_v2", "enable_tensor_equality",
    "enable_v2_tensorshape", "load_file_system_library", "load_library", "load_op_library",
]  # fmt: skip


def control_flow_v2_enabled() -> bool:
    """What `enable_control_flow_v2` said; branches and bodies are functions in either case."""
    return control_mode.ENABLE_CONTROL_FLOW_V2


def enable_control_flow_v2() -> None:
    """Has `tf.cond` and `tf.while_loop` take conditions, and give results, as version 2 does."""
    control_mode.ENABLE_CONTROL_FLOW_V2 = True


def disable_control_flow_v2() -> None:
    """Undoes `enable_control_flow_v2`."""
    control_mode.ENABLE_CONTROL_FLOW_V2 = False


def enable_tensor_equality() -> None:
    """Has `==` compare elements of tensors and variables, where operations run as they are made.

    In graphs that sessions run it compares identities in either case.
    """
    Tensor._USE_EQUALITY = True


def disable_tensor_equality() -> None:
    """Undoes `enable_tensor_equality`."""
    Tensor._USE_EQUALITY = False


def enable_v2_tensorshape() -> None:
    """Has the entries of a `TensorShape` be integers and None."""
    TensorShape._v2_behavior = True


def disable_v2_tensorshape() -> None:
    """Undoes `enable_v2_tensorshape`: entries are `Dimension`s."""
    TensorShape._v2_behavior = False


def load_op_library(library_filename: str) -> NoReturn:
    """Raises UnimplementedError: libraries built against TF's C++ interface cannot be loaded.

    Ops and kernels come to opdock as plugins (hooks `opdock_ops` and `opdock_kernels`).

    Args:
        library_filename: the library's path.
    """
    raise errors.UnimplementedError(
        None, None,
        f"Cannot load '{library_filename}': it is built for TensorFlow's C++ interface. Define "
        "the ops with the plugin hooks opdock_ops and opdock_kernels instead.",
    )  # fmt: skip


def load_library(library_location: str) -> NoReturn:
    """Raises UnimplementedError; see `load_op_library`.

    Args:
        library_location: the library's path.
    """
    load_op_library(library_location)


def load_file_system_library(library_filename: str) -> NoReturn:
    """Raises UnimplementedError: file systems come to opdock through fsspec.

    Args:
        library_filename: the library's path.
    """
    raise errors.UnimplementedError(
        None, None,
        f"Cannot load '{library_filename}': it is built for TensorFlow's C++ interface. Paths such "
        "as s3://bucket/file are opened by fsspec; install the file system's package for it.",
    )  # fmt: skip
