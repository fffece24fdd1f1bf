"""Elements, and errors in the place of elements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from opdock import errors
from opdock.kernels.data.base import DatasetIterator, Element

__all__ = [
    "Outcome", "drawn", "load_error", "load_outcomes", "save_error", "save_outcomes", "settled",
]  # fmt: skip

Outcome = tuple[Element | None, BaseException | None]
"""An element or None at the end, or the error in its place."""


def drawn(source: DatasetIterator, caught: type[BaseException] = Exception) -> Outcome:
    """What a source gives next.

    Args:
        source: the source.
        caught: what stands in the place of an element. A thread of the pipeline's own catches
            `BaseException`, as nobody else would hear of it, and whoever waits would wait on.
    """
    try:
        return source.next(), None
    except errors.CancelledError:
        raise
    except caught as e:  # it is raised where the element would have come
        return None, e


def settled(outcome: Outcome) -> Element | None:
    """The element of an outcome.

    Raises:
        OpError: there is an error in its place.
    """
    element, error = outcome
    if error is not None:
        raise error.with_traceback(None)
    return element


def save_error(error: BaseException | None) -> Any:
    """An error as part of a state."""
    if error is None:
        return None
    code = error.error_code if isinstance(error, errors.OpError) else errors.INTERNAL
    return [int(code), getattr(error, "message", str(error))]


def save_outcomes(outcomes: Iterable[Outcome]) -> list[Any]:
    """Outcomes as part of a state."""
    return [[element, save_error(error)] for element, error in outcomes]


def load_outcomes(saved: list[Any]) -> deque[Outcome]:
    """The outcomes that `save_outcomes` saved."""
    return deque((element, load_error(error)) for element, error in saved)


def load_error(saved: Any) -> Exception | None:
    """The error that `save_error` saved."""
    if saved is None:
        return None
    cls: Any = errors.exception_type_from_error_code(saved[0])
    found: Exception = cls(None, None, saved[1])
    return found
