"""A graph whose tensors know their values: what Python code sees that a graph calls.

A value is computed when somebody asks for it. What was computed is fed to whatever is computed
later, so that nothing random or with an effect happens a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.session import Session

__all__ = ["ImmediateGraph", "ImmediateTensor"]


class ImmediateTensor(Tensor):
    """A tensor that answers as an eager one of TensorFlow does."""

    def numpy(self) -> Any:
        """The value; a scalar as NumPy's scalar, a string as bytes."""
        graph: Any = self.graph
        return graph.values([self])[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        array = np.asarray(self.numpy())
        return array if dtype is None else array.astype(dtype)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __index__(self) -> int:
        return int(self.numpy().__index__())

    def __len__(self) -> int:
        return len(self.numpy())

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class ImmediateGraph(Graph):
    """A graph with a session of its own that computes what is asked for."""

    tensor_type = ImmediateTensor

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Tensor, Any] = {}
        self._session: Session | None = None

    def know(self, tensor: Tensor, value: Any) -> None:
        """Gives a placeholder its value."""
        self._known[tensor] = value

    def values(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The values of some tensors, computed together where they are not known."""
        unknown = [t for t in tensors if t not in self._known]
        if unknown:
            if self._session is None:
                self._session = Session(graph=self)
            feeds = {t: value for t, value in self._known.items() if self.is_feedable(t)}
            self._known.update(
                zip(unknown, self._session.run(unknown, feeds), strict=True)
            )  # fmt: skip
        return [self._known[t] for t in tensors]

    def close(self) -> None:
        """Ends the session; who asks for another value later gets a new one."""
        if self._session is not None:
            self._session.close()
            self._session = None
