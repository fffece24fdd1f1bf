"""CPU kernels of regions of images, and of the nearest pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = np.ndarray[Any, Any]

table = KernelTable()


@table.binder("ImageConnectedComponents")
def image_connected_components(sig: NodeSig) -> Callable[..., Array]:
    """Each region has the number, from one on, of its first pixel in the batch."""
    from scipy import sparse  # takes its time to import, and few programs need it

    def run(images: Array) -> Array:
        if images.ndim != 3:
            raise checks.invalid("Input images must have rank 3")
        if images.size == 0:
            return np.zeros(images.shape, np.int64)
        lit = images != (b"" if images.dtype == object else 0)
        number = np.arange(images.size).reshape(images.shape)
        ends = []
        for one, other in (
            (np.s_[:, :-1, :], np.s_[:, 1:, :]),
            (np.s_[:, :, :-1], np.s_[:, :, 1:]),
        ):
            same = lit[one] & (images[one] == images[other])
            ends.append((number[one][same], number[other][same]))
        starts, stops = (np.concatenate(part) for part in zip(*ends, strict=True))
        edges = sparse.coo_array(
            (np.ones(len(starts), np.int8), (starts, stops)), (images.size,) * 2
        )
        _, labels = sparse.csgraph.connected_components(edges, directed=False)
        _, first, region = np.unique(labels, return_index=True, return_inverse=True)
        found = (first[region] + 1).reshape(images.shape)
        return np.where(lit, found, 0)

    return run


@table.binder("BipartiteMatch")
def bipartite_match(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The nearest row and column are a pair, then the nearest of those that are left."""
    most = int(sig.attrs["top_k"])

    def run(distances: Array, valid_rows: Array) -> tuple[Array, Array]:
        if distances.ndim != 2:
            raise checks.invalid(
                f"distance_mat should be 2-dimensional, but got {checks.dims(distances.shape)}"
            )
        if valid_rows.size != 1:
            raise checks.invalid(
                "num_valid_rows argument should be a tensor with 1 element, but got "
                f"{valid_rows.size}"
            )
        rows, columns = distances.shape
        wanted = float(valid_rows.reshape(()))
        valid = int(wanted + 0.1) if wanted >= 0 else rows
        if valid > rows:
            raise checks.invalid(
                f"There should be at least {valid} rows in distance_mat, but only got {rows} rows."
            )
        of_row, of_column = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
        left = min(valid, columns) if most <= 0 else min(valid, columns, most)
        # One sort, and a walk that ends when all have found theirs.
        for place in np.argsort(distances[:valid], axis=None, kind="stable").tolist():
            if left == 0:
                break
            row, column = divmod(place, columns)
            if of_row[row] < 0 and of_column[column] < 0:
                of_row[row], of_column[column] = column, row
                left -= 1
        return of_row, of_column

    return run
