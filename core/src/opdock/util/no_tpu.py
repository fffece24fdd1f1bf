"""What libraries ask about TPUs on their way to other devices, answered where there are none."""

from __future__ import annotations

from typing import Final


class TensorTracer:
    """Records the tensors of a step on a TPU: here nobody does."""

    @staticmethod
    def is_enabled() -> bool:
        """Whether the environment asks for it."""
        return False


class TpuContext:
    """What a step on a TPU would know of the cores: here nothing."""

    number_of_shards: int | None = None


_NONE: Final = TpuContext()


def get_tpu_context() -> TpuContext:
    """The context of the step that is being built."""
    return _NONE
