"""Datasets of groups: elements of one key, reduced or gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.kernels.data.base import (
    Captured,
    Dataset,
    DatasetIterator,
    Element,
    Following,
    FollowingIterator,
    State,
    invalid,
)
from opdock.kernels.data.batching import ElementsDataset
from opdock.kernels.data.context import Context
from opdock.kernels.data.flattening import Made, inner_dataset
from opdock.kernels.data.mapping import key_of

__all__ = ["GroupByReducerDataset", "GroupByWindowDataset"]


class GroupByReducerDataset(Following):
    """What is left of the elements of each key, in the order in which keys came first.

    Args:
        functions: key of an element; state of a key; state and element to state; state to element.
    """

    def __init__(
        self, source: Dataset, functions: Sequence[Captured],
        types: Any, shapes: Any,
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        self.functions = functions

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _ReducerIterator(self, context)


class _ReducerIterator(FollowingIterator):
    def __init__(self, dataset: GroupByReducerDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._calls = tuple(f.within(context) for f in dataset.functions)
        self._states: dict[int, Element] = {}
        self._keys: list[int] | None = None  # of what is still to come, once all is reduced

    def next(self) -> Element | None:
        if self._keys is None:
            self._reduce()
            self._keys = sorted(self._states)
        if not self._keys:
            return None
        return self._calls[3](self._states[self._keys.pop(0)])

    def _reduce(self) -> None:
        key_fn, start, step, _ = self._calls
        while True:
            element = self.source.next()
            if element is None:
                return
            key = key_of(key_fn(element), "`key_func`")
            state = self._states.get(key)
            if state is None:
                state = start(_key_array(key))
            self._states[key] = step((*state, *element))

    def save(self) -> State:
        states = [{"key": k, "state": v} for k, v in self._states.items()]
        return {**super().save(), "states": states, "keys": self._keys}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._states = {s["key"]: s["state"] for s in state["states"]}
        self._keys = state["keys"]


class GroupByWindowDataset(Following):
    """The datasets that a function makes of windows of elements of one key.

    Args:
        functions: key of an element; key and window to a dataset; key to the size of its windows.
    """

    def __init__(
        self, source: Dataset, functions: Sequence[Captured], types: Any,
        shapes: Any,
    ) -> None:  # fmt: skip
        super().__init__(source, types, shapes)
        self.functions = functions

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _WindowsIterator(self, context)


class _WindowsIterator(FollowingIterator):
    def __init__(self, dataset: GroupByWindowDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._inside = context.inside()
        self._dataset = dataset
        self._key, self._reduce, self._size = (f.within(self._inside) for f in dataset.functions)
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._over = False
        # The key and the window of which the elements are being handed out, and where that stands.
        self._current: tuple[int, list[Element], Made] | None = None

    def next(self) -> Element | None:
        while True:
            if self._current is not None:
                iterator = self._current[2].iterator
                element = iterator.next()
                if element is not None:
                    return element
                iterator.close()
                self._current = None
            key = self._full() if not self._over else None
            if key is None:
                if not self._groups:
                    return None
                key = min(self._groups)
            window = self._groups.pop(key)
            self._current = key, window, self._make(key, window)

    def _full(self) -> int | None:
        """Gathers elements until a window is full; None at the end."""
        while True:
            element = self.source.next()
            if element is None:
                self._over = True
                return None
            key = key_of(self._key(element), "`key_func`")
            size = self._sizes.get(key)
            if size is None:
                size = self._sizes[key] = self._window_size(key)
            group = self._groups.setdefault(key, [])
            group.append(element)
            if len(group) >= size:
                return key

    def _window_size(self, key: int) -> int:
        size = key_of(self._size(_key_array(key)), "`window_size_func`")
        if size <= 0:
            raise invalid(f"Window size must be greater than zero, but got {size}.")
        return size

    def _make(self, key: int, window: list[Element]) -> Made:
        d, streams = self._dataset, self._inside.streams()
        group = ElementsDataset(window, d.source.types, d.source.shapes)
        results = self._reduce((*_key_array(key), group))
        dataset = inner_dataset(results, d.types, d.shapes, self._inside)
        context = self._inside.made(dataset)
        return Made(dataset.iterator(context), context, streams)

    def save(self) -> State:
        current = None
        if self._current is not None:
            key, window, made = self._current
            current = {**made.save(), "key": key, "window": window}
        groups = [{"key": k, "elements": v, "size": self._sizes[k]} for k, v in
                  self._groups.items()]  # fmt: skip
        return {**super().save(), "groups": groups, "over": int(self._over), "current": current}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._over = bool(state["over"])
        self._groups = {g["key"]: list(g["elements"]) for g in state["groups"]}
        self._sizes = {g["key"]: g["size"] for g in state["groups"]}
        current = state["current"]
        if current is not None:
            key, window = current["key"], list(current["window"])
            self._inside.resume(current["streams"])  # the function draws random numbers again
            made = self._make(key, window)
            made.restore(current)
            self._current = key, window, made

    def close(self) -> None:
        super().close()
        if self._current is not None:
            self._current[2].iterator.close()


def _key_array(key: int) -> Element:
    return (np.array(key, np.int64),)
