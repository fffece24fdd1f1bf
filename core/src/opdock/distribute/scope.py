"""`Strategy.scope()`: inside, the strategy is the current one and makes the variables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from opdock.api import logging
from opdock.distribute.modes import has_strategy, require_across, require_scope
from opdock.graph.nodes.replication import Mode, inside
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope

__all__ = ["StrategyScope"]

_ADVICE = "move call to tf.distribute.set_strategy() out of `with` scope."


class StrategyScope:
    """The scope of a strategy, which may be entered again inside.

    Args:
        strategy: the strategy.
    """

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self._again = 0
        self._entered: list[tuple[str, contextlib.AbstractContextManager[Any]]] = []

    def __enter__(self) -> Any:
        if has_strategy():
            require_across(self._strategy.extended)
            self._again += 1
            return self._strategy
        parts: list[tuple[str, contextlib.AbstractContextManager[Any]]] = [
            ("", inside(Mode(self._strategy, None))),
            ("Variable scope", variable_scope(get_variable_scope(), custom_getter=self._get)),
            ("Variable creator scope", variable_creator_scope(self._create)),
        ]
        if self._strategy.extended._default_device:
            parts.append(("Device scope", device(self._strategy.extended._default_device)))
        for part in parts:
            part[1].__enter__()
            self._entered.append(part)
        return self._strategy

    def __exit__(self, *error: object) -> None:
        if self._again:
            self._again -= 1
            return
        while self._entered:
            what, part = self._entered.pop()
            try:
                part.__exit__(None, None, None)
            except RuntimeError as e:
                raise RuntimeError(f"{what} nesting error: {_ADVICE}") from e

    def _create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        extended = self._strategy.extended
        require_scope(extended)
        kwargs.update(use_resource=True, distribute_strategy=self._strategy)
        return extended._create_variable(next_creator, **kwargs)

    def _get(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._strategy.extended._allow_variable_partition():
            if kwargs.pop("partitioner", None) is not None:
                logging.log_first_n(
                    logging.WARN,
                    "Partitioned variables are disabled when using current tf.distribute.Strategy.",
                    1,
                )
        return getter(*args, **kwargs)
