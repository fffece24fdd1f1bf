"""Gauges and counters by name and labels, which libraries set and nobody collects."""

from __future__ import annotations

from typing import Any


class Cell:
    """One value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def set(self, value: Any) -> None:
        """Takes a new value."""
        self._value = value

    def increase_by(self, value: int) -> None:
        """Adds to the value."""
        self._value += value

    def value(self) -> Any:
        """The value."""
        return self._value


class Metric:
    """A cell for each tuple of labels.

    Args:
        name: the metric's name.
        description: what it says.
        *labels: the names of the labels.
    """

    _zero: Any = 0

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name = name
        self.description = description
        self._count = len(labels)
        self._cells: dict[tuple[str, ...], Cell] = {}

    def get_cell(self, *labels: str) -> Cell:
        """The cell of some labels.

        Raises:
            ValueError: the number of labels is another one.
        """
        if len(labels) != self._count:
            raise ValueError(f"{self.name} has {self._count} labels, {len(labels)} are given")
        return self._cells.setdefault(labels, Cell(self._zero))


class Counter(Metric):
    """A number that grows."""


class IntGauge(Metric):
    """An integer."""


class BoolGauge(Metric):
    """True or false."""

    _zero = False


class StringGauge(Metric):
    """A text."""

    _zero = ""
