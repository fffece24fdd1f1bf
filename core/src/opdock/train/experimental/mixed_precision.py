"""Mixed precision: a loss scale in the program, and the wish in the sessions' configuration."""

from __future__ import annotations

from typing import Any

from opdock.api import logging
from opdock.runtime import mixed_precision
from opdock.train.experimental.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from opdock.train.optimizer import Optimizer

__all__ = [
    "disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite",
    "is_graph_rewrite_enabled", "register_loss_scale_wrapper", "set_using_policy",
]  # fmt: skip

# Optimizers of other libraries -> what makes one with loss scaling of them.
_wrappers: dict[type, Any] = {}


def register_loss_scale_wrapper(
    optimizer_cls: type, wrapper_fn: Any, wrapper_cls: type | None = None
) -> None:
    """Says how optimizers of a library get loss scaling.

    Args:
        optimizer_cls: the class of the optimizers.
        wrapper_fn: takes an optimizer and a loss scale; gives the optimizer with it.
        wrapper_cls: the class of what it gives, where that is not the function itself.
    """
    _wrappers[optimizer_cls] = wrapper_fn


def is_graph_rewrite_enabled() -> bool:
    """Whether sessions are asked for mixed precision."""
    return mixed_precision.state.enabled


def set_using_policy(enable: bool) -> None:
    """Notes whether layers have mixed types, which excludes the sessions' mixed precision."""
    mixed_precision.state.by_policy = enable


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
    if mixed_precision.state.by_policy:
        raise ValueError(
            "The mixed precision graph rewrite cannot be enabled, because the global Keras dtype "
            "Policy has been set to a mixed precision policy. At most, one of the following can be "
            "called: tf.keras.mixed_precision.set_global_policy() with a mixed precision policy, "
            "and tf.train.experimental.enable_mixed_precision_graph_rewrite()."
        )
    wrapper = next((w for kind, w in _wrappers.items() if isinstance(opt, kind)), None)
    if wrapper is None and not isinstance(opt, Optimizer):
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a '
            f"tf.keras.optimizers.Optimizer, but got: {opt}"
        )
    if mixed_precision.state.others_exist:
        logging.warn(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    wrapped = (wrapper or MixedPrecisionLossScaleOptimizer)(opt, loss_scale)
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
