"""`for` over a dataset or an iterator, in rewritten code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opdock.data import stateful, steps
from opdock.data.optional import optional_of_next
from opdock.graph.nodes.constant import constant
from opdock.ops.control import cond
from opdock.ops.data_functions import take_while_dataset_op
from opdock.ops.rewriting.repeats import LoopState, and_also
from opdock.ops.rewriting.variables import with_effects

if TYPE_CHECKING:
    from opdock.data.dataset import DatasetV2
    from opdock.data.iterators import Iterator

__all__ = ["over_dataset", "over_iterator"]

Extra = Callable[[], Any] | None
Body = Callable[[Any], None]


def over_dataset(dataset: DatasetV2, extra: Extra, body: Body, state: LoopState) -> None:
    """A loop over the elements of a dataset.

    Args:
        dataset: the dataset.
        extra: whether to go on, if the loop may end early.
        body: a turn, of an element; sets the variables.
        state: the variables.
    """
    # A state has at least one tensor.
    start = (constant(0), *state.start)

    def turn(values: Any, element: Any) -> Any:
        state.enter(values[1:])
        body(element)
        return (values[0], *state.leave(values[1:], shapes=False))

    if extra is None:
        try:
            results = stateful.reduce(dataset, start, with_effects(turn))
        finally:
            state.restore()
        state.enter(results[1:])
        return
    goes_on: Callable[[], Any] = extra

    def scanned(values: Any, element: Any) -> Any:
        state.enter(values[1:])
        going = goes_on()
        following = cond(going, with_effects(lambda: turn(values, element)), lambda: values)
        return following, (following, going)

    try:
        turns = dataset._follow(stateful.scan(dataset, start, scanned, keeps_count=True))
        taken = steps.filter_(turns, lambda _, going: going, take_while_dataset_op, "take_while()")
        results = stateful.reduce(dataset._follow(taken), start, lambda _, turn: turn[0])
    finally:
        state.restore()
    state.enter(results[1:])


def over_iterator(iterator: Iterator, extra: Extra, body: Body, state: LoopState) -> None:
    """A loop over the elements that an iterator still has; its arguments are as of datasets."""

    def turn(going: Any) -> Any:
        element = optional_of_next(iterator)
        there = element.has_value()
        values = state.current

        def taken() -> Any:
            body(element.get_value())
            return (True, *state.leave(values, shapes=False))

        results = cond(there, with_effects(taken), lambda: (False, *values), strict=True)
        state.enter(results[1:])
        return (there,)

    state.repeat(lambda going: and_also(going, extra), turn, (True,), {})
