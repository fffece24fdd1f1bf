"""Reads programs without running them: which of TensorFlow's names they use, and where.

`uses.py` finds the names in one file, `check.py` says which of them opdock has, for a whole code
base; `opdock check` prints it.
"""

from opdock.survey.check import Finding, NotFoundError, Report, check, why

__all__ = ["Finding", "NotFoundError", "Report", "check", "why"]
