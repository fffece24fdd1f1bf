"""Partial runs: one step taken in several calls, each feeding and fetching a part of it.

Each call computes what its fetches need and has not been computed yet. Values that later calls
will need are kept with the step and fed to them, so nothing runs twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.fetch import FetchPlan, announced_feeds, feed_items

if TYPE_CHECKING:
    from opdock.runtime.session import BaseSession


class PartialRun:
    """The state of one step.

    Args:
        session: runs the parts.
        fetches: everything that the step may fetch.
        feeds: every tensor that the step may be fed.

    Raises:
        ValueError, TypeError: a fetch or feed names nothing.
        InvalidArgumentError: there is nothing to fetch.
    """

    def __init__(self, session: BaseSession, fetches: Any, feeds: Any) -> None:
        self._session = session
        graph = session.graph
        plan = FetchPlan(graph, list(fetches) if isinstance(fetches, (list, tuple)) else [fetches])
        self._open: set[Any] = {*plan.tensors, *plan.targets}
        if not self._open:
            raise errors.InvalidArgumentError(
                None, None, "Must specify at least one target to fetch or execute."
            )
        self._fetches = frozenset(self._open)
        self._unfed = announced_feeds(graph, feeds or ())
        self._feeds = frozenset(self._unfed)
        self._values: dict[Tensor, Any] = {}
        self._done: set[Operation] = set()
        self._whole = _ancestors([*plan.targets, *(t.op for t in plan.tensors)], self._unfed)

    @property
    def finished(self) -> bool:
        """Whether everything has been fed and fetched."""
        return not self._open and not self._unfed

    def run(self, fetches: Any, feed_dict: Any) -> Any:
        """Takes the feeds and computes the fetches.

        Raises:
            InvalidArgumentError: a feed or fetch was not announced or had its turn already, or a
                fetch depends on something that has not been fed.
            UnimplementedError: an operation with effects would have to run a second time.
        """
        graph = self._session.graph
        for tensor, value in feed_items(graph, feed_dict or {}):
            if tensor not in self._unfed:
                raise _invalid(tensor.op, f"The feed {tensor.name} {_why(tensor in self._feeds)}")
            self._unfed.discard(tensor)
            self._values[tensor] = value
        plan = FetchPlan(graph, fetches)
        wanted: set[Any] = {*plan.tensors, *plan.targets}
        for item in wanted - self._open:
            why = _why(item in self._fetches, "fetched")
            raise _invalid(getattr(item, "op", item), f"The fetch {item.name} {why}")
        self._open -= wanted
        return plan.restore(self._compute(plan))

    def _compute(self, plan: FetchPlan) -> list[Any]:
        fresh = [t for t in plan.tensors if t not in self._values]
        targets = [op for op in plan.targets if op not in self._done]
        needed = _ancestors([*targets, *(t.op for t in fresh)], set(self._values))
        self._check(needed)
        later = self._whole - needed - self._done
        used = {t for op in later for t in op.inputs} | (self._open & set(self._tensors(needed)))
        kept = [
            t
            for t in self._tensors(needed)
            if t in used and t not in self._values and t.dtype._is_data
        ]
        order = list(dict.fromkeys([*fresh, *kept]))
        if order or targets:
            inputs = {t for op in needed for t in op.inputs}
            feeds = {t: v for t, v in self._values.items() if t in inputs}
            results = self._session.run([order, targets], feeds)[0]
            self._values.update(zip(order, results, strict=True))
        self._done |= needed
        return [self._values[t] for t in plan.tensors]

    def _tensors(self, ops: Iterable[Operation]) -> list[Tensor]:
        return [t for op in sorted(ops, key=lambda o: o._id) for t in op.outputs]

    def _check(self, needed: set[Operation]) -> None:
        for op in needed:
            for tensor in op.outputs:
                if tensor in self._unfed:
                    raise _invalid(
                        op, f"The fetches depend on {tensor.name}, which has not been fed yet."
                    )
            if op in self._done and not op.spec.traits.holds and _has_effect(op):
                raise errors.UnimplementedError(
                    None, op,
                    f"Operation '{op.name}' ({op.type}) ran in an earlier part of this step. A "
                    "later part needs it again, through a control dependency or a reference that "
                    "cannot be kept between the parts, and it has effects that must not happen "
                    "twice.",
                )  # fmt: skip


def _ancestors(ends: list[Operation], known: set[Tensor]) -> set[Operation]:
    """Everything that must run for `ends`, given the values of `known`."""
    seen: set[Operation] = set()
    stack = list(ends)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        stack += [t.op for t in op.inputs if t not in known]
        stack += op.control_inputs
    return seen


def _has_effect(op: Operation) -> bool:
    if not op.inputs and op.outputs and not any(t.dtype._is_data for t in op.outputs):
        return False  # it finds what it made before: a queue, a table, an iterator
    return bool(op.spec.stateful) or any(t.dtype._is_ref_dtype for t in op.inputs)


def _why(announced: bool, what: str = "fed") -> str:
    return f"has already been {what}." if announced else "was not specified in partial_run_setup."


def _invalid(op: Any, text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, op, text)
