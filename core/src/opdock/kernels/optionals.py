"""Optionals as values: an element of a dataset, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import invalid
from opdock.kernels.expr.elements import unwrap


class Optional:
    """An element, or none.

    Args:
        element: its components, values of the host's memory; None if there is no element.
    """

    __slots__ = ("element",)

    def __init__(self, element: tuple[Any, ...] | None) -> None:
        self.element = element

    def __str__(self) -> str:
        return "Optional"

    def each(self, function: Callable[[Any], Any]) -> Optional:
        """An optional of what a function makes of each component."""
        return Optional(None if self.element is None else tuple(map(function, self.element)))

    def plus(self, other: Optional, add: Callable[[Any, Any], Any]) -> Optional:
        """An optional of the sums of the components.

        Args:
            other: with as many components, or with none as well.
            add: of two components.

        Raises:
            InvalidArgumentError: they differ in that.
        """
        if self.element is None and other.element is None:
            return self
        if self.element is None or other.element is None:
            raise invalid("Cannot add optionals because one has a value and the other doesn't.")
        if len(self.element) != len(other.element):
            raise invalid(
                "Cannot add optionals because they have different numbers of components "
                f"({len(self.element)} vs. {len(other.element)})."
            )
        return Optional(tuple(map(add, self.element, other.element)))


def optional_of(handle: Any) -> Optional:
    """The optional behind a kernel's argument; InvalidArgumentError if it is none."""
    found = unwrap(handle)
    if not isinstance(found, Optional):
        raise invalid("The given variant is not an optional value.")
    return found
