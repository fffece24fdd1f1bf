"""TF's place of sessions."""

from opdock.runtime.fetch import register_session_run_conversion_functions
from opdock.runtime.session import BaseSession, InteractiveSession, Session

__all__ = [
    "BaseSession", "InteractiveSession", "Session",
    "register_session_run_conversion_functions",
]  # fmt: skip
