"""The executor: steps one by one, wherever the straight line does not serve.

It runs what is traced, bisected or recorded, what several threads share, and what is left of a step
after one of its kernels gave up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from opdock.compiler.emit.schedule import Step
from opdock.failures import failures
from opdock.runtime.program.bind import Bound
from opdock.runtime.recover.located import miscounted

__all__ = ["Executor", "Observer"]

Instead = Callable[[BaseException, int, "list[Any]"], "Sequence[Any]"]
"""What a step that raised gives after all: (error, index, inputs) to results; or it raises."""


class Observer(Protocol):
    """Sees every step."""

    def before(self, step: Step, inputs: Sequence[Any]) -> None:
        """A step is about to begin."""

    def after(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """A step is over; times are those of `time.perf_counter`."""


class Executor:
    """Runs the steps of a bound schedule on values by slot."""

    __slots__ = ("_bound", "_instead")

    def __init__(self, bound: Bound, instead: Instead) -> None:
        self._bound = bound
        self._instead = instead

    def walk(
        self,
        indices: Iterable[int],
        values: dict[int, Any],
        observer: Observer | None = None,
        planned: bool = True,
    ) -> None:
        """Runs some steps in turn and adds their results to the values.

        Args:
            indices: of the steps.
            values: what they need.
            observer: sees them; devices finish each step before it is over.
            planned: whether results go into the planned buffers.

        Raises:
            OpError: a step failed, and nothing stands in for it.
        """
        steps = self._bound.schedule.steps
        for i in indices:
            step = steps[i]
            if observer is None:
                results = self.one(i, values, planned)
            else:
                observer.before(step, [values[s] for s in step.inputs])
                begin = time.perf_counter()
                results = self.one(i, values, planned)
                if step.node.target is not None and not step.node.target.is_host:
                    step.node.target.device.synchronize()
                observer.after(step, begin, time.perf_counter(), results)
            values.update(zip(step.outputs, results, strict=False))
            del results
            # An update may write where nobody holds what was read.
            for slot in step.frees:
                values.pop(slot, None)

    def one(self, i: int, values: dict[int, Any], planned: bool = True) -> Sequence[Any]:
        """The results of a step; see `walk`."""
        step = self._bound.schedule.steps[i]
        inputs = [values[s] for s in step.inputs]
        try:
            return self._call(i, step, inputs, planned)
        except failures() as e:
            return self._instead(e, i, inputs)

    def take_over(self, error: BaseException, i: int, values: dict[int, Any]) -> None:
        """Adds what stands in for the results of a step that raised elsewhere; see `walk`."""
        step = self._bound.schedule.steps[i]
        results = self._instead(error, i, [values[s] for s in step.inputs])
        values.update(zip(step.outputs, results, strict=False))

    def _call(self, i: int, step: Step, inputs: list[Any], planned: bool) -> Sequence[Any]:
        call, kernel = self._bound.calls[i], step.node.kernel
        with np.errstate(all="ignore"):
            if step.kind == "kernel" and kernel is not None and kernel.out:
                result = call(*inputs, self._bound.out(step) if planned else None)
            else:
                result = call(*inputs)
        return self.results(step, result)

    @staticmethod
    def results(step: Step, result: Any) -> Sequence[Any]:
        """What a call returned, as one value for each of the step's outputs."""
        if len(step.outputs) == 1:
            return (result,)
        if not step.outputs:
            return ()
        results = tuple(result) if isinstance(result, Iterable) else (result,)
        if step.kind == "kernel" and len(results) != len(step.outputs):
            raise miscounted(step.node, f"got {len(results)}")
        return results
