"""Where a program is, in the scope of a strategy or in a replica, and where it has to be."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from opdock.graph.nodes.replication import current

__all__ = [
    "UpdateContext", "get_cross_replica_context", "get_update_device", "has_strategy",
    "in_cross_replica_context", "require_replica_context",
    "strategy_in_scope",
]  # fmt: skip


def has_strategy() -> bool:
    """Whether a strategy other than the default one is in scope."""
    return strategy_in_scope() is not None


def strategy_in_scope() -> Any:
    """The strategy in scope; None for the default one, as for none."""
    mode = current()
    return None if mode is None or mode.strategy._is_default else mode.strategy


def in_cross_replica_context() -> bool:
    """Whether the program is across replicas: in a strategy's scope, or in a `merge_call`."""
    mode = current()
    return mode is not None and mode.replica is None


def get_cross_replica_context() -> Any:
    """The strategy, across replicas; None in a replica."""
    mode = current()
    return mode.strategy if mode is not None and mode.replica is None else None


def require_across(extended: Any) -> None:
    """Refuses to be anywhere but across the replicas of a strategy, or outside of all.

    Raises:
        RuntimeError: the program is in a replica, or in another strategy's scope.
    """
    mode = current()
    if mode is None:
        return
    strategy = extended._container_strategy()
    if mode.strategy is not strategy:
        _refuse(strategy, mode.strategy)
    if mode.replica is not None:
        raise RuntimeError(
            "Method requires being in cross-replica context, use get_replica_context().merge_call()"
        )


def require_scope(extended: Any) -> None:
    """Refuses to be outside of the scope of a strategy.

    Raises:
        RuntimeError: the program is.
    """
    mode, strategy = current(), extended._container_strategy()
    inside = strategy._is_default if mode is None else mode.strategy is strategy
    if not inside:
        _refuse(strategy, mode and mode.strategy)


def _refuse(strategy: Any, other: Any) -> None:
    if not has_strategy():
        raise RuntimeError(f'Need to be inside "with strategy.scope()" for {strategy}')
    raise RuntimeError(
        f"Mixing different tf.distribute.Strategy objects: {other} is not {strategy}"
    )


def require_replica_context(replica_ctx: Any) -> None:
    """Refuses to be in another replica than that of a context.

    Raises:
        RuntimeError: the program is.
    """
    mode = current()
    if mode is None and replica_ctx.strategy._is_default:
        return
    if mode is not None and mode.replica is replica_ctx:
        return
    if mode is not None and mode.replica is None:
        raise RuntimeError("Need to be inside `call_for_each_replica()`")
    if mode is not None and mode.strategy is replica_ctx.strategy:
        raise RuntimeError("Mismatching ReplicaContext.")
    raise RuntimeError(
        "Mismatching tf.distribute.Strategy objects: "
        f"{mode and mode.strategy} is not {replica_ctx.strategy}."
    )


class _Updating(threading.local):
    device: Any = None


_updating = _Updating()


def get_update_device() -> Any:
    """The device whose copy of a variable is being updated; None outside of updates."""
    return _updating.device


@contextlib.contextmanager
def UpdateContext(device: Any) -> Iterator[None]:
    """Inside, a variable is its copy on a device, which is being updated."""
    old, _updating.device = _updating.device, device
    try:
        yield
    finally:
        _updating.device = old
