"""Whether sessions are to ask for mixed precision."""

from __future__ import annotations

from typing import Any, Final

from opdock.io import protos
from opdock.late import record

__all__ = ["asking", "state"]


@record
class State:
    """What the process has asked for.

    Attributes:
        enabled: whether sessions that are made now ask for mixed precision.
        others_exist: whether a session was made that does not.
        by_policy: whether layers have mixed types of their own.
    """

    enabled: bool = False
    others_exist: bool = False
    by_policy: bool = False


state: Final = State()


def asking(config: Any) -> Any:
    """A session's ConfigProto with what the process has asked for."""
    if config is None and not state.enabled:
        state.others_exist = True
        return None
    rewriting = protos.RewriterConfig
    given = rewriting.DEFAULT
    if isinstance(config, protos.ConfigProto):
        given = config.graph_options.rewrite_options.auto_mixed_precision
    if not state.enabled or given == rewriting.OFF:
        state.others_exist = state.others_exist or given != rewriting.ON
        return config
    asked = protos.ConfigProto()
    if config is not None:
        asked.CopyFrom(config)
    asked.graph_options.rewrite_options.auto_mixed_precision = rewriting.ON
    return asked
