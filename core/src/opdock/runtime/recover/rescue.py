"""Rescue: what a step that raised gives after all, or what the caller is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.compiler.pipeline import Compiled
from opdock.runtime.program.claims import ClaimError
from opdock.runtime.recover.located import as_op_error
from opdock.runtime.recover.lost import RestartError, has_effect

if TYPE_CHECKING:
    from opdock.runtime.recover.fallback import Fallback
    from opdock.runtime.recover.onward import Onward

__all__ = ["Rescue"]

_DECLINES = (errors.UnimplementedError, errors.ResourceExhaustedError)
_MAY_MOVE = ("kernel", "segment")
_ELSEWHERE = (errors.UnavailableError, *_DECLINES)


class Rescue:
    """Decides for one program what becomes of a step that raised."""

    __slots__ = ("_fallback", "_nodes", "_onward", "_steps")

    def __init__(
        self, compiled: Compiled, fallback: Fallback, onward: Onward | None = None
    ) -> None:
        self._onward = onward
        self._nodes = compiled.block.nodes
        self._steps = compiled.schedule.steps
        self._fallback = fallback

    def __call__(self, error: BaseException, i: int, inputs: list[Any]) -> Sequence[Any]:
        """Another kernel's results for a step that declined.

        Raises:
            ClaimError: what is left has to be compiled for other shapes.
            RestartError: other placement is what may help.
            OpError: nothing helps.
            SystemExit: the user's own code, which the step runs, ends the program.
        """
        step = self._steps[i]
        users = step.node.traits.foreign or step.kind == "control"
        if isinstance(error, SystemExit) and users:
            raise error  # the program's own wish to end, not a plugin's
        if isinstance(error, ClaimError):
            return self._held(error, i)
        found = as_op_error(error, step.node)
        if isinstance(found, _ELSEWHERE):
            self._restart(found, i, error)
        # A user's function that raises has failed, not declined: it must not run a second time.
        if isinstance(found, _DECLINES) and step.kind in _MAY_MOVE and not step.node.traits.foreign:
            try:
                results = self._fallback(step.node, inputs, found)
            except errors.OpError as e:
                self._restart(e, i, e)
                raise
            if results is not None:
                return results
        raise found from (None if found is error else error)

    def _held(self, error: ClaimError, i: int) -> Sequence[Any]:
        """What stands for results of other shapes than were claimed, where nothing else helps."""
        if error.loose:
            self._fallback.loosen(error.loose)
        goes_on = self._onward is not None and self._onward.possible
        if error.whole is not None and not goes_on:
            return error.whole
        located = as_op_error(error, self._steps[i].node)
        assert isinstance(located, ClaimError)
        if not goes_on:
            raise located.plain() from None
        located.results, located.whole, located.at = error.results, error.whole, i
        located.loose = error.loose
        raise located

    def _restart(self, found: errors.OpError, i: int, error: BaseException) -> None:
        """Raises a `RestartError` when other placement is what may help."""
        step, losses = self._steps[i], self._fallback.losses
        restart = found if isinstance(found, RestartError) else losses.meet(step.node, found)
        restart = restart or losses.not_taken(step.node, self._nodes, found)
        if restart is not None:
            done = self._steps[: i + (step.kind == "control")]
            restart.again = restart.again and not any(map(has_effect, done))
            raise restart from (None if restart is error else error)
