"""The training loop of slim, for networks that are pruned while they are trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opdock as tf

__all__ = ["train"]


def train(
    train_op: Any, logdir: str | None, mask_update_op: Any,
    train_step_fn: Callable[..., Any] | None = None, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """`slim.learning.train`, which lets an operation run after each step.

    Args:
        train_op: the operation of a step, which returns the loss.
        logdir: where checkpoints and summaries go.
        mask_update_op: the operation that makes masks anew, when they are due.
        train_step_fn: what runs a step; slim's own if None.
        args, kwargs: what else `slim.learning.train` takes, in its order.

    Returns:
        The last loss.

    Raises:
        AttributeError: tf_slim is not installed; the message says how to get it.
    """
    contrib: Any = tf.contrib
    learning = contrib.slim.learning
    step = train_step_fn or learning.train_step

    def step_and_prune(session: Any, *given: Any) -> Any:
        result = step(session, *given)
        session.run(mask_update_op)
        return result

    found = learning.train(train_op, logdir, step_and_prune, *args, **kwargs)
    # Slim's of TensorFlow's own tree returned the loss alone.
    return found[0] if isinstance(found, tuple) else found
