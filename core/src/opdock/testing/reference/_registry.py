"""The oracle's registry: one naive NumPy function an op, found by op type.

A reference is called with the op's attributes and its inputs widened (floats to float64, complex to
complex128, integers to int64) and returns what the op should: an array, or a tuple in output order.
It is never a backend, so no backend can vouch for itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["imported", "load_families", "reference", "reference_for", "reference_ops", "widen"]

Array = npt.NDArray[Any]
ReferenceFn = Callable[..., Any]
_Fn = TypeVar("_Fn", bound=ReferenceFn)

_references: dict[str, ReferenceFn] = {}
_failures: dict[str, dict[str, str]] = {}


def reference(*ops: str) -> Callable[[_Fn], _Fn]:
    """Registers ``fn(attrs, *inputs)`` as the oracle of each op named.

    ``attrs`` holds every attribute of the op, defaults filled in (types as numpy dtypes, strings as
    ``str``, shapes as tuples).  A homogeneous-list argument arrives as one list.  Results need not
    have the op's dtype: the runner casts them as the op declares.

    Args:
      *ops: op types that share the function.

    Returns:
      A decorator that returns the function unchanged.

    Raises:
      ValueError: if an op already has a reference.
    """

    def register(fn: _Fn) -> _Fn:
        for op in ops:
            if op in _references:
                raise ValueError(f"{op} has two references: {_references[op]} and {fn}")
            _references[op] = fn
        return fn

    return register


def load_families() -> Mapping[str, str]:
    """Imports every family once; returns the families that failed to import, with the error."""
    return imported("opdock.testing.reference")


def imported(package: str) -> Mapping[str, str]:
    """Imports the modules of a package once; returns those that failed, with the error."""
    failures = _failures.get(package)
    if failures is None:
        failures = _failures[package] = {}
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if info.name.startswith("_"):
                continue
            try:
                importlib.import_module(f"{package}.{info.name}")
            except Exception as error:
                failures[info.name] = f"{type(error).__name__}: {error}"
    return failures


def reference_for(op: str) -> ReferenceFn | None:
    """The oracle of ``op``, or None."""
    load_families()
    return _references.get(op)


def reference_ops() -> frozenset[str]:
    """Op types that have an oracle."""
    load_families()
    return frozenset(_references)


def widen(value: Any) -> Array:
    """The array as the oracle sees it: float64, complex128, int64, bool or object.

    Numbers that no int64 holds stay uint64.
    """
    array = np.asarray(value)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        return array
    if array.dtype.kind in "OSUb":
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64)
