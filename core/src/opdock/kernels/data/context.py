"""What the iterators over a dataset share, and what one that ends leaves for the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from opdock.kernels.select.cells import UserCall, UserFunction

if TYPE_CHECKING:
    from opdock.kernels.data.base import Dataset, DatasetIterator, State

__all__ = ["Context", "Statistics"]


class Statistics(Protocol):
    """Who hears numbers by name."""

    def add(self, name: str, value: float) -> None:
        """One of many numbers, for a histogram."""

    def set(self, name: str, value: float) -> None:
        """A number in the place of the one before."""


class Left(Protocol):
    """What an iterator over a dataset leaves for the next one: seeds, a cache."""

    def save(self) -> State:
        """Where it stands."""

    def restore(self, state: State, /) -> None:
        """Goes where another one stood."""


class _Walk:
    """What all contexts of a walk have: functions, by which a part of a dataset that is walked
    through again draws further random numbers, and whatever stands still while all is saved.
    """

    def __init__(self) -> None:
        self._calls: dict[UserFunction, UserCall] = {}
        self._resumed: dict[str, Mapping[str, tuple[int, int]]] = {}  # of functions to come
        self.still: ExitStack | None = None

    def call(self, function: UserFunction, last: bool) -> UserCall:
        found = self._calls.get(function)
        if found is None:
            # Several threads may ask at once.
            found = self._calls.setdefault(function, function.instance(last))
            found.resume(self._resumed.pop(function.name, {}))
        return found

    def outside(self) -> str | None:
        return next((op for f in list(self._calls) if (op := f.outside()) is not None), None)

    def streams(self) -> State:
        found = {f.name: call.streams() for f, call in list(self._calls.items())}
        return {**self._resumed, **{name: places for name, places in found.items() if places}}

    def resume(self, streams: State) -> None:
        for name, places in streams.items():
            self._resumed[name] = {op: (int(key), int(at)) for op, (key, at) in places.items()}
        for function, call in list(self._calls.items()):
            call.resume(self._resumed.pop(function.name, {}))


class Context:
    """What the iterators that belong together share: functions, each with its own streams, seeds
    and caches. A new walk through a part of a dataset finds what the last one left.

    Attributes:
        in_order: whether elements come in one order, whatever is ready first.
        threads: how many at most a map has; None for as many as it asks for.
        statistics: hears of what happens, if anybody asked for it.
        rewrite: what becomes of a dataset that a function makes, if anybody asked for it.
        last: the dataset that nothing follows, at the end of a pipeline or of what a function made.
    """

    def __init__(self, last: Dataset | None = None) -> None:
        self._walk = _Walk()
        self._around: tuple[set[str], ...] = ()  # names of functions, of each context around
        self._left: dict[str, Left] = {}
        self._restored: dict[str, State] = {}  # of what nobody has left yet
        self._path: tuple[Any, ...] = ()
        self.in_order = True
        self.threads: int | None = None
        self.statistics: Statistics | None = None
        self.rewrite: Callable[[Dataset], Dataset] | None = None
        self.last = last

    def branch(self, *place: Any) -> Context:
        """The context of one of several inputs: the same dataset may be another one, too."""
        inner = Context()
        inner._walk, inner._around = self._walk, self._around
        inner._left, inner._restored = self._left, self._restored
        inner._path = (*self._path, *place)
        inner.in_order, inner.threads = self.in_order, self.threads
        inner.statistics, inner.rewrite = self.statistics, self.rewrite
        inner.last = self.last
        return inner

    def inside(self) -> Context:
        """The context of functions that make datasets: it knows which random streams are theirs."""
        inner = self.branch()
        inner._around = (*self._around, set())
        return inner

    def made(self, dataset: Dataset | None = None) -> Context:
        """The context of a dataset that a function made, which leaves nothing for others."""
        inner = self.branch()
        inner.last = dataset
        inner._left, inner._restored = {}, {}
        return inner

    def in_any_order(self) -> Context:
        """The context of iterators that hand out what is ready."""
        inner = self.branch()
        inner.in_order = False
        return inner

    def with_threads(self, threads: int) -> Context:
        """The context of iterators whose maps have so many threads at most."""
        inner = self.branch()
        inner.threads = threads
        return inner

    def with_statistics(self, statistics: Statistics) -> Context:
        """The context of iterators whose statistics somebody hears."""
        inner = self.branch()
        inner.statistics = statistics
        return inner

    def with_rewrites(self, rewrite: Callable[[Dataset], Dataset]) -> Context:
        """The context of iterators whose functions' datasets are rewritten."""
        inner = self.branch()
        inner.rewrite = rewrite
        return inner

    # ------------------------------------------------------------ what iterators share
    def call(self, function: UserFunction, last: bool = False) -> UserCall:
        """The one instance of a function; `last` says that it is called to clean up."""
        self._belong((function.name,))
        return self._walk.call(function, last)

    def outside(self) -> str | None:
        """An op type, of any function of the walk, whose state cannot be saved with it."""
        return self._walk.outside()

    def keep(self, dataset: Dataset, make: Callable[[], Any]) -> Any:
        """What a dataset leaves for its next iterator at this place, made when missing."""
        # The label is of this dataset alone among those that follow from each other.
        key = "/".join(map(str, (*self._path, dataset.label)))
        found = self._left.get(key)
        if found is None:
            found = self._left[key] = make()
            if key in self._restored:
                found.restore(self._restored.pop(key))
        return found

    # ------------------------------------------------------------ saving and restoring
    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """While a walk is saved: what its iterators `hold` is let go of at the end."""
        with ExitStack() as still:
            self._walk.still = still
            try:
                yield
            finally:
                self._walk.still = None

    def hold(self, rest: AbstractContextManager[Any]) -> None:
        """Has what works ahead rest until the whole walk is saved."""
        if self._walk.still is None:
            raise RuntimeError("an iterator is saved by itself")
        self._walk.still.enter_context(rest)

    def save(self, iterator: DatasetIterator) -> State:
        """Where an iterator over the dataset of this context stands, and what was left."""
        state = iterator.save()
        left = {key: found.save() for key, found in self._left.items()}
        return {"iterator": state, "left": {**self._restored, **left}}

    def restore(self, iterator: DatasetIterator, state: State) -> None:
        """Has an iterator, and what it finds of others, go to where others stood."""
        iterator.restore(state["iterator"])  # it may begin anew, and so use what was left
        self._restored.clear()
        self._restored.update(state["left"])
        for key, found in self._left.items():
            if key in self._restored:
                found.restore(self._restored.pop(key))

    def streams(self) -> State:
        """Where the random streams of functions stand that were asked for here or further inside,
        by their names."""
        found = self._walk.streams()
        if self._around:
            found = {name: places for name, places in found.items() if name in self._around[-1]}
        return found

    def resume(self, streams: State) -> None:
        """Has random streams go on where others stood, those of functions to come as well."""
        self._belong(streams)
        self._walk.resume(streams)

    def _belong(self, names: Iterable[str]) -> None:
        for around in self._around:
            around.update(names)
