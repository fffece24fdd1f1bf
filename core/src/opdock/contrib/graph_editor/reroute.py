"""Changes whose outputs operations take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from opdock.contrib.graph_editor import subgraph, util
from opdock.contrib.graph_editor.subgraph import SubGraphView
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = [
    "add_control_inputs",
    "remove_control_inputs",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]


@dataclass(frozen=True, slots=True)
class _Ways:
    """In which directions tensors take each other's places."""

    first_for_second: bool
    second_for_first: bool


_SWAP: Final = _Ways(True, True)
_REROUTE: Final = _Ways(True, False)


# ---------------------------------------------------------------- tensors
def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Lets those that take tensors take others, and those that take the others take these.

    Args:
        ts0: the tensors.
        ts1: the others, as many, of compatible types and shapes.
        can_modify: the only operations whose inputs may change.
        cannot_modify: operations whose inputs must not change.

    Returns:
        How many inputs have changed.

    Raises:
        TypeError: these are not tensors.
        ValueError: there are not as many, or types or shapes are not compatible.
    """
    return _reroute(ts0, ts1, _SWAP, can_modify, cannot_modify)


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Lets those that take `ts1` take `ts0`; arguments and errors as of `swap_ts`."""
    return _reroute(ts0, ts1, _REROUTE, can_modify, cannot_modify)


def _reroute(
    ts0: Any, ts1: Any, ways: _Ways, can_modify: Any = None, cannot_modify: Any = None
) -> int:
    pairs = _compatible(ts0, ts1)
    only = None if can_modify is None else frozenset(util.make_list_of_op(can_modify))
    never = frozenset(() if cannot_modify is None else util.make_list_of_op(cannot_modify))
    # Looked up before anything changes: what was moved to a tensor is not to be moved on.
    users = {
        t: [op for op in dict.fromkeys(t.consumers()) if op not in never]
        for t in dict.fromkeys(t for pair in pairs for t in pair)
    }
    edges: list[tuple[Operation, int, Tensor]] = []
    for first, second in pairs:
        for wanted, old, new in (
            (ways.first_for_second, second, first),
            (ways.second_for_first, first, second),
        ):
            if not wanted or old is new:
                continue
            edges += [
                (op, i, new)
                for op in users[old]
                if only is None or op in only
                for i, t in enumerate(op.inputs)
                if t is old
            ]
    for op, i, new in edges:
        op._update_input(i, new)
    return len(edges)


def _compatible(ts0: Any, ts1: Any) -> list[tuple[Tensor, Tensor]]:
    first, second = util.make_list_of_t(ts0), util.make_list_of_t(ts1)
    if len(first) != len(second):
        raise ValueError(f"ts0 and ts1 have different sizes: {len(first)} != {len(second)}")
    pairs = list(zip(first, second, strict=True))
    for a, b in pairs:
        if not a.dtype.is_compatible_with(b.dtype):
            raise ValueError(f"Dtypes {a.dtype} and {b.dtype} are not compatible.")
        if not a.shape.is_compatible_with(b.shape):
            raise ValueError(f"Shapes {a.shape} and {b.shape} are not compatible.")
    return pairs


# ---------------------------------------------------------------- views
def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Swaps the inputs of two views, which are brought up to date.

    Args:
        sgv0: a view, or what `make_view` makes one of.
        sgv1: another one, with as many inputs of compatible types and shapes.

    Returns:
        The views.

    Raises:
        ValueError: they have not, or are of two graphs.
    """
    return _reroute_inputs(sgv0, sgv1, _SWAP)


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Gives `sgv1` the inputs of `sgv0`; see `swap_inputs`."""
    return _reroute_inputs(sgv0, sgv1, _REROUTE)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Lets those outside that take the outputs of two views take each the other's.

    Args:
        sgv0: a view, or what `make_view` makes one of.
        sgv1: another one, with as many outputs of compatible types and shapes.

    Returns:
        The views.

    Raises:
        ValueError: they have not, or are of two graphs.
    """
    return _reroute_outputs(sgv0, sgv1, _SWAP)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Lets those that take the outputs of `sgv1` take those of `sgv0`; see `swap_outputs`."""
    return _reroute_outputs(sgv0, sgv1, _REROUTE)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Swaps both outputs and inputs of two views."""
    return _reroute_inputs(*_reroute_outputs(sgv0, sgv1, _SWAP), _SWAP)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    """Puts `sgv0` in the place of `sgv1`, with its inputs and its users."""
    return _reroute_inputs(*_reroute_outputs(sgv0, sgv1, _REROUTE), _REROUTE)


def _views(sgv0: Any, sgv1: Any) -> tuple[SubGraphView, SubGraphView]:
    views = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(*views)
    return views


def _reroute_outputs(sgv0: Any, sgv1: Any, ways: _Ways) -> tuple[SubGraphView, SubGraphView]:
    first, second = _views(sgv0, sgv1)
    inside = first.ops + second.ops
    _reroute(first.outputs, second.outputs, ways, cannot_modify=inside)
    return first, second


def _reroute_inputs(sgv0: Any, sgv1: Any, ways: _Ways) -> tuple[SubGraphView, SubGraphView]:
    first, second = _views(sgv0, sgv1)
    may_change = [
        *first.ops,
        *second.ops,
        *util.get_consuming_ops(first.passthroughs),
        *util.get_consuming_ops(second.passthroughs),
    ]
    _reroute(first.inputs, second.inputs, ways, can_modify=may_change)
    before = first.copy(), second.copy()
    if ways.second_for_first:
        _take_inputs(first, *reversed(before))
    if ways.first_for_second:
        _take_inputs(second, *before)
    return first, second


def _take_inputs(view: SubGraphView, source: SubGraphView, before: SubGraphView) -> None:
    """Brings a view up to date that has now the inputs that `source` had."""
    view._input_ts = list(source._input_ts)
    view._passthrough_ts = list(source._passthrough_ts)
    # What came out as it went in is now what goes in there now.
    at = {t: i for i, t in enumerate(before._input_ts) if t in before._passthrough_ts}
    view._output_ts = [view._input_ts[at[t]] if t in at else t for t in before._output_ts]


# ---------------------------------------------------------------- control inputs
def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Lets an operation no longer wait for others.

    Args:
        op: the operation.
        cops: the others.

    Raises:
        TypeError: these are not operations.
        ValueError: it does not wait for one of them.
    """
    wrong, others = _control(op, cops, lambda other: other not in op.control_inputs)
    if wrong is not None:
        raise ValueError(f"{op.name} is not a control_input of {wrong.name}")
    kept = [other for other in op.control_inputs if other not in others]
    op._remove_all_control_inputs()
    op._add_control_inputs(kept)


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Lets an operation wait for others.

    Args:
        op: the operation.
        cops: the others.

    Raises:
        TypeError: these are not operations.
        ValueError: it waits for one of them already.
    """
    wrong, others = _control(op, cops, lambda other: other in op.control_inputs)
    if wrong is not None:
        raise ValueError(f"{wrong.name} is already a control_input of {op.name}")
    op._add_control_inputs(others)


def _control(
    op: Operation, cops: Any, is_wrong: Callable[[Operation], bool]
) -> tuple[Operation | None, list[Operation]]:
    if not isinstance(op, Operation):
        raise TypeError(f"Expected a tf.Operation, got: {type(op)}")
    others = util.make_list_of_op(cops, allow_graph=False)
    return next(filter(is_wrong, others), None), others
