"""How often a loop turns, where that is known before anything is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.devices.segment import Segment, SegmentNode

__all__ = ["is_known", "turns"]

_MOST_TURNS: Final = 10_000
"""Loops with more turns are not counted before they run."""
Call = Callable[..., Any]
Values = dict[int, Any]
"""Arguments or results of a body by their indices."""


def turns(
    xp: Any, condition: Segment, body: Segment, inputs: Sequence[Any], limit: int | None
) -> tuple[int, Values] | None:
    """How many turns a loop takes, and the last values of its counters; None if unknown.

    Counters are what starts from known numbers and follows from nothing but counters. If the
    condition depends on them alone, they are computed before anything is traced: on the host, where
    they are whole numbers and truth values, which are the same everywhere.
    """
    needed = {i for i, x in enumerate(inputs) if is_known(xp, x) and x.ndim == 0}
    while dropped := {i for i in needed if not _follows(_Part(body, {i}), needed)}:
        needed -= dropped
    asked, turned = _Part(condition, {0}), _Part(body, needed)
    if not _follows(asked, needed):
        return None
    values = {i: inputs[i] for i in needed}
    most = _MOST_TURNS if limit is None else min(limit, _MOST_TURNS) + 1
    if asked.goes_to_host() and turned.goes_to_host():
        try:
            with np.errstate(all="ignore"):
                count = _count(asked, turned, asked.downloaded(values), limit, most)
        except errors.OpError:
            pass  # the device's kernels say what is wrong, or compute it
        else:
            return None if count is None else (count[0], turned.uploaded(count[1]))
    for part in (asked, turned):
        part.stays()
    return _count(asked, turned, values, limit, most)


def is_known(xp: Any, value: Any) -> bool:
    """Whether an array is there while others are traced."""
    return hasattr(value, "ndim") and not xp.is_traced(value)


class _Part:
    """Some outputs of a body, from the arguments on which they depend.

    Attributes:
        body: the body.
        params: the slots of these arguments, by index.
        outputs: the slots of the outputs, by index.
        nodes: what computes them.
    """

    def __init__(self, body: Segment, outputs: set[int]) -> None:
        self.body = body
        self.outputs = {i: body.outputs[i].slot for i in outputs}
        slots, nodes = set(self.outputs.values()), []
        for node in reversed(body.nodes):
            if slots.intersection(node.outputs):
                slots.update(node.inputs)
                nodes.append(node)
        self.nodes = nodes[::-1]
        self.params = {i: slot for i, slot in enumerate(body.params) if slot in slots}
        self._constants = {s: value for s, value in body.constants.items() if s in slots}
        self._calls: Mapping[SegmentNode, Any] = {}

    def stays(self) -> None:
        """Has the device compute it."""
        self._constants = {s: self.body.constants[s] for s in self._constants}
        self._calls = {node: node.call for node in self.nodes}

    def goes_to_host(self) -> bool:
        """Has the host compute it, if it can do so exactly."""
        given = [v for v in self.body.inputs if v.slot in self.params.values()]
        made = [result for node in self.nodes for result in node.results]
        if not all(v.dtype.is_integer or v.dtype.is_bool for v in (*given, *made)):
            return False
        self._constants = self.downloaded(self._constants)
        if any(x.dtype.kind not in "biu" for x in self._constants.values()):
            return False
        self._calls = {n: n.host() if n.host is not None else None for n in self.nodes}
        return None not in self._calls.values()

    def downloaded(self, values: Mapping[int, Any]) -> Values:
        """Values in host memory."""
        fetch = self.body.device.download
        return {i: x if isinstance(x, np.ndarray) else fetch(x) for i, x in values.items()}

    def uploaded(self, values: Values) -> Values:
        """Values in the device's memory."""
        return {i: self.body.device.upload(np.asarray(x)) for i, x in values.items()}

    def __call__(self, values: Values) -> Values:
        """The outputs."""
        held = {**self._constants, **{slot: values[i] for i, slot in self.params.items()}}
        for node in self.nodes:
            out = self._calls[node](*(held[slot] for slot in node.inputs))
            held.update(zip(node.outputs, (out,) if len(node.outputs) == 1 else out, strict=True))
        return {i: held[slot] for i, slot in self.outputs.items()}


def _follows(part: _Part, needed: set[int]) -> bool:
    """Whether a part follows from some arguments, without control flow of its own."""
    return part.params.keys() <= needed and all(node.call is not None for node in part.nodes)


def _count(
    asked: _Part, turned: _Part, values: Values, limit: int | None, most: int
) -> tuple[int, Values] | None:
    """The turns up to the first of which the condition is false, and the values by then."""
    for turn in range(most):
        if turn == limit or not bool(asked(values)[0]):
            return turn, values
        values = turned(values)
    return None
