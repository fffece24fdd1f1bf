"""Options of TensorFlow 2 for saving, which Keras makes and hands on: about devices of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CheckpointOptions", "LoadOptions", "SaveOptions"]


@dataclass(frozen=True)
class CheckpointOptions:
    """How a checkpoint is written: through the host, whichever device is asked for."""

    experimental_io_device: str | None = None
    experimental_enable_async_checkpoint: bool = False


@dataclass(frozen=True)
class SaveOptions:
    """How a SavedModel is written: through the host, whichever device is asked for."""

    namespace_whitelist: tuple[str, ...] | None = None
    save_debug_info: bool = False
    function_aliases: dict[str, Any] = field(default_factory=dict)
    experimental_io_device: str | None = None
    experimental_variable_policy: Any = None
    experimental_custom_gradients: bool = True


@dataclass(frozen=True)
class LoadOptions:
    """How a SavedModel is read: through the host, whichever device is asked for."""

    allow_partial_checkpoint: bool = False
    experimental_io_device: str | None = None
    experimental_skip_checkpoint: bool = False
    experimental_variable_policy: Any = None
