"""What libraries ask about TPUs on their way to other devices, answered where there are none."""

from __future__ import annotations


class TensorTracer:
    """Records the tensors of a step on a TPU: here nobody does."""

    @staticmethod
    def is_enabled() -> bool:
        """Whether the environment asks for it."""
        return False
