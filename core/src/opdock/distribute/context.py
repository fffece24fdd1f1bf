"""The strategy and the replica of a program: the default ones, where it has chosen none."""

from __future__ import annotations

from typing import Any, Final

from opdock.distribute import modes
from opdock.distribute.default import DEFAULT, DEFAULT_REPLICA
from opdock.distribute.modes import has_strategy
from opdock.distribute.reductions import ReduceOp
from opdock.graph.nodes import replication
from opdock.graph.nodes.graph import get_default_graph

__all__ = [
    "experimental_set_strategy", "get_distribution_strategy", "get_loss_reduction",
    "get_replica_context", "get_strategy", "get_strategy_and_replica_context",
    "has_distribution_strategy", "maybe_merge_call", "needs_no_merge_call",
]  # fmt: skip

_SET: Final = "distribute_strategy_scope"
_SUMS: Final = ("weighted_sum", "sum")  # of tf.losses, and of Keras


def get_strategy() -> Any:
    """The current strategy: the one in scope, or the default one, which has one replica."""
    mode = replication.current()
    return DEFAULT if mode is None else mode.strategy


def get_replica_context() -> Any:
    """The replica that the program is in; None across replicas."""
    mode = replication.current()
    return DEFAULT_REPLICA if mode is None else mode.replica


def get_strategy_and_replica_context() -> tuple[Any, Any]:
    """Both at once."""
    return get_strategy(), get_replica_context()


def experimental_set_strategy(strategy: Any) -> None:
    """Makes a strategy the current one of the default graph until the next call.

    Args:
        strategy: the strategy; None for the default one.

    Raises:
        RuntimeError: a strategy is in scope already.
    """
    state = get_default_graph()._scoped_state
    old = state.pop(_SET, None)
    if old is not None:
        old.__exit__(None, None, None)
    if has_strategy():
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        state[_SET] = scope


def get_loss_reduction() -> ReduceOp:
    """How the losses of replicas become one: as the last loss was made of those of its batch."""
    if not get_strategy()._scale_loss_for_estimator:
        return ReduceOp.SUM
    last = get_default_graph()._last_loss_reduction
    return ReduceOp.SUM if last in _SUMS else ReduceOp.MEAN


def _get_default_strategy() -> Any:
    """The default strategy, which libraries compare theirs with."""
    return DEFAULT


def _get_default_replica_context() -> Any:
    """Its only replica."""
    return DEFAULT_REPLICA


get_distribution_strategy = get_strategy
has_distribution_strategy = modes.has_strategy


def needs_no_merge_call() -> bool:
    """Whether replicas may go on without each other: no strategy runs this code as one."""
    return replication.current() is None


def maybe_merge_call(fn: Any, strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of the strategy gives, called for all replicas where there are several."""
    if needs_no_merge_call():
        return fn(strategy, *args, **kwargs)
    return get_replica_context().merge_call(fn, args=args, kwargs=kwargs)
