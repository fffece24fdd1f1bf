"""`Session.bisect`: the first op at which two devices disagree.

The graph runs once on the first device, whose values count as right. Then every op runs by itself
on the second device, with the first one's inputs: an op that differs there is wrong by itself. When
none is, the whole graph runs on the second device, and the first op whose value has drifted too far
is the answer. The session's own variables are copied for this and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opdock import errors
from opdock.compiler.clean.prune import prune
from opdock.compiler.ir.state import cell_inputs
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Control
from opdock.graph.serial.graphdef import build_node, to_graph_def
from opdock.runtime.fetch import FetchPlan, feed_array, feed_items
from opdock.runtime.inspect.cases import Case, device_scope, difference
from opdock.runtime.inspect.walk import (
    Walk,
    cell_key,
    largest,
    order_of,
    pairs,
    variable_of,
)

if TYPE_CHECKING:
    from opdock.runtime.session import BaseSession

__all__ = ["Bisection", "Divergence", "bisect"]

Array = npt.NDArray[Any]


@dataclass
class Divergence:
    """An op whose results differ between the two devices.

    Attributes:
        op, type: its name and op type.
        line: the user's line that made it, "file:line".
        alone: whether it is wrong by itself; otherwise the error came with its inputs.
        inputs: what the first device gave it; variables as their values.
        expected: its results on the first device, variables that it changed at the end.
        got: the same on the second device.
        error: what differs, in words.
        largest: the largest absolute and relative difference over all results.
        path: the file of the replayable case, or None.
    """

    op: str
    type: str
    line: str
    alone: bool
    inputs: list[Array]
    expected: list[Array]
    got: list[Array]
    error: str
    largest: tuple[float, float]
    path: Path | None = None

    def __str__(self) -> str:
        how = "is wrong by itself" if self.alone else "has drifted too far, though right by itself"
        at = f", defined at {self.line}" if self.line else ""
        absolute, relative = self.largest
        lines = [
            f"{self.op} ({self.type}{at}) {how}",
            f"  {self.error}",
            f"  largest difference: {absolute:.3g} absolute, {relative:.3g} relative",
            f"  inputs: {', '.join(_kind(v) for v in self.inputs) or 'none'}",
        ]
        if self.path is not None:
            lines.append(f"  saved: {self.path} (opdock replay-case {self.path} --device ...)")
        return "\n".join(lines)


@dataclass
class Bisection:
    """What `Session.bisect` found; true when the devices diverge.

    Attributes:
        first: the first op that diverges, or None.
        device_a, device_b: the devices that were compared.
        checked: how many ops ran by themselves on the second device.
        skipped: ops that could not, with the reasons.
    """

    device_a: str
    device_b: str
    first: Divergence | None = None
    checked: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.first is not None

    def __str__(self) -> str:
        lines = [f"{self.device_b} against {self.device_a}: {self.checked} ops compared one by one"]
        lines.append("no divergence" if self.first is None else str(self.first))
        lines += [f"not compared by itself: {op}: {why}" for op, why in self.skipped.items()]
        return "\n".join(lines)


def bisect(
    session: BaseSession,
    fetches: Any,
    device_a: str,
    device_b: str,
    feed_dict: Any = None,
    save: str | Path | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Bisection:
    """See `Session.bisect`."""
    scopes = device_scope(device_a), device_scope(device_b)
    plan = FetchPlan(session.graph, fetches)
    feeds = {t: feed_array(t, v) for t, v in feed_items(session.graph, feed_dict or {})}
    state = session._engine.variables()
    order = order_of(plan, feeds)
    truth = Walk(scopes[0], order, plan, feeds, state)
    truth.run()
    found = Bisection(*scopes)
    for op in order:
        case = _case(op, truth, found)
        if case is None:
            continue
        case.rtol, case.atol = rtol, atol
        values, error = _alone(case, scopes[1])
        found.checked += 1
        if error:
            case.about |= {"truth": scopes[0], "wrong": scopes[1], "error": error}
            path = case.save(save if save is not None else _file_name(op))
            found.first = _divergence(op, truth, case, values, error, path)
            return found
    found.first = _drift(scopes[1], order, plan, feeds, state, truth, (rtol, atol))
    return found


# ---------------------------------------------------------------- one op by itself
def _is_drawn(op: Operation) -> bool:
    """Whether the op draws without a seed, so that no two runs are alike."""
    seeds = [op.attrs.get(name) for name in ("seed", "seed2")]
    return bool(op.spec.stateful) and seeds == [0, 0]


def _case(op: Operation, truth: Walk, found: Bisection) -> Case | None:
    """The op alone, with the first device's inputs and results; None when it need not or cannot."""
    if op.spec.traits.builtin and op.spec.traits.control is Control.NONE:
        return None
    why = _obstacle(op, truth)
    if why:
        found.skipped[op.name] = why
        return None
    return _Single(op, truth).case()


def _obstacle(op: Operation, truth: Walk) -> str:
    if _is_drawn(op):
        return "it draws random numbers without a seed"
    for i, tensor in enumerate(op.inputs):
        if tensor.dtype._is_data:
            if tensor not in truth.values:
                return f"its input {tensor.name} cannot be kept"
        elif tensor.dtype.name == "variant" or i not in truth.taken.get(op, {}):
            return f"its input {tensor.name} is neither a value nor a variable"
    if not any(t.dtype._is_data for t in op.outputs) and not truth.left.get(op):
        return "it has no result to compare"
    if any(t.dtype.name in ("resource", "variant") for t in op.outputs):
        return "its result is a handle"
    return ""


