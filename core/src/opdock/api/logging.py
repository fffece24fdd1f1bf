"""`tf.logging`: TF's logger, on the standard library's."""

from __future__ import annotations

import logging as _logging
import sys as _sys
import threading as _threading
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = (
    _logging.DEBUG, _logging.INFO, _logging.WARNING, _logging.ERROR, _logging.CRITICAL,
)  # fmt: skip
# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = _threading.RLock()
_logger: _logging.Logger | None = None
_counts: dict[tuple[str, int], int] = {}


def _get_logger() -> _logging.Logger:
    """The logger "tensorflow", with a handler of its own unless the program configured logging."""
    global _logger
    with _lock:
        if _logger is None:
            logger = _logging.getLogger("tensorflow")
            if not logger.handlers and not _logging.getLogger().handlers:
                interactive = hasattr(_sys, "ps1") or _sys.flags.interactive
                handler = _logging.StreamHandler(_sys.stdout if interactive else None)
                handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT, None))
                logger.addHandler(handler)
                if interactive:
                    logger.setLevel(INFO)
            _logger = logger
        return _logger


def get_logger() -> _logging.Logger:
    """The logger behind these functions."""
    return _get_logger()


def set_verbosity(v: int) -> None:
    """Sets the least level that is shown: one of DEBUG, INFO, WARN (the default), ERROR, FATAL.

    Args:
        v: the level.
    """
    _get_logger().setLevel(v)


def get_verbosity() -> int:
    """The least level that is shown."""
    return _get_logger().getEffectiveLevel()


def log(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at a level; `msg` is a format for `args`."""
    _get_logger().log(level, msg, *args, **kwargs)


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at DEBUG.

    Args:
        msg: the text, with `%` marks for what follows.
    """
    _get_logger().debug(msg, *args, **kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at INFO.

    Args:
        msg: the text, with `%` marks for what follows.
    """
    _get_logger().info(msg, *args, **kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs `msg`, in which `args` stand for its `%` marks, at WARN."""
    _get_logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at ERROR.

    Args:
        msg: the text, with `%` marks for what follows.
    """
    _get_logger().error(msg, *args, **kwargs)


def fatal(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at FATAL; the program goes on.

    Args:
        msg: the text, with `%` marks for what follows.
    """
    _get_logger().critical(msg, *args, **kwargs)


def TaskLevelStatusMessage(msg: str) -> None:
    """Logs at ERROR.

    Args:
        msg: the text, with `%` marks for what follows.
    """
    error(msg)


def vlog(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs at a level given as a number.

    Args:
        level: the level, such as `tf.logging.INFO`.
        msg: the text, with `%` marks for what follows.
    """
    _get_logger().log(level, msg, *args, **kwargs)


def flush() -> None:
    """Does nothing: each message is written at once."""


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first and then every `n`th call from the calling line.

    Args:
        level: the level, such as `tf.logging.INFO`.
        msg: the text, with `%` marks for what follows.
    """
    log_if(level, msg, _count() % n == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first `n` calls from the calling line.

    Args:
        level: the level, such as `tf.logging.INFO`.
        msg: the text, with `%` marks for what follows.
    """
    log_if(level, msg, _count() < n, *args)


def log_if(level: int, msg: str, condition: bool, *args: Any) -> None:
    """Logs if the condition holds.

    Args:
        level: the level, such as `tf.logging.INFO`.
        msg: the text, with `%` marks for what follows.
    """
    if condition:
        log(level, msg, *args)


def _count() -> int:
    """How often the line that called the caller has done so before."""
    frame = _sys._getframe(2)
    key = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        _counts[key] = _counts.get(key, -1) + 1
        return _counts[key]


__all__ = [
    "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "TaskLevelStatusMessage", "debug", "error", "fatal",
    "flush", "get_logger", "get_verbosity", "info", "log", "log_every_n", "log_first_n", "log_if",
    "set_verbosity", "vlog", "warn", "warning",
]  # fmt: skip
