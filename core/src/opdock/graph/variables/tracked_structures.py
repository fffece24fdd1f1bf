"""What holds trackable objects: for layers, a thing with variables, updates and losses of its own.

A wrapper takes the place of a plain list or dict and shares the items with it: what either of the
two is told, both know. What a wrapper holds as the list or dict that it is itself is what it has
seen: each change through it is made there too. So it can tell at a save whether others have changed
what it wraps, at no cost when an item is added, and code written in C, which reads a list's items
without asking it for them, finds them.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self, SupportsIndex

from opdock.graph.variables.trackable import (
    Trackable,
    TrackableReference,
    TrackableVariable,
    Weighted,
)

__all__ = ["TrackableDataStructure"]


class TrackableDataStructure(Weighted, Trackable):
    """An object that holds trackable ones; two are equal if they are the same object."""

    trainable = True

    @property
    def _own_variables(self) -> list[Any]:
        return [v for v in self._values if isinstance(v, TrackableVariable)]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def _values(self) -> Iterable[Any]:
        """The objects."""
        raise NotImplementedError("Abstract method")

    # ------------------------------------------------------------ what is in it
    @property
    def _parts(self) -> list[Any]:
        """The items that have weights of their own, containers too."""
        return [v for v in self._values if hasattr(type(v), "trainable_weights")]

    @property
    def layers(self) -> list[Any]:
        """The layers, those of containers in it too, each once."""
        found: dict[int, Any] = {}
        for part in self._parts:
            inner = part.layers if isinstance(part, TrackableDataStructure) else [part]
            found |= {id(layer): layer for layer in inner if id(layer) not in found}
        return list(found.values())

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers update; none, if `trainable` is False."""
        if not self.trainable:
            return []
        own = [v for v in self._own_variables if v.trainable]
        return [v for part in self._parts for v in part.trainable_weights] + own

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables; all, if `trainable` is False."""
        own = [v for v in self._own_variables if not v.trainable]
        found = [v for part in self._parts for v in part.non_trainable_weights] + own
        if self.trainable:
            return found
        own = [v for v in self._own_variables if v.trainable]
        return [v for part in self._parts for v in part.trainable_weights] + own + found

    @property
    def updates(self) -> list[Any]:
        """The updates of the layers."""
        return [u for layer in self.layers for u in getattr(layer, "updates", ())]

    @property
    def losses(self) -> list[Any]:
        """The losses of the layers."""
        return [loss for layer in self.layers for loss in getattr(layer, "losses", ())]


# ---------------------------------------------------------------- in the place of plain ones
class Wrapper(TrackableDataStructure):
    """A list or dict that shares its items with the one in whose place it is.

    Args:
        wrapped: the one in whose place it is.
    """

    _what: ClassVar[str]
    _why_it_is: ClassVar[str]

    def __init__(self, wrapped: Any) -> None:
        self._self_wrapped = wrapped
        # What was done to it after which a checkpoint could not tell its items apart, and what it
        # had seen when it found that others had changed what it wraps.
        self._self_change = ""
        self._self_seen: Any = None

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def _seen(self) -> Any:
        """What it has seen, as a plain list or dict."""
        raise NotImplementedError("Abstract method")

    def _see(self) -> None:
        """Takes what is there for seen."""
        raise NotImplementedError("Abstract method")

    def _as_seen(self) -> bool:
        """Whether the items are those that it has seen."""
        raise NotImplementedError("Abstract method")

    def _look(self) -> None:
        """Finds what others have changed."""
        if not self._as_seen():
            if self._self_seen is None:
                self._self_seen = self._seen()
            self._see()

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        self._look()
        if self._self_change:
            self._refuse(self._self_change)
        if self._self_seen is not None:
            self._refuse(
                f"The wrapped {self._what} was modified outside the wrapper (its final value was"
                f" {self._self_wrapped}, its value when a checkpoint dependency was added was"
                f" {self._self_seen}), which breaks restoration on object creation."
            )
        return self._unconditional_checkpoint_dependencies

    def _refuse(self, why: str) -> None:
        raise ValueError(
            f"Unable to save the object {self!r} ({self._why_it_is}). {why}\n\nIf you don't need"
            f" this {self._what} checkpointed, wrap it in a tf.contrib.checkpoint.NoDependency"
            " object; it will be automatically un-wrapped and subsequently ignored."
        )

    def _inherit(self, other: Self) -> Self:
        """Makes a copy as unfit for checkpoints as the object is."""
        self._look()
        other._self_change, other._self_seen = self._self_change, self._self_seen
        return other

    def __copy__(self) -> Self:
        return self._inherit(type(self)(copy.copy(self._self_wrapped)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._inherit(type(self)(copy.deepcopy(self._self_wrapped, memo)))

    def copy(self) -> Self:
        """A wrapper of a copy."""
        return copy.copy(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self._self_wrapped,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._self_wrapped!r})"

    def __getitem__(self, key: Any) -> Any:
        return self._self_wrapped[key]

    def __len__(self) -> int:
        return len(self._self_wrapped)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._self_wrapped)

    def __reversed__(self) -> Any:
        return reversed(self._self_wrapped)

    def __contains__(self, item: object) -> bool:
        return item in self._self_wrapped

    def __eq__(self, other: object) -> bool:
        return bool(self._self_wrapped == plain(other))

    def __ne__(self, other: object) -> bool:
        return bool(self._self_wrapped != plain(other))


def plain(value: Any) -> Any:
    """What a wrapper wraps, and any other value as it is."""
    return value._self_wrapped if isinstance(value, Wrapper) else value


def same(item: Any, seen: Any) -> bool:
    """Whether an item is the one that was seen; arrays and tensors do not tell by `==`."""
    if item is seen:
        return True
    plain = type(item) is type(seen) and isinstance(item, (str, bytes, numbers.Number))
    return plain and bool(item == seen)
