"""What rewritten code calls for `if`, for expressions that choose, and for `assert`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_not
from opdock.ops.control import cond as tf_cond
from opdock.ops.rewriting.undefined import Undefined, UndefinedReturnValue
from opdock.ops.rewriting.variables import can_be_staged, check_alike, decides, with_effects

__all__ = ["and_", "assert_stmt", "eq", "if_exp", "if_stmt", "not_", "not_eq", "or_"]

_WHERE: Final = ("in the TRUE branch", "in the FALSE branch")


def if_stmt(
    cond: Any, body: Callable[[], None], orelse: Callable[[], None],
    get_state: Callable[[], tuple[Any, ...]], set_state: Callable[[tuple[Any, ...]], None],
    symbol_names: Sequence[str], nouts: int,
) -> None:  # fmt: skip
    """`if`: `tf.cond` where the condition is a tensor.

    Args:
        cond: the condition.
        body, orelse: the branches, which set the variables.
        get_state, set_state: read and write the variables that the branches change.
        symbol_names: the variables' names, those first that are read afterwards.
        nouts: how many of them that is.

    Raises:
        ValueError: a variable gets a value in one branch alone, or one branch alone returns.
        TypeError: a variable has another type or structure in the other branch.
    """
    if not decides(cond):
        (body if cond else orelse)()
        return
    before = get_state()
    branches = _Branches(symbol_names[:nouts])

    def taken(which: int, branch: Callable[[], None]) -> Callable[[], tuple[Any, ...]]:
        def run() -> tuple[Any, ...]:
            set_state(before)
            branch()
            return branches.leave(which, get_state()[:nouts])

        return with_effects(run)

    try:
        results = tf_cond(cond, taken(0, body), taken(1, orelse), strict=True)
    finally:
        set_state(before)
    set_state((*branches.joined(results), *before[nouts:]))


class _Branches:
    """What the variables are at the ends of both branches.

    Args:
        names: of the variables.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._ends: list[tuple[Any, ...]] = [(), ()]
        self._left = [False, False]

    def leave(self, which: int, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the branch gives: for variables that no tensor can hold, something in its place."""
        self._ends[which], self._left[which] = values, True
        if all(self._left):
            self._check()
        # A cond has at least one result.
        return (which == 0, *(v if can_be_staged(v) else 0 for v in values))

    def _check(self) -> None:
        one, other = self._ends
        for a, b, kind in ((one, other, "else"), (other, one, "if")):
            pairs = zip(a, b, strict=True)
            missing = [
                name
                for name, (x, y) in zip(self._names, pairs, strict=True)
                if isinstance(y, Undefined) and not isinstance(x, Undefined)
            ]
            if missing:
                raise ValueError(
                    "The following symbols must also be initialized in the "
                    f"{kind} branch: {tuple(missing)}. They may get a value before the `if` "
                    "statement instead."
                )
            if any(_returned(x) and _fell_off(y) for x, y in zip(a, b, strict=True)):
                raise ValueError(
                    f"A value must also be returned from the {kind} branch: where the condition "
                    "is a tensor, all branches return or none does."
                )
        for name, x, y in zip(self._names, one, other, strict=True):
            if x is not y and can_be_staged(x) != can_be_staged(y):
                raise TypeError(
                    f'"{name}" does not have the same nested structure {_WHERE[0]} and '
                    f"{_WHERE[1]}: it is {x!r} and {y!r}."
                )
            if not can_be_staged(x) and x is not y and not _both_undefined(x, y):
                raise TypeError(
                    f'"{name}" is {x!r} {_WHERE[0]} and {y!r} {_WHERE[1]}: only tensors and what '
                    "becomes one can depend on a tensor."
                )
        staged = [i for i, x in enumerate(one) if can_be_staged(x)]
        check_alike(
            [self._names[i] for i in staged], [one[i] for i in staged],
            [other[i] for i in staged], _WHERE,
        )  # fmt: skip

    def joined(self, results: Sequence[Any]) -> list[Any]:
        """The variables after the statement."""
        pairs = zip(self._ends[0], results[1:], strict=True)
        return [result if can_be_staged(end) else end for end, result in pairs]


def _fell_off(value: Any) -> bool:
    return isinstance(value, UndefinedReturnValue)


def _returned(value: Any) -> bool:
    """Whether a value is returned; a function that ends without `return` gives None."""
    return value is not None and not _fell_off(value)


def _both_undefined(one: Any, other: Any) -> bool:
    if isinstance(one, Undefined) or isinstance(other, Undefined):
        return isinstance(one, Undefined) and isinstance(other, Undefined)
    return not _returned(one) and not _returned(other)


# ---------------------------------------------------------------- expressions
def if_exp(
    cond: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], expr_repr: str = ""
) -> Any:
    """`a if condition else b`: `tf.cond` where the condition is a tensor."""
    if not decides(cond):
        return if_true() if cond else if_false()
    return tf_cond(cond, with_effects(if_true), with_effects(if_false))


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a and b`, where the second is computed only if the first holds."""
    first = a()
    return tf_cond(first, b, lambda: first) if decides(first) else first and b()


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a or b`, where the second is computed only if the first does not hold."""
    first = a()
    return tf_cond(first, lambda: first, b) if decides(first) else first or b()


def not_(a: Any) -> Any:
    """`not a`."""
    return logical_not(a) if decides(a) else not a


def eq(a: Any, b: Any) -> Any:
    """`a == b`, element by element where one of them is a tensor."""
    return equal(a, b) if decides(a) or decides(b) else a == b


def not_eq(a: Any, b: Any) -> Any:
    """`a != b`, element by element where one of them is a tensor."""
    return not_(eq(a, b))


def assert_stmt(expression1: Any, expression2: Callable[[], Any]) -> Any:
    """`assert`: `tf.Assert` where the condition is a tensor.

    Args:
        expression1: the condition.
        expression2: makes the message.

    Raises:
        ValueError: `expression2` is no function.
    """
    if not callable(expression2):
        raise ValueError(f"{expression2} must be a callable")
    if not decides(expression1):
        assert expression1, expression2()
        return None
    message = expression2()
    return Assert(expression1, list(message) if isinstance(message, tuple) else [message])
