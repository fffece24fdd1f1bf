"""Kullback-Leibler divergences, by the classes of both distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import Assert
from opdock.ops.compare import logical_not
from opdock.ops.elementary import is_nan
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_any

__all__ = ["RegisterKL", "cross_entropy", "kl_divergence"]

Divergence = Callable[..., Any]
_DIVERGENCES: Final[dict[tuple[type, type], Divergence]] = {}


class Registered:
    """A distribution whose divergences are those that are registered here."""


class RegisterKL:
    """Decorates the function ``(a, b, name=None)`` that is the divergence from class a to class b.

    Raises:
        TypeError: what is decorated is no function.
        ValueError: there is one for the two classes.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Divergence) -> Divergence:
        """Registers the function, and returns it."""
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            a, b = (cls.__name__ for cls in self._key)
            raise ValueError(
                f"KL({a} || {b}) has already been registered to: {_DIVERGENCES[self._key]}"
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def _registered(a: type, b: type) -> Divergence | None:
    """The divergence of the nearest two ancestors; of those equally near, the first's nearest."""
    found = [
        (i + j, i, _DIVERGENCES[pair])
        for i, first in enumerate(a.__mro__)
        for j, second in enumerate(b.__mro__)
        if (pair := (first, second)) in _DIVERGENCES
    ]
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def _of_a_library(distribution: Any) -> Divergence | None:
    """The divergence that a distribution of another library's classes has itself."""
    own = isinstance(distribution, Registered)
    return None if own else getattr(type(distribution), "kl_divergence", None)


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The Kullback-Leibler divergence from one distribution to another, in nats.

    Where nothing is registered here, a distribution of a library is asked itself: what was
    `tf.contrib.distributions` is one, and its classes are registered there.

    Args:
        distribution_a: the distribution that the mean is taken over.
        distribution_b: the distribution that it is compared with.
        allow_nan_stats: whether NaN is a result; the step fails with InvalidArgumentError if not.
        name: a name for the operation.

    Raises:
        NotImplementedError: nothing is registered for the two classes.
    """
    fn = _registered(type(distribution_a), type(distribution_b)) or _of_a_library(distribution_a)
    if fn is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type "
            f"{type(distribution_b).__name__}"
        )
    with name_scope("KullbackLeibler"):
        divergence = fn(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return divergence
        divergence = identity(divergence, name="kl")
        message = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN "
            "values (and was called with allow_nan_stats=False). Values:"
        )
        check = Assert(logical_not(reduce_any(is_nan(divergence))), [message, divergence])
        with control_dependencies([check]):
            return identity(divergence, name="checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: Any = None) -> Any:
    """The entropy of `ref` and its divergence to `other`."""
    with name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)
