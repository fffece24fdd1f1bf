"""Functions that kernels call when they like: the maps, filters and generators of datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.compiler.pipeline import Compiled
from opdock.graph.control.files import reads_files
from opdock.graph.control.outside import state_outside
from opdock.graph.control.rows import by_rows
from opdock.kernels.select.cells import UserCall
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.cancellation import Cancellation, check, ends_of
from opdock.runtime.program.program import Program
from opdock.runtime.recover.lost import runs_again

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.runtime.resources import ResourceManager
    from opdock.shapes import Shape

__all__ = ["LazyFunction"]

Compiles = Callable[["FuncGraph", "Sequence[Shape]"], Compiled]
Binds = Callable[[], "tuple[ResourceManager, Callable[[Compiled], Program]]"]
Misfits = tuple[tuple[int, tuple[int, ...]], ...]
_KEPT: Final = 8  # programs of one function, whose arguments have one shape as a rule


class _Own:
    """A program whose results nobody else holds: neither who gave an argument nor the program.

    Args:
        compiled: what the program is of.
        program: the program.
    """

    def __init__(self, compiled: Compiled, program: Program) -> None:
        self.compiled = compiled
        self._run = program.call
        shared = program.plan.shared
        self._copied = [i for i, slot in enumerate(program.schedule.fetches) if slot in shared]

    def call(self, values: Sequence[Any], places: Sequence[Any]) -> Sequence[Any]:
        """One call."""
        results = self._run(values, places)
        if self._copied:
            results = list(results)
            for i in self._copied:
                if isinstance(results[i], np.ndarray):
                    results[i] = results[i].copy()
        return results


class _Instance:
    """A function with its random streams.

    Args:
        function: which.
        resources: has the streams.
        bind: makes programs that share them.
        session: ends whoever calls it for ever; None where it is called to clean up.
    """

    def __init__(
        self, function: LazyFunction, resources: ResourceManager,
        bind: Callable[[Compiled], Program], session: Cancellation | None,
    ) -> None:  # fmt: skip
        self._function, self._resources, self._bind = function, resources, bind
        self._session = session
        # A program has its own buffers, so each of several threads takes one for its call.
        self._idle: dict[Misfits, list[_Own]] = {(): []}
        self._expected, self._count = function.expected, function.count

    def __call__(self, values: Sequence[Any], places: Sequence[Any] = (), /) -> Sequence[Any]:
        """See `opdock.kernels.select.cells.UserCall`."""
        if self._session is not None:
            check(ends_of(self._session))
        misfits = self._misfits(values)
        idle = self._idle[()] if not misfits else self._idle.setdefault(misfits, [])
        while True:
            try:
                own = idle.pop()
            except IndexError:
                own = self._new(values, misfits)
            try:
                results = own.call(values, () if misfits else places)
            except errors.OpError as e:
                if not runs_again(e):
                    idle.append(own)
                    raise
                # A device was lost or full: who called has the element no second time.
                self._function.give_up(own.compiled, misfits)
            except BaseException:
                idle.append(own)
                raise
            else:
                idle.append(own)
                return results

    def _misfits(self, values: Sequence[Any]) -> Misfits:
        """The arguments whose shapes are not what the program says, and those shapes."""
        if len(values) != self._count:
            self._function.check(values)
        found: Misfits = ()
        for i, shape in self._expected:
            if values[i].shape != shape:
                found = (*found, (i, tuple(values[i].shape)))
        return found

    def _new(self, values: Sequence[Any], misfits: Misfits) -> _Own:
        """A program that nobody else runs."""
        self._function.check(values)  # elements of one dataset are alike
        compiled = self._function.program(misfits)
        return _Own(compiled, self._bind(compiled))

    def streams(self) -> dict[str, tuple[int, int]]:
        """See `opdock.kernels.select.cells.UserCall`."""
        return {name: stream.place for name, stream in self._resources.streams().items()}

    def resume(self, streams: Mapping[str, tuple[int, int]], /) -> None:
        """See `opdock.kernels.select.cells.UserCall`."""
        for name, place in streams.items():
            self._resources.node_state(name, lambda: RandomStream(0, 0)).place = place


class LazyFunction:
    """A function that is compiled once, when it is called first.

    Args:
        function: takes and gives host arrays.
        compiles: the function, for arguments of some shapes, as the compiler leaves it.
        binds: random streams at their beginning, and what makes programs that share them.
        session: ends whoever calls the function for ever.
    """

    def __init__(
        self, function: FuncGraph, compiles: Compiles, binds: Binds, session: Cancellation
    ) -> None:
        self._function = function
        self._compiles = compiles
        self._binds = binds
        self._session = session
        self._compiled: dict[Misfits, Compiled] = {}
        self._rows: LazyFunction | None = None
        self._has_rows = True
        # Reentrant: the collector may run inside, and a finalizer that it calls may come here.
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """See `opdock.kernels.select.cells.UserFunction`."""
        return self._function.func_name

    def instance(self, last: bool = False) -> UserCall:
        """See `opdock.kernels.select.cells.UserFunction`."""
        resources, bind = self._binds()
        return _Instance(self, resources, bind, None if last else self._session)

    def check(self, values: Sequence[Any]) -> None:
        """Checks the arguments, as a graph of a file may call the function with others.

        Raises:
            InvalidArgumentError: their number or a type differs.
        """
        wanted = [t.dtype.base_dtype for t in self._function.inputs]
        given = [
            dtypes.as_dtype(v.dtype)
            if isinstance(v, np.ndarray) and dtype not in (dtypes.variant, dtypes.resource)
            else dtype
            for v, dtype in zip(values, wanted, strict=False)
        ]
        if len(values) != len(wanted) or given != wanted:
            raise errors.InvalidArgumentError(
                None, None,
                f"Function '{self._function.func_name}' takes {len(wanted)} arguments, "
                f"{[t.name for t in wanted]}, but {len(values)} are given: "
                f"{[t.name for t in given]}",
            )  # fmt: skip

    @property
    def count(self) -> int:
        """The number of its arguments."""
        return len(self._function.inputs)

    @property
    def expected(self) -> list[tuple[int, tuple[int, ...]]]:
        """The arguments of one shape only, as the program says, and that shape.

        It may say what is not so, of a `py_func` for example.
        """
        found = []
        for i, tensor in enumerate(self._function.inputs):
            shape = tensor.raw_shape
            if tensor.dtype._is_data and shape is not None and shapes.is_fully_defined(shape):
                found.append((i, tuple(n or 0 for n in shape)))
        return found

    def program(self, misfits: Misfits = ()) -> Compiled:
        """The function, compiled.

        Args:
            misfits: arguments whose shapes are not what the program says.
        """
        with self._lock:
            found = self._compiled.get(misfits)
            if found is None:
                others = dict(misfits)
                given = [others.get(i, t.raw_shape) for i, t in enumerate(self._function.inputs)]
                found = self._compiles(self._function, given)
                if len(self._compiled) < _KEPT:
                    self._compiled[misfits] = found
            return found

    def give_up(self, compiled: Compiled, misfits: Misfits = ()) -> None:
        """Has the function be compiled anew for the next program, unless it has been since."""
        with self._lock:
            if self._compiled.get(misfits) is compiled:
                del self._compiled[misfits]

    def by_rows(self) -> LazyFunction | None:
        """See `opdock.kernels.select.cells.UserFunction`."""
        with self._lock:
            if self._rows is None and self._has_rows:
                function = by_rows(self._function)
                self._has_rows = function is not None
                if function is not None:
                    self._rows = LazyFunction(function, self._compiles, self._binds, self._session)
            return self._rows

    def reads_files(self) -> bool:
        """See `opdock.kernels.select.cells.UserFunction`."""
        return reads_files(self._function)

    @property
    def stateful(self) -> bool:
        """See `opdock.kernels.select.cells.UserFunction`."""
        return self._function.stateful

    def outside(self) -> str | None:
        """See `opdock.kernels.select.cells.UserFunction`."""
        return state_outside(self._function)
