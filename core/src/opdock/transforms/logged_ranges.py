"""Ranges of activations as graphs print them, and what is taken of many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from opdock import errors
from opdock.io.files import read_file

__all__ = ["logged_ranges"]

_NUMBER: Final = r"\[([^\]\[]*)\]"
_LINE: Final = re.compile(rf";([^;]*)__print__;__requant_min_max:{_NUMBER}{_NUMBER}")


def logged_ranges(
    transform: str, path: str, min_percentile: float, max_percentile: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    """The nodes of a log, each with its range.

    Args:
        transform: who asks, for errors.
        path: what a graph printed that insert_logging(op=RequantizationRange, show_name=true,
            message="__requant_min_max:") made, over many inputs.
        min_percentile: how many percent of the logged lower ends lie below the range.
        max_percentile: how many percent of the upper ends lie above it.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no ranges are in it, or a percentage is not between 0 and 100.
    """
    for option, value in (("min", min_percentile), ("max", max_percentile)):
        if not 0 <= value <= 100:
            raise errors.InvalidArgumentError(
                None, None, f"{transform}: {option}_percentile is {value:g}, not in [0, 100]"
            )
    for name, (lows, highs) in _logged(path).items():
        low, high = _ranked(lows, min_percentile / 100), _ranked(highs, 1 - max_percentile / 100)
        yield name, (low, high)


def _logged(path: str) -> dict[str, tuple[list[float], list[float]]]:
    found: dict[str, tuple[list[float], list[float]]] = {}
    for line in read_file(path).decode(errors="replace").splitlines():
        for name, low, high in _LINE.findall(line):
            try:
                ends = float(low), float(high)
            except ValueError:
                continue
            if np.all(np.isfinite(ends)):
                for values, end in zip(found.setdefault(name, ([], [])), ends, strict=True):
                    values.append(end)
    if not found:
        raise errors.InvalidArgumentError(
            None, None, f"No min/max range logs were found in the log file {path}"
        )
    return found


def _ranked(values: list[float], share: float) -> float:
    """The value with this share of the values below it; ranks are rounded up from the middle."""
    rank = int(np.floor(len(values) * share + 0.5))
    return sorted(values)[min(rank, len(values) - 1)]
