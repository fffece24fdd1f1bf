"""`Dataset` and `DatasetIterator`: what every dataset op makes, and what walks through it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, Self

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.dtypes import DType
from opdock.kernels.data.context import Context
from opdock.kernels.select.cells import UserFunction
from opdock.kernels.select.signature import NodeSig
from opdock.shapes import Shape

__all__ = [
    "INFINITE", "UNKNOWN", "Call", "Captured", "Chained", "Chosen", "Dataset", "DatasetIterator",
    "Element", "Following", "FollowingIterator", "HandedOn", "Memory", "State", "check_fits",
    "component", "declared", "invalid", "scalar_int", "unwrap",
]  # fmt: skip

Element = tuple[Any, ...]
"""The components of an element: host arrays, or datasets, where a component is one."""
State = dict[str, Any]
"""Where an iterator stands: integers, texts, arrays, elements, lists and further states."""

INFINITE: Final = -1
UNKNOWN: Final = -2


def invalid(text: str) -> errors.InvalidArgumentError:
    """An InvalidArgumentError; the runtime adds node and line."""
    return errors.InvalidArgumentError(None, None, text)


class Call(Protocol):
    """A function of an element that gives one."""

    def __call__(self, element: Element, places: Element = (), /) -> Element:
        """The result; its components may be the arrays of `places`, see `UserCall`."""


class Captured:
    """A function with the values that it captured."""

    def __init__(self, function: UserFunction, captured: Sequence[Any]) -> None:
        self.function = function
        self.captured = tuple(captured)

    def within(self, context: Context, last: bool = False) -> Call:
        """The function of an element, in a context; `last` says that it is called to clean up."""
        call, captured = context.call(self.function, last), self.captured

        def of(element: Element, places: Element = ()) -> Element:
            values = call((*element, *captured) if captured else element, places)
            return tuple([v if isinstance(v, np.ndarray) else component(v) for v in values])

        return of

    @property
    def stateful(self) -> bool:
        """Whether it has state or an effect, or draws random numbers."""
        return self.function.stateful

    @property
    def has_rows(self) -> bool:
        """Whether it can have many elements at once."""
        return self.function.by_rows() is not None

    def by_rows(self, context: Context) -> Callable[[Element], Element] | None:
        """The function of many elements at once, if it can have them so."""
        rows = self.function.by_rows()
        if rows is None:
            return None
        call, captured = context.call(rows), self.captured
        return lambda columns: tuple(call((*columns, *captured)))


class Chained(Captured):
    """A function, and another one of what it gives."""

    def __init__(self, first: Captured, second: Captured) -> None:
        super().__init__(first.function, first.captured)
        self.first, self.second = first, second

    @property
    def stateful(self) -> bool:
        """Whether one of them is."""
        return self.first.stateful or self.second.stateful

    @property
    def has_rows(self) -> bool:
        """Whether both can have many elements at once."""
        return self.first.has_rows and self.second.has_rows

    def within(self, context: Context, last: bool = False) -> Call:
        """One after the other, in a context."""
        first, second = self.first.within(context, last), self.second.within(context, last)

        def of(element: Element, places: Element = ()) -> Element:
            return second(first(element), places)

        return of

    def by_rows(self, context: Context) -> Callable[[Element], Element] | None:
        """Both of many elements at once, if they can have them so."""
        first, second = self.first.by_rows(context), self.second.by_rows(context)
        if first is None or second is None:
            return None
        return lambda columns: second(first(columns))


def component(value: Any) -> Any:
    """A result as a component: kernels may give scalars that are no arrays."""
    if isinstance(value, Dataset):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, (bytes, str)):
        out = np.empty((), object)
        out[()] = value
        return out
    return value


class DatasetIterator:
    """A place in a dataset. One thread at a time uses it."""

    def next(self) -> Element | None:
        """The next element; None at the end.

        Raises:
            OpError: the element could not be made. What comes after it may still be had.
        """
        raise NotImplementedError

    def prepare(self) -> None:
        """Waits for what `next` would wait for, if that is possible before anything is taken."""

    def columns(self, count: int) -> Element | None:
        """The next elements at once: each component has a row for each of them.

        Nothing is drawn that so many calls of `next` would not draw.

        Args:
            count: how many at most; there may be fewer, before the end or an error as well.

        Returns:
            Arrays that nobody else holds. None where elements come one by one: `next` has the next
            one, the error in its place, or the end.
        """
        return None

    def save(self) -> State:
        """Where it stands."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Goes to where another iterator over an equal dataset stood."""
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of threads and files. Nobody asks for more."""


class Memory(Protocol):
    """Where elements may lie: an open device, as far as datasets know it."""

    is_host: bool
    """Whether its buffers are host arrays."""
    dtypes: frozenset[DType] | None
    """The element types that a buffer can hold; None for all."""

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy of a host array."""

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A fresh host array."""


class Dataset(ABC):
    """A sequence of elements that can be walked through any number of times.

    Attributes:
        types: of the components of an element.
        shapes: of the components, as far as they are known.
        label: what statistics call it: its op, and its number among the nodes that make it.
        nodes: how many those are, constants included.
    """

    label = ""
    nodes = 1

    def __init__(self, types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.types = tuple(types)
        self.shapes = tuple(shapes)

    def made_by(self, op: str, arguments: Sequence[Any]) -> None:
        """Says once which op made it, of what: TF numbers nodes in the order of a pipeline."""
        if not self.label:
            values = [unwrap(a) for a in arguments]
            self.nodes = 1 + sum(v.nodes if isinstance(v, Dataset) else 1 for v in values)
            self.label = f"{op}/_{self.nodes - 1}"

    @abstractmethod
    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The datasets that it follows from."""
        return ()

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of other sources, whose elements are of the same kinds."""
        return self

    def labelled(self, other: Dataset) -> Dataset:
        """Another dataset, which is to have the place of this one in a pipeline."""
        other.label, other.nodes = self.label, self.nodes
        return other

    @property
    def kind(self) -> str:
        """What `AssertNextDataset` calls it, as TF does."""
        return self.label.partition("/")[0].replace("Dataset", "")

    @property
    def memory(self) -> Memory | None:
        """The device in whose memory elements lie, all of their components; None for the host."""
        return None

    @property
    def fresh(self) -> bool:
        """Whether nobody holds the arrays of an element but those to whom `next` gave it."""
        return False

    def cardinality(self) -> int:
        """The number of elements, or `INFINITE`, or `UNKNOWN` where only a walk would tell."""
        return UNKNOWN


class Following(Dataset):
    """A dataset that follows from another one.

    Args:
        source: the other.
        types, shapes: of the elements; by default those of the source.
    """

    def __init__(
        self, source: Dataset, types: Sequence[DType] | None = None,
        shapes: Sequence[Shape] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            source.types if types is None else types, source.shapes if shapes is None else shapes
        )
        self.source = source

    @property
    def sources(self) -> tuple[Dataset, ...]:
        """The one that it follows from."""
        return (self.source,)

    def of(self, sources: Sequence[Dataset]) -> Dataset:
        """The same of another source."""
        return self.over(*sources)

    def over(self, source: Dataset) -> Self:
        """The same of another source, whose elements are of the same kind."""
        found = copy.copy(self)
        found.source = source
        return found


class HandedOn(Following):
    """A dataset that hands on elements of its source as they are: some or all, in any order.

    By itself it is its source, walked through in the context that `within` gives.
    """

    @property
    def memory(self) -> Memory | None:
        """Where elements lie."""
        return self.source.memory

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays."""
        return self.source.fresh

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    def within(self, context: Context) -> Context:
        """The context in which the source is walked through."""
        return context

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return self.source.iterator(self.within(context))


