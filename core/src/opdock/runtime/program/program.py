"""`Program`: what a session or a control-flow node runs, step after step."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock.compiler.emit.schedule import Step
from opdock.compiler.pipeline import Compiled
from opdock.compiler.place.target import Target
from opdock.failures import failures
from opdock.runtime.cancellation import PostponedError
from opdock.runtime.handing import GoingOnError
from opdock.runtime.inspect.trace import active
from opdock.runtime.program.bind import Bound, Services, within
from opdock.runtime.program.claims import ClaimError
from opdock.runtime.program.executor import Executor, Observer
from opdock.runtime.program.line import Line
from opdock.runtime.program.parallel import run_parallel
from opdock.runtime.program.waiting import waiting_of
from opdock.runtime.recover.onward import Onward
from opdock.runtime.recover.rescue import Rescue

if TYPE_CHECKING:
    from opdock.runtime.recover.fallback import Fallback

__all__ = ["Program", "Run"]

_RAISED: Final = (Exception, SystemExit, PostponedError)
"""What a call may raise with which the step goes on elsewhere, or ends with an error of its own."""
Run = Callable[["Sequence[Any]"], "Sequence[Any]"]


class Program:
    """A bound program.

    Attributes:
        block: the IR it was made from, for `explain` and traces.
        schedule: the steps.
        plan: the memory plan.
        overlap: how its steps run on several threads, where that pays.
        once: what comes before the first of many turns; its results are further feeds.
        bound: kernels, constants and buffers.
        line: the steps as one function.
        steps_run: how often it ran.
        strayed: whether it has gone on with other shapes than the program said of values.
    """

    def __init__(self, compiled: Compiled, services: Services, fallback: Fallback) -> None:
        once = compiled.once
        self.once = None if once is None else Program(once, services, fallback)
        self.bound = bound = Bound(compiled, services)
        self.block, self.schedule = compiled.block, compiled.schedule
        self.plan, self.overlap = bound.compiled.plan, compiled.overlap
        self.steps_run = 0
        self.strayed = False
        self._onward = self._onward_of(compiled, services, fallback)
        self._executor = Executor(bound, Rescue(compiled, fallback, self._onward))
        self._waiting = waiting_of(
            self._executor, bound, services.resources.cancellation, self.overlap is not None
        )
        self.line = Line(bound, None if self._waiting is None else self._waiting.polite())
        self._busy = threading.Lock()
        self._function = self.line.function
        self._step = _quiet(self._function) if _computes(bound) else self._function
        if bound.limited:
            self._step = _limited(self._step, bound.limited)
        self._detour: Callable[[Sequence[Any]], Sequence[Any] | None] | None = None
        if self.overlap is not None and self._waiting is None:
            detour = functools.partial(
                run_parallel, self._executor, bound, self.overlap, services.helpers
            )
            self._detour = _limited(detour, bound.limited) if bound.limited else detour

    @property
    def parts(self) -> tuple[Program, ...]:
        """What is run one after the other: it alone."""
        return (self,)

    @property
    def shared_fetches(self) -> list[bool]:
        """For each fetch whether others may hold its buffer."""
        return [s in self.plan.shared for s in self.schedule.fetches]

    @property
    def kept_feeds(self) -> list[int]:
        """The positions of feeds that outlive the step."""
        return [i for i, s in enumerate(self.schedule.params) if s in self.plan.kept_params]

    def run(self, feeds: Sequence[Any], places: Sequence[Any] = ()) -> Sequence[Any]:
        """Runs one step and returns the raw fetched buffers.

        Args:
            feeds: in the order of the schedule's parameters.
            places: for each fetch an array of its type and shape, or None. A result may be written
                there: if it was, the array is the result.

        Raises:
            OpError: a kernel failed; the error names the op and the user's line.
        """
        # The planned buffers belong to one step at a time; a concurrent step allocates its own.
        if not self._busy.acquire(False):
            return self.interpret(feeds, planned=False)
        try:
            self.steps_run += 1
            if self._detour is not None:
                results = self._detour(feeds)
                if results is not None:
                    return results
            return self._step(*feeds, *places)  # type: ignore[no-any-return]
        except failures(*_RAISED) as e:
            return self._resume(e, feeds)
        finally:
            self._busy.release()

    def call(self, values: Sequence[Any], places: Sequence[Any] = ()) -> Sequence[Any]:
        """`run` within another program's step: traced if that is."""
        tracer = active()
        return self.run(values, places) if tracer is None else self.interpret(values, tracer)

    @contextlib.contextmanager
    def turns(self, kept: Container[int] = ()) -> Iterator[Run]:
        """`call` for the turns of one loop: what each begins with is done once.

        What a turn made is written over by the next one, where only that reads it.

        Args:
            kept: the positions of feeds of which somebody else may hold what a turn made.
        """
        run: Run = self.call
        holds = self._detour is None and active() is None and self._busy.acquire(blocking=False)
        try:
            # NumPy's warnings are off already: a program that is running runs this one.
            if holds:
                own = [i for i in self._renewed if i not in kept]
                run = self._renewing(own) if own else self._turn
            yield run if self.once is None else _following(self.once, run)
        finally:
            if holds:
                self._busy.release()

    def _turn(self, feeds: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._function(*feeds)  # type: ignore[no-any-return]
        except failures(*_RAISED) as e:
            return self._resume(e, feeds)

    @functools.cached_property
    def _renewed(self) -> list[int]:
        """The positions at which a turn may write what it makes over what the last one made."""
        fetches, over = self.schedule.fetches, self.plan.over
        return [
            i for i, (param, fetch) in enumerate(zip(self.schedule.params, fetches, strict=False))
            if over.get(param) == fetch and fetches.count(fetch) == 1
        ]  # fmt: skip

    def _renewing(self, positions: Sequence[int]) -> Run:
        """Turns that write over what the turn before has made at these positions."""
        made: Sequence[Any] = ()
        nowhere = [None] * len(self.schedule.fetches)

        def turn(feeds: Sequence[Any]) -> Sequence[Any]:
            nonlocal made
            places: list[Any] = []
            if made:
                places = nowhere.copy()
                for i in positions:
                    # The first values are somebody else's.
                    if feeds[i] is made[i]:
                        places[i] = made[i]
            try:
                made = self._function(*feeds, *places)
            except failures(*_RAISED) as e:
                # What stands in for a kernel may hand on what is not its own.
                made = ()
                return self._resume(e, feeds)
            return made

        return turn

    def interpret(
        self, feeds: Sequence[Any], observer: Observer | None = None, planned: bool = True
    ) -> Sequence[Any]:
        """Runs one step call by call: for observers, and beside a step that holds the buffers."""
        values = self.bound.initial(feeds)
        planned = planned and self._busy.acquire(blocking=False)
        count = len(self.schedule.steps)
        # Whoever observes wants the steps one by one.
        waiting = self._waiting if observer is None else None
        try:
            with _abandoning(values), within(self.bound.limited):
                walked = range(count if waiting is None else waiting.first)
                self._executor.walk(walked, values, observer, planned)
                if waiting is not None:
                    waiting.go_on(waiting.first, values)
        except ClaimError as e:
            return self._follow(e, {**values, **self.bound.initial(feeds)})
        finally:
            if planned:
                self._busy.release()
        return self.bound.fetched(values)

    def _resume(self, error: BaseException, feeds: Sequence[Any]) -> Sequence[Any]:
        """The results of a step of whose straight line a call raised.

        The call's results are what stands in for it, if anything does; nothing runs twice.
        """
        if isinstance(error, ClaimError) and error.values is not None:
            return self._follow(error, {**self.bound.initial(feeds), **error.values})
        halted = self.line.halted(error)
        if halted is None:
            raise error
        i, values = halted
        try:
            with _abandoning(values), within(self.bound.limited):
                self._go_on(error, i, values)
        except ClaimError as e:
            return self._follow(e, {**values, **self.bound.initial(feeds)})
        return self.bound.fetched(values)

    def _onward_of(
        self, compiled: Compiled, services: Services, fallback: Fallback
    ) -> Onward | None:
        """What goes on where a claimed shape is none: the graph has to be known for that."""
        if compiled.block.source is None:
            return None
        return Onward(compiled, fallback.rest, lambda c: Program(c, services, fallback))

    def _follow(self, error: ClaimError, values: dict[int, Any]) -> Sequence[Any]:
        """The results of a step in which a value has another shape than was claimed."""
        at, count = error.at, len(self.schedule.steps)
        if at is None:
            raise error.plain() from None
        ran = range(at + 1) if error.ran is None else error.ran
        with within(self.bound.limited):
            results = None if self._onward is None else self._onward(error, ran, values)
            if results is not None:
                self.strayed = True
                return results
            if error.whole is None:
                raise error.plain() from None
            values.update(zip(self.schedule.steps[at].outputs, error.whole, strict=True))
            try:
                self._executor.walk((i for i in range(count) if i not in ran), values)
            except ClaimError as e:
                e.ran = {*ran, *range((e.at or 0) + 1)}
                return self._follow(e, values)
            return self.bound.fetched(values)

    def _go_on(self, error: BaseException, i: int, values: dict[int, Any]) -> None:
        """Runs what is left of a step whose call `i` raised."""
        if isinstance(error, PostponedError):
            assert self._waiting is not None
            begun = error.handed if isinstance(error, GoingOnError) else None
            self._waiting.go_on(i, values, begun)
            return
        self._executor.take_over(error, i, values)
        if self._waiting is not None:
            self._waiting.go_on(i + 1, values)
        else:
            self._executor.walk(range(i + 1, len(self.schedule.steps)), values)


@contextlib.contextmanager
def _abandoning(values: Any) -> Iterator[None]:
    """If a step fails, what it holds is told: a lock would wait for its release for ever."""
    try:
        yield
    except BaseException:
        for value in list(values.values() if isinstance(values, dict) else values):
            if (abandoned := getattr(value, "abandoned", None)) is not None:
                abandoned()
        raise


def _following(once: Program, turn: Run) -> Run:
    """Turns that get the results of a program, which runs before the first, as further feeds."""
    fixed: Sequence[Any] | None = None

    def run(values: Sequence[Any]) -> Sequence[Any]:
        nonlocal fixed
        if fixed is None:
            fixed = once.call(values)
        return turn((*values, *fixed))

    return run


def _computes(bound: Bound) -> bool:
    """Whether NumPy may compute in a step: in copies it does not, and executables say so."""

    def may(step: Step) -> bool:
        if step.kind == "segment":
            return bool(getattr(step.node.attrs["executable"], "uses_numpy", True))
        return step.kind not in ("copy", "alias")

    return any(map(may, bound.schedule.steps))


def _limited(step: Callable[..., Any], targets: Sequence[Target]) -> Callable[..., Any]:
    """The step within what the session allows its devices."""

    def run(*feeds: Any) -> Any:
        with within(targets):
            return step(*feeds)

    return run


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Infinities and NaNs are results here, as in TF, not occasions for a warning."""
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return np.errstate(all="ignore")(function)

    # NumPy 1 keeps the state to go back to in the decorator, which threads would share.
    def step(*feeds: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*feeds)

    return step
