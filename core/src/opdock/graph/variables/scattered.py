"""Methods of variables that read and write some of their rows or slices."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from opdock.graph.nodes.composite import IndexedSlices

_SCATTER: Final = "opdock.ops.composed.variable_scatter"
"""Where the functions of the same names are, which stand above variables."""


class Scattered:
    """A mixin for `tf.Variable`."""

    def _scatter(self, op: str, delta: Any, use_locking: bool, name: str | None) -> Any:
        if not isinstance(delta, IndexedSlices):
            raise ValueError(f"sparse_delta is not IndexedSlices: {delta}")
        function = getattr(import_module(_SCATTER), op)
        return function(self, delta.indices, delta.values, use_locking=use_locking, name=name)

    def _scatter_nd(self, op: str, indices: Any, updates: Any, name: str | None) -> Any:
        return getattr(import_module(_SCATTER), op)(self, indices, updates, name=name)

    def scatter_sub(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Subtracts IndexedSlices."""
        return self._scatter("scatter_sub", sparse_delta, use_locking, name)

    def scatter_add(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Adds IndexedSlices."""
        return self._scatter("scatter_add", sparse_delta, use_locking, name)

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Assigns IndexedSlices."""
        return self._scatter("scatter_update", sparse_delta, use_locking, name)

    def scatter_mul(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Multiplies by IndexedSlices."""
        return self._scatter("scatter_mul", sparse_delta, use_locking, name)

    def scatter_div(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Divides by IndexedSlices."""
        return self._scatter("scatter_div", sparse_delta, use_locking, name)

    def scatter_min(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Takes the minimum with IndexedSlices."""
        return self._scatter("scatter_min", sparse_delta, use_locking, name)

    def scatter_max(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Takes the maximum with IndexedSlices."""
        return self._scatter("scatter_max", sparse_delta, use_locking, name)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Assigns IndexedSlices whose indices are those of each member of a batch."""
        if not isinstance(sparse_delta, IndexedSlices):
            raise ValueError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return import_module("opdock.ops.composed.batch_scatter").batch_scatter_update(
            self, sparse_delta.indices, sparse_delta.values, use_locking=use_locking, name=name
        )

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Assigns slices at index vectors."""
        return self._scatter_nd("scatter_nd_update", indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to slices at index vectors."""
        return self._scatter_nd("scatter_nd_add", indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from slices at index vectors."""
        return self._scatter_nd("scatter_nd_sub", indices, updates, name)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Rows of the value."""
        return import_module("opdock.ops.gather").gather(self, indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Slices of the value at some coordinates."""
        return import_module("opdock.ops.gather").gather_nd(self, indices, name=name)

    def count_up_to(self, limit: int) -> Any:
        """Increments the variable until it reaches `limit`, then OutOfRangeError."""
        return import_module("opdock.ops.state").count_up_to(self, limit)
