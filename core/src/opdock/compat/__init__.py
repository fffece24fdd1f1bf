"""`tf.compat`: text and bytes. `tf.compat.v1` and `v2` are made by `opdock.mapping`."""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

import numpy as np

from opdock.compat.forward import forward_compatibility_horizon, forward_compatible

__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "forward_compatibility_horizon", "forward_compatible", "integral_types", "path_to_bytes",
    "path_to_str", "real_types",
]  # fmt: skip

integral_types: Final = (int, np.integer)
real_types: Final = (float, int, np.integer, np.floating)
complex_types: Final = (complex, float, int, np.number)
bytes_or_text_types: Final = (bytes, str)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Bytes of bytes or text; TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Text of bytes or text; TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Text of anything: bytes are decoded, the rest as `str` writes it."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; anything else as it is."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def path_to_bytes(path: Any) -> bytes:
    """A path as bytes."""
    return as_bytes(os.fspath(path) if hasattr(path, "__fspath__") else path)


def __getattr__(name: str) -> Any:
    if name in ("v1", "v2"):
        return importlib.import_module(f"opdock.compat.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
