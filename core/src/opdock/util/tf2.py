"""`tensorflow.python.tf2`: whether programs asked for TF 2's behaviour, for libraries that look."""

from __future__ import annotations

import os

__all__ = ["disable", "enable", "enabled"]

# None where nobody has called `enable` or `disable`.
_force_enable: bool | None = None


def enable() -> None:
    """Has `enabled` say yes, and no more; `tf.enable_v2_behavior` changes what is done."""
    global _force_enable
    _force_enable = True


def disable() -> None:
    """Has `enabled` say no."""
    global _force_enable
    _force_enable = False


def enabled() -> bool:
    """What was asked for last; until then, whether TF2_BEHAVIOR is set to anything but 0."""
    if _force_enable is None:
        return os.environ.get("TF2_BEHAVIOR", "0") != "0"
    return _force_enable
