"""Mixed precision: a loss scale in the program, and the wish in the sessions' configuration."""

from __future__ import annotations

from typing import Any

from opdock.api import logging
from opdock.runtime import mixed_precision
from opdock.train.experimental.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from opdock.train.optimizer import Optimizer

__all__ = ["disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite"]


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """Asks the sessions that are made from now on for mixed precision.

    They get `rewrite_options.auto_mixed_precision` switched on, which a backend's graph pass may
    act on by computing in float16 what can be. Where none does, as on the CPU, values keep their
    types, as they do in TensorFlow.

    Args:
        opt: the optimizer.
        loss_scale: a number, "dynamic", or a `LossScale`.

    Returns:
        `opt` with loss scaling.

    Raises:
        ValueError: `opt` is no optimizer, or scales its loss already.
    """
    for kind in ("MixedPrecisionLossScaleOptimizer", "LossScaleOptimizer"):
        if type(opt).__name__ == kind:
            raise ValueError(
                f'"opt" must not already be an instance of a {kind}. '
                f"`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer "
                f"with a {kind}."
            )
    if not isinstance(opt, Optimizer):
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a '
            f"tf.keras.optimizers.Optimizer, but got: {opt}"
        )
    if mixed_precision.state.others_exist:
        logging.warn(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    wrapped = MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    mixed_precision.state.enabled = True
    return wrapped


def disable_mixed_precision_graph_rewrite() -> None:
    """Asks the sessions that are made from now on for nothing; optimizers go on scaling."""
    if not mixed_precision.state.enabled:
        logging.warn(
            "disable_mixed_precision_graph_rewrite() called when mixed precision is already "
            "disabled."
        )
    mixed_precision.state.enabled = False
