"""TF 2's `tf.profiler.experimental`, which Keras' TensorBoard callback calls by default."""

from __future__ import annotations

from typing import Any

from opdock.api import logging

__all__ = ["start", "stop"]


def start(logdir: str, options: Any = None) -> None:
    """Warns that nothing is profiled.

    Steps are traced when they are told to: by `tf.RunOptions`, a `tf.train.ProfilerHook` or
    `tf.profiler`.
    """
    logging.warning(
        "No profile is written to %s: TensorFlow 2's profiler is not there. Trace steps with "
        "tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.train.ProfilerHook or "
        "tf.profiler, or pass profile_batch=0.",
        logdir,
    )


def stop(save: bool = True) -> None:
    """Does nothing, as nothing was begun."""
