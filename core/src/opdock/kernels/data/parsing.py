"""`ParseExampleDataset`: batches of Examples, parsed by several threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.io.examples import Dense, Sparse, parse_batch
from opdock.kernels.data.base import Call, Captured, Element, invalid
from opdock.kernels.data.context import Context

__all__ = ["Parser"]


class Parser(Captured):
    """The function from a vector of serialized Examples to their features, in the order of keys.

    Args:
        sparse: features of any length; each becomes a vector of three variants.
        dense: features with a shape.
    """

    def __init__(self, sparse: Sequence[Sparse], dense: Sequence[Dense]) -> None:
        self._sparse, self._dense = tuple(sparse), tuple(dense)
        keys = [feature.key for feature in self._sparse] + [f.key for f in self._dense]
        self._order = sorted(range(len(keys)), key=keys.__getitem__)

    @property
    def stateful(self) -> bool:
        """It has no state."""
        return False

    @property
    def has_rows(self) -> bool:
        """A batch of batches is nothing that it takes."""
        return False

    def by_rows(self, context: Context) -> None:
        """A batch of batches is nothing that it takes."""

    def within(self, context: Context, last: bool = False) -> Call:
        """The function: the same in any context."""

        def of(element: Element, places: Element = ()) -> Element:
            (serialized,) = element
            if np.ndim(serialized) != 1:
                raise invalid("ParseExampleDataset takes vectors of serialized Examples")
            found = parse_batch(list(serialized), (), self._sparse, self._dense)
            count = len(self._sparse)
            parts = zip(found[:count], found[count : 2 * count], found[2 * count : 3 * count],
                        strict=True)  # fmt: skip
            features = [*map(_variants, parts), *found[3 * count :]]
            return tuple([features[i] for i in self._order])

        return of


def _variants(parts: Sequence[Any]) -> Any:
    """A sparse tensor as a dataset has it: its indices, values and shape in a vector."""
    out = np.empty(3, object)
    for i, part in enumerate(parts):
        out[i] = part
    return out
