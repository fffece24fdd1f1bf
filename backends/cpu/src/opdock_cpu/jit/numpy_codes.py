"""Which code of its own NumPy has chosen for this processor, function by function."""

from __future__ import annotations

import functools
import importlib.util
from typing import Final

__all__ = ["chosen", "wide"]

_WIDE: Final = ("X86_V4", "AVX512")
"""What NumPy's names of code for AVX-512 start with, in one version or another."""


@functools.cache
def _codes(function: str) -> tuple[str, ...]:
    """Names of what computes a function of single precision; none before NumPy 2."""
    if importlib.util.find_spec("numpy.lib.introspect") is None:
        return ()
    from numpy.lib import introspect

    found = introspect.opt_func_info(func_name=f"^{function}$", signature="float32")
    return tuple(code["current"] for code in found.get(function, {}).values())


def wide(function: str) -> bool:
    """Whether it is code for AVX-512."""
    return any(code.startswith(_WIDE) for code in _codes(function))


def chosen(function: str) -> bool:
    """Whether it is any but that which serves all processors."""
    return any(not code.startswith("baseline") for code in _codes(function))
