"""TF 2's `tf.profiler.experimental`, which Keras' TensorBoard callback calls by default."""

from __future__ import annotations

from typing import Any, Self

from opdock.api import logging

__all__ = ["Trace", "start", "stop"]


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


class Trace:
    """A named part of a profile, of which there is none: marks nothing.

    Args:
        name: of the part.
        facts: what else is to be told of it.
    """

    def __init__(self, name: str, **facts: Any) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Ends the part."""

    def set_metadata(self, **facts: Any) -> None:
        """Tells more of the part."""
