"""What rewritten code calls for `while` and `for`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.ops.compare import logical_and, logical_or
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.rewriting.branches import if_stmt
from opdock.ops.rewriting.overloads import len_
from opdock.ops.rewriting.undefined import Undefined, UndefinedReturnValue
from opdock.ops.rewriting.variables import can_be_staged, check_alike, decides, with_effects

__all__ = ["LoopState", "and_also", "for_stmt", "while_stmt"]

_WHERE: Final = ("before the loop", "after one iteration")

Get = Callable[[], tuple[Any, ...]]
Set = Callable[[tuple[Any, ...]], None]


class LoopState:
    """The variables of a loop that becomes a part of the graph.

    Args:
        get_state, set_state: read and write them.
        names: their names.

    Raises:
        ValueError: one has no value before the loop, or the loop returns.
    """

    def __init__(self, get_state: Get, set_state: Set, names: Sequence[str]) -> None:
        self._get, self._set, self._names = get_state, set_state, names
        self._before = before = get_state()
        undefined = tuple(v.symbol_name for v in before if isinstance(v, Undefined))
        if undefined:
            raise ValueError(
                "TensorFlow requires that the following symbols must be defined before the loop: "
                f"{undefined}"
            )
        if any(isinstance(v, UndefinedReturnValue) for v in before):
            raise ValueError("return statements are not supported within a TensorFlow loop.")
        self._staged = [i for i, v in enumerate(before) if can_be_staged(v)]

    @property
    def start(self) -> tuple[Any, ...]:
        """What the variables are before the loop, those that tensors can hold."""
        return tuple(self._before[i] for i in self._staged)

    @property
    def current(self) -> tuple[Any, ...]:
        """What they are now."""
        now = self._get()
        return tuple(now[i] for i in self._staged)

    def restore(self) -> None:
        """Sets the variables to what they were before the loop."""
        self._set(self._before)

    def enter(self, values: Sequence[Any]) -> None:
        """Sets the variables, in a turn or after the loop."""
        full = list(self._before)
        for i, value in zip(self._staged, values, strict=True):
            full[i] = value
        self._set(tuple(full))

    def leave(self, values: Sequence[Any], shapes: bool = True) -> tuple[Any, ...]:
        """What the variables are at the end of a turn that began with these values.

        Raises:
            TypeError: one has another type than before.
            ValueError: one has a wider shape than before, where shapes count.
        """
        after = self._get()
        for i, (name, old, new) in enumerate(zip(self._names, self._before, after, strict=True)):
            if i not in self._staged and new is not old:
                raise TypeError(
                    f'"{name}" is {old!r} {_WHERE[0]} and {new!r} {_WHERE[1]}: only tensors and '
                    "what becomes one can change in a loop that depends on a tensor."
                )
        result = tuple(after[i] for i in self._staged)
        check_alike([self._names[i] for i in self._staged], values, result, _WHERE, shapes)
        return result

    def repeat(
        self, test: Callable[..., Any], body: Callable[..., Any], own: tuple[Any, ...],
        opts: dict[str, Any],
    ) -> None:  # fmt: skip
        """Makes the loop, with variables of its own before those of the program.

        Args:
            test: of the own variables, whether to go on.
            body: of the own variables; returns the next ones, if there are any.
            own: what they start from.
            opts: what the user sets of the loop.
        """
        count = len(own)
        # A loop has at least one variable.
        idle = () if own or self._staged else (0,)

        def keep(*values: Any) -> Any:
            self.enter(values[len(idle) + count :])
            return test(*values[len(idle) : len(idle) + count])

        def turn(*values: Any) -> tuple[Any, ...]:
            mine, theirs = values[len(idle) : len(idle) + count], values[len(idle) + count :]
            self.enter(theirs)
            following = body(*mine) or ()
            return (*values[: len(idle)], *following, *self.leave(theirs))

        try:
            results = while_loop(
                keep, with_effects(turn), (*idle, *own, *self.start), return_same_structure=True,
                **{k: v for k, v in opts.items() if k != "iterate_names"},
            )  # fmt: skip
        finally:
            self.restore()
        self.enter(results[len(idle) + count :])


def while_stmt(
    test: Callable[[], Any], body: Callable[[], None], get_state: Get, set_state: Set,
    symbol_names: Sequence[str], opts: dict[str, Any],
) -> None:  # fmt: skip
    """`while`: `tf.while_loop` where the condition is a tensor.

    Args:
        test: the condition, of the variables.
        body: a turn, which sets the variables.
        get_state, set_state: read and write them.
        symbol_names: their names.
        opts: what the user sets of the loop.
    """
    # Only the condition tells which loop it is. Nothing of this first time goes into the graph.
    with nullcontext() if executing_eagerly() else _aside().as_default():
        goes_on = test()
    while not decides(goes_on):
        if not goes_on:
            return
        body()
        # From here on it may depend on tensors, as after a `break` that does.
        goes_on = test()
    LoopState(get_state, set_state, symbol_names).repeat(test, body, (), opts)


def _aside() -> FuncGraph:
    """A graph that is thrown away, whose names are its own."""
    graph = FuncGraph("condition", get_default_graph())
    graph._count, graph._names_in_use = [0], {}
    return graph


# ---------------------------------------------------------------- for
def for_stmt(
    iter_: Any, extra_test: Callable[[], Any] | None, body: Callable[[Any], None],
    get_state: Get, set_state: Set, symbol_names: Sequence[str], opts: dict[str, Any],
) -> None:  # fmt: skip
    """`for`: `tf.while_loop` over the rows of a tensor; datasets say themselves what it is.

    Args:
        iter_: what the loop goes over.
        extra_test: whether to go on, if the loop may end early.
        body: a turn, of an element; sets the variables.
        get_state, set_state: read and write the variables.
        symbol_names: their names.
        opts: what the user sets of the loop.
    """
    eagerly = executing_eagerly()
    if is_tensor(iter_) and not eagerly:
        over = _over_range if _is_range(iter_) else _over_rows
        over(iter_, extra_test, body, LoopState(get_state, set_state, symbol_names), opts)
        return
    staged = None if eagerly else getattr(iter_, "_staged_loop", None)
    if staged is not None:
        staged(extra_test, body, LoopState(get_state, set_state, symbol_names))
        return
    goes_on = extra_test is None or extra_test()
    for element in iter_:
        if decides(goes_on):
            # Python knows the elements, and the graph whether the loop has ended.
            _turn_if(goes_on, functools.partial(body, element), get_state, set_state, symbol_names)
        elif goes_on:
            body(element)
        if extra_test is not None:
            goes_on = extra_test()
            if not decides(goes_on) and not goes_on:
                break


def _turn_if(
    goes_on: Any, body: Callable[[], None], get_state: Get, set_state: Set,
    symbol_names: Sequence[str],
) -> None:  # fmt: skip
    count = len(symbol_names)
    if_stmt(goes_on, body, lambda: None, get_state, set_state, symbol_names, count)


def _is_range(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.op.type == "Range"


def and_also(first: Any, extra: Callable[[], Any] | None) -> Any:
    """A condition and, where there is one, a further one that is asked if the first holds."""
    return first if extra is None else cond(first, extra, lambda: False)


def _over_rows(
    rows: Any, extra: Callable[[], Any] | None, body: Callable[[Any], None], state: LoopState,
    opts: dict[str, Any],
) -> None:  # fmt: skip
    count = len_(rows)
    # Gradients of reads from an array are cheaper than those of slices.
    array = TensorArray(rows.dtype.base_dtype, size=count).unstack(rows)

    def turn(i: Any) -> tuple[Any]:
        body(array.read(i))
        return (i + 1,)

    state.repeat(lambda i: and_also(i < count, extra), turn, (0,), opts)


def _over_range(
    numbers: Tensor, extra: Callable[[], Any] | None, body: Callable[[Any], None],
    state: LoopState, opts: dict[str, Any],
) -> None:  # fmt: skip
    start, limit, step = numbers.op.inputs
    known = constant_value(step)

    def inside(i: Any) -> Any:
        if known is not None:
            return i < limit if known >= 0 else i > limit
        return logical_or(logical_and(step >= 0, i < limit), logical_and(step < 0, i > limit))

    def turn(i: Any) -> tuple[Any]:
        body(i)
        return (i + step,)

    state.repeat(lambda i: and_also(inside(i), extra), turn, (start,), opts)