class _Single:
    """A graph of one op: placeholders for values, variables with a placeholder to start from."""

    def __init__(self, op: Operation, truth: Walk) -> None:
        self._op, self._truth = op, truth
        self._graph = Graph()
        self._feeds: dict[str, Array] = {}
        self._init: list[str] = []
        self._state: dict[tuple[str, str], tuple[str, Array]] = {}
        self._made: dict[tuple[str, str], Tensor] = {}

    def case(self) -> Case:
        """The case."""
        op, truth = self._op, self._truth
        refs = self._ref_inputs()
        inputs = [
            self._value(i, truth.values[t]) if t.dtype._is_data
            else self._variable(i, t) if i in refs or t.dtype.name == "resource"
            else self._value(i, truth.taken[op][i])
            for i, t in enumerate(op.inputs)
        ]  # fmt: skip
        attrs = {k: v for k, v in op.attrs.items() if k != "_class"}
        build_node(self._graph, op.spec, op.name, inputs, attrs)
        kept = [t for t in op.outputs if t.dtype._is_data]
        return Case(
            to_graph_def(self._graph), self._feeds, [t.name for t in kept],
            [truth.values[t] for t in kept], self._init, [n for n, _ in self._state.values()],
            [v for _, v in self._state.values()],
            about={"op": op.name, "type": op.type, "line": op.user_line},
        )  # fmt: skip

    def _ref_inputs(self) -> frozenset[int]:
        """The inputs that take a variable itself rather than its value."""
        fed = [(t, t.dtype.base_dtype, t.raw_shape) for t in self._op.inputs if t.dtype._is_data]
        return cell_inputs(prune([], [self._op], fed).nodes[-1])

    def _add(self, kind: str, name: str, inputs: list[Tensor], **attrs: Any) -> Operation:
        return build_node(self._graph, registry.get(kind), name, inputs, attrs)

    def _value(self, i: int, value: Any, name: str = "input") -> Tensor:
        dtype = self._op.inputs[i].dtype.base_dtype
        made = self._add("Placeholder", f"{name}_{i}", [], dtype=dtype, shape=np.shape(value))
        self._feeds[f"{name}_{i}:0"] = np.asarray(value)
        return made.outputs[0]

    def _variable(self, i: int, tensor: Tensor) -> Tensor:
        source = variable_of(tensor)
        assert source is not None
        key = cell_key(source)
        if key in self._made:
            return self._made[key]
        attrs = {k: source.attrs[k] for k in ("dtype", "shape") if k in source.attrs}
        held = self._add(source.type, f"variable_{i}", [], **attrs).outputs[0]
        self._made[key] = held
        resource = tensor.dtype.name == "resource"
        before, after = (kept[self._op][i] for kept in (self._truth.taken, self._truth.left))
        if before is not None:
            kind = "AssignVariableOp" if resource else "Assign"
            start = self._start(i, before, source.attrs["dtype"])
            extra = {} if resource else {"validate_shape": False}
            self._init.append(self._add(kind, f"start_{i}", [held, start], **extra).name)
        if after is not None:
            read = held
            if resource:
                read = self._add(
                    "ReadVariableOp", f"read_{i}", [held], dtype=source.attrs["dtype"]
                ).outputs[0]  # fmt: skip
            self._state[key] = (read.name, after)
        return held

    def _start(self, i: int, value: Array, dtype: DType) -> Tensor:
        made = self._add("Placeholder", f"state_{i}", [], dtype=dtype.base_dtype, shape=value.shape)
        self._feeds[f"state_{i}:0"] = value
        return made.outputs[0]


def _alone(case: Case, scope: str) -> tuple[list[Array], str]:
    """The op's results on the second device, and what is wrong with them."""
    try:
        values = case.run(scope)
    except errors.OpError as e:
        return [], f"{type(e).__name__}: {e.message}"
    return values, case.difference(values)


# ---------------------------------------------------------------- what was found
def _drift(
    scope: str,
    order: Sequence[Operation],
    plan: FetchPlan,
    feeds: dict[Tensor, Array],
    state: dict[tuple[str, str], Array],
    truth: Walk,
    slack: tuple[float | None, float | None],
) -> Divergence | None:
    """The first op whose value differs when everything runs on the second device."""
    drawn = {
        t: truth.values[t] for op in order if _is_drawn(op) for t in op.outputs if t.dtype._is_data
    }
    walk = Walk(scope, order, plan, {**feeds, **drawn}, state)
    walk.run()
    for op, wanted, got, name in pairs(order, truth, walk):
        error = difference(got, wanted, name, *slack)
        if error:
            inputs = [truth.values[t] for t in op.inputs if t in truth.values]
            return Divergence(
                op.name, op.type, op.user_line, False, inputs, [wanted], [got], error,
                largest([wanted], [got]),
            )  # fmt: skip
    return None


def _divergence(
    op: Operation, truth: Walk, case: Case, values: list[Array], error: str, path: Path
) -> Divergence:
    wanted = [*case.expected, *case.expected_state]
    return Divergence(
        op.name, op.type, op.user_line, True, list(case.feeds.values()), wanted, values, error,
        largest(wanted, values), path,
    )  # fmt: skip


def _kind(value: Array) -> str:
    return f"{value.dtype.name}{list(value.shape)}"


def _file_name(op: Operation) -> str:
    return f"opdock-case-{re.sub(r'[^A-Za-z0-9_.-]+', '-', op.name)}.npz"
