"""Places of the session's resources that are made by an op of their own, after their handle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors

__all__ = ["Place", "place_kernels"]

T = TypeVar("T")


class Place(Generic[T]):
    """What a handle stands for: a resource that is made later.

    Args:
        kind: what the resource is called in messages.
        container: the container that has it.
        name: its name.
    """

    def __init__(self, kind: str, container: str, name: str) -> None:
        self._kind, self._container, self.name = kind, container or "localhost", name
        self._lock = threading.RLock()
        self._content: T | None = None

    @property
    def initialized(self) -> bool:
        """Whether the resource was made."""
        return self._content is not None

    @property
    def content(self) -> T:
        """The resource.

        Raises:
            NotFoundError: it was not made yet.
        """
        if self._content is None:
            raise errors.NotFoundError(
                None, None,
                f"Resource {self._container}/{self.name}/{self._kind} does not exist.",
            )  # fmt: skip
        return self._content

    def clear(self) -> None:
        """Takes the resource away."""
        self._content = None

    def fill(self, make: Callable[[], T]) -> None:
        """Makes the resource, unless it is there."""
        with self._lock:
            if self._content is None:
                made = make()
                if self._content is None:  # a signal handler may have come meanwhile
                    self._content = made


def place_kernels(table: KernelTable, handle_op: str, is_initialized_op: str, kind: type) -> None:
    """Adds the kernels of a handle and of the question whether its resource is there.

    Args:
        table: the family's kernels.
        handle_op: gives the place.
        is_initialized_op: asks whether it is filled.
        kind: what fills it.
    """

    @table.binder(handle_op, keeps=())
    def handle(sig: NodeSig) -> Callable[[], Place[Any]]:
        resources, attrs = sig.resources, sig.attrs
        name, container = attrs["shared_name"] or sig.name, attrs["container"]
        assert resources is not None
        return lambda: resources.get_or_create(
            kind.__name__, container, name, lambda: Place(kind.__name__, container, name)
        )

    @table.kernel(is_initialized_op, keeps=())
    def is_initialized(ctx: Any, place: Place[Any]) -> npt.NDArray[np.bool_]:
        return np.array(place.initialized)