class Chosen(HandedOn):
    """A dataset of some elements of its source: only a walk tells how many."""

    def cardinality(self) -> int:
        """The number of elements: nobody knows."""
        return UNKNOWN


class FollowingIterator(DatasetIterator):
    """An iterator that has one over another dataset, with which it goes on and ends.

    What is more to say of where it stands are `saved` attributes: their values are the state.
    """

    saved: tuple[str, ...] = ()

    def __init__(self, source: Dataset, context: Context) -> None:
        self.context = context
        self.source = source.iterator(context)

    def save(self) -> State:
        """Where it stands."""
        return {"source": self.source.save(), **{n: getattr(self, n) for n in self.saved}}

    def restore(self, state: State) -> None:
        """Goes to where another iterator stood."""
        self.source.restore(state["source"])
        for name in self.saved:
            setattr(self, name, state[name])

    def close(self) -> None:
        """Lets go of threads and files."""
        self.source.close()


# ---------------------------------------------------------------- arguments of dataset ops
def unwrap(handle: Any) -> Any:
    """What a scalar variant holds."""
    if isinstance(handle, np.ndarray) and handle.dtype == object and handle.ndim == 0:
        return handle.item()
    return handle


def scalar_int(value: Any, what: str) -> int:
    """An integer argument.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    if np.ndim(value):
        raise invalid(f"{what} must be a scalar")
    return int(value)


def declared(sig: NodeSig) -> tuple[list[DType], list[Shape]]:
    """The types and shapes of elements that a node declares."""
    attrs = sig.attrs
    types = attrs.get("output_types", attrs.get("Toutput_types"))
    return [t.base_dtype for t in types], [shapes.as_shape(s) for s in attrs["output_shapes"]]


def check_fits(
    types: Sequence[DType], shapes_: Sequence[Shape], given_types: Sequence[DType],
    given_shapes: Sequence[Shape],
) -> None:  # fmt: skip
    """Checks that elements are what somebody expects.

    Raises:
        InvalidArgumentError: their number, a type or a shape differs.
    """
    if len(types) != len(given_types):
        raise invalid(
            f"Number of components does not match: expected {len(types)} types but got "
            f"{len(given_types)}."
        )
    for i, (wanted, given) in enumerate(zip(types, given_types, strict=True)):
        if wanted is not given:
            raise invalid(
                f"Data type mismatch at component {i}: expected {dtypes.proto_name(wanted)} but "
                f"got {dtypes.proto_name(given)}."
            )
    for i, (shape, actual) in enumerate(zip(shapes_, given_shapes, strict=True)):
        if not shapes.is_compatible(shape, actual):
            raise invalid(
                f"Incompatible shapes at component {i}: expected {shapes.text(shape)} but got "
                f"{shapes.text(actual)}."
            )
