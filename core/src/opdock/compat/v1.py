"""`import opdock.compat.v1 as tf`: opdock itself, for programs written for TF 2's installation."""

from __future__ import annotations

from typing import Any

import opdock


def __getattr__(name: str) -> Any:
    return getattr(opdock, name)


def __dir__() -> list[str]:
    return dir(opdock)
