"""What estimators ask about strategies in their configuration."""

from __future__ import annotations

from typing import Any, NoReturn

from opdock import errors


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether an estimator's configuration asks for a coordinator; `init_run_config` refuses it."""
    return False


def init_run_config(config: Any, tf_config: Any) -> NoReturn:
    """Refuses a configuration with a strategy.

    Raises:
        UnimplementedError: always.
    """
    raise errors.UnimplementedError(
        None, None,
        "tf.distribute's strategies are not there (train_distribute, eval_distribute): place "
        "devices with tf.device, or leave them to the session",
    )  # fmt: skip
