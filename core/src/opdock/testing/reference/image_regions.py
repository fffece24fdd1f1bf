"""Regions by filling them pixel by pixel, pairs by looking for the nearest again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("ImageConnectedComponents")
def image_connected_components(attrs: Attrs, image: Array) -> Array:
    """From each pixel that has no region yet, all that can be reached."""
    found = np.zeros(image.shape, np.int64)
    for number, (n, y, x) in enumerate(np.ndindex(*image.shape), start=1):
        if found[n, y, x] or not image[n, y, x]:
            continue
        waiting = [(y, x)]
        while waiting:
            r, c = waiting.pop()
            inside = 0 <= r < image.shape[1] and 0 <= c < image.shape[2]
            if inside and not found[n, r, c] and image[n, r, c] == image[n, y, x]:
                found[n, r, c] = number
                waiting += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
    return found


@reference("BipartiteMatch")
def bipartite_match(attrs: Attrs, distances: Array, valid_rows: Array) -> tuple[Array, Array]:
    """The nearest pair of those that have none, as often as there is one."""
    rows, columns = distances.shape
    of_row, of_column = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    free_rows = list(range(rows if valid_rows < 0 else int(valid_rows)))
    free_columns = list(range(columns))
    left = attrs["top_k"] if attrs["top_k"] > 0 else rows * columns
    while free_rows and free_columns and left:
        _, row, column = min((distances[r, c], r, c) for r in free_rows for c in free_columns)
        of_row[row], of_column[column] = column, row
        free_rows.remove(row)
        free_columns.remove(column)
        left -= 1
    return of_row, of_column
