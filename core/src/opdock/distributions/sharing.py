"""Distributions of `tf.distributions` beside those of the library that contrib's have become.

In TensorFlow 1 the classes were the same ones, so programs gave either where one was wanted.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from opdock import distributions as own

__all__ = ["share_with"]


def share_with(theirs: Any) -> None:
    """Lets a library's classes take opdock's for their own, and finds divergences between both.

    Args:
        theirs: the library's module of distributions, with classes of the same names that take the
            same arguments.
    """
    for name in own.__all__:
        ours, other = getattr(own, name), getattr(theirs, name, None)
        if isinstance(ours, type) and isinstance(other, ABCMeta):
            other.register(ours)
            if ours is not own.Distribution:
                _register(theirs, ours, other)
    # What a library's distribution is made of may be two of opdock's.
    theirs.RegisterKL(own.Distribution, own.Distribution)(_between_ours)


def _between_ours(a: Any, b: Any, name: str | None = None) -> Any:
    return own.kl_divergence(a, b, name=name)


def _register(theirs: Any, ours: type, other: Any) -> None:
    def from_ours(a: Any, b: Any, name: str | None = None) -> Any:
        return other(**a.parameters).kl_divergence(b, name=name or "kl_divergence")

    def to_ours(a: Any, b: Any, name: str | None = None) -> Any:
        return a.kl_divergence(other(**b.parameters), name=name or "kl_divergence")

    for register in (own.RegisterKL, theirs.RegisterKL):
        register(ours, theirs.Distribution)(from_ours)
        register(theirs.Distribution, ours)(to_ours)
