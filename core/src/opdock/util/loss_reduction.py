"""How Keras' losses of a batch become one: what libraries ask of `losses_utils`."""

from __future__ import annotations

from typing import Any

from opdock.distribute.context import get_strategy


class ReductionV2:
    """How the losses of a batch become one, in the words of TensorFlow 2."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every way."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for what is no way."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


def scale_loss_for_distribution(loss_value: Any) -> Any:
    """The part of a loss that is this replica's: it is divided among all."""
    replicas = get_strategy().num_replicas_in_sync
    return loss_value if replicas == 1 else loss_value * (1.0 / replicas)
