"""Which operations and tensors: by name, by their neighbours, by walks through the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from opdock.contrib.graph_editor import util
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = [
    "can_be_regex",
    "check_cios",
    "compute_boundary_ts",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_forward_walk_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "make_regex",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
]


# ---------------------------------------------------------------- by name
def can_be_regex(obj: Any) -> bool:
    """Whether it is a regular expression, compiled or not."""
    return isinstance(obj, str | re.Pattern)


def make_regex(obj: Any) -> re.Pattern[str]:
    """A regular expression, compiled.

    Raises:
        ValueError: it is none.
    """
    if not can_be_regex(obj):
        raise ValueError(f"Expected a string or a regex, got: {type(obj)}")
    return re.compile(obj)


def filter_ts(ops: Any, positive_filter: Any) -> list[Tensor]:
    """The inputs and outputs of operations for which `positive_filter` is true, or all if it is."""
    found = util.concatenate_unique(_get_input_ts(ops), _get_output_ts(ops))
    return found if positive_filter is True else [t for t in found if positive_filter(t)]


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Tensor]:
    """The inputs and outputs of operations whose names a regular expression finds something in."""
    pattern = make_regex(regex)
    return filter_ts(ops, lambda t: pattern.search(t.name))


def filter_ops(ops: Any, positive_filter: Any) -> list[Operation]:
    """The operations for which `positive_filter` is true, or all if it is."""
    found = util.make_list_of_op(ops)
    return found if positive_filter is True else [op for op in found if positive_filter(op)]


def filter_ops_from_regex(ops: Any, regex: Any) -> list[Operation]:
    """The operations whose names a regular expression finds something in."""
    pattern = make_regex(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name))


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations in a name scope, which is a regular expression."""
    return filter_ops_from_regex(ops, f"^{scope.removesuffix('/')}(/.*)?$")


def select_ops(
    *args: Any, graph: Graph | None = None, positive_filter: Any = None,
    restrict_ops_regex: bool = False, restrict_ts_regex: bool = False,
) -> list[Operation]:  # fmt: skip
    """Operations by any of several ways, each once.

    Args:
        *args: regular expressions of names, those that begin with "(?#ts)" left out, and
            operations, one or some, tensors among them left out.
        graph: where to look for names.
        positive_filter: a function of operations that must be true.
        restrict_ops_regex: whether only those that begin with "(?#ops)" count.
        restrict_ts_regex: of no meaning for operations.

    Raises:
        TypeError: something is neither, or `graph` is no graph.
        ValueError: there are names and no graph.
    """
    del restrict_ts_regex
    return _selected(
        args, graph, positive_filter, "(?#ops)" if restrict_ops_regex else None, "(?#ts)",
        filter_ops_from_regex, lambda arg: util.make_list_of_op(arg, ignore_ts=True),
    )  # fmt: skip


def select_ts(
    *args: Any, graph: Graph | None = None, positive_filter: Any = None,
    restrict_ts_regex: bool = False, restrict_ops_regex: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Tensors by any of several ways, each once.

    Args:
        *args: regular expressions of names, those that begin with "(?#ops)" left out, and
            tensors, one or some, operations among them left out.
        graph: where to look for names.
        positive_filter: a function of tensors that must be true.
        restrict_ts_regex: whether only those that begin with "(?#ts)" count.
        restrict_ops_regex: of no meaning for tensors.

    Raises:
        TypeError: something is neither, or `graph` is no graph.
        ValueError: there are names and no graph.
    """
    del restrict_ops_regex
    return _selected(
        args, graph, positive_filter, "(?#ts)" if restrict_ts_regex else None, "(?#ops)",
        filter_ts_from_regex, lambda arg: util.make_list_of_t(arg, ignore_ops=True),
    )  # fmt: skip


def select_ops_and_ts(
    *args: Any, graph: Graph | None = None, positive_filter: Any = None
) -> tuple[list[Operation], list[Tensor]]:
    """Operations and tensors, as `select_ops` and `select_ts` find them.

    A regular expression is one of tensors' names where it begins with "(?#ts)".
    """
    kwargs: dict[str, Any] = {"graph": graph, "positive_filter": positive_filter}
    return select_ops(*args, **kwargs), select_ts(*args, restrict_ts_regex=True, **kwargs)


def _selected(
    args: Iterable[Any], graph: Any, positive_filter: Any, wanted: str | None, unwanted: str,
    by_name: Callable[[Any, Any], list[Any]], listed: Callable[[Any], list[Any]],
) -> list[Any]:  # fmt: skip
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
    found: list[Any] = []
    for arg in args:
        if not can_be_regex(arg):
            some = listed(arg)
        elif graph is None:
            raise ValueError("Use the keyword argument 'graph' to use regex.")
        else:
            text = make_regex(arg).pattern
            if text.startswith(unwanted) or not text.startswith(wanted or ""):
                continue
            some = by_name(graph, arg)
        util.concatenate_unique(
            found, some if positive_filter is None else filter(positive_filter, some)
        )
    return found


# ---------------------------------------------------------------- by neighbours
def check_cios(
    control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[bool, Any]:
    """Whether control inputs count, and the `ControlOutputs` if they do, brought up to date.

    Args:
        control_inputs: whether they count.
        control_outputs: the `ControlOutputs`, or None.
        control_ios: a `ControlOutputs` if both count.

    Raises:
        TypeError: what should be a `ControlOutputs` is not.
        ValueError: `control_outputs` is given in two ways.
    """
    if control_ios is not None and control_outputs is not None:
        raise ValueError("control_outputs should be None when using control_ios.")
    found = control_outputs if control_ios is None else control_ios
    if found is None:
        return control_inputs, None
    if not isinstance(found, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(found)}")
    return control_inputs or control_ios is not None, found.update()


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Operation]:
    """The operations that give operations something, and those that they give something to.

    Args:
        ops: the operations.
        control_inputs: whether control inputs count,
        control_outputs: and control outputs, a `ControlOutputs`, or
        control_ios: both, likewise.
    """
    before, after = check_cios(control_inputs, control_outputs, control_ios)
    found: list[Operation] = []
    for op in util.make_list_of_op(ops):
        found += [*_producers(op, before), *_users(op, after)]
    return list(dict.fromkeys(found))


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The tensors that come into, go out of, and stay between operations.

    One that goes from one of them to another and out as well is among both of the latter.
    """
    listed = util.make_list_of_op(ops)
    taken, made = _get_input_ts(listed), _get_output_ts(listed)
    known_ops, known_made = frozenset(listed), frozenset(made)
    inside = [t for t in taken if t in known_made]
    hidden = {t for t in inside if known_ops.issuperset(t.consumers())}
    return (
        [t for t in taken if t not in known_made],
        [t for t in made if t not in hidden],
        inside,
    )


def get_within_boundary_ops(
    ops: Any, seed_ops: Any, boundary_ops: Any = (), inclusive: bool = True,
    control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """The operations among `ops` that are connected to others without crossing a boundary.

    Args:
        ops: the operations.
        seed_ops: those from which to begin.
        boundary_ops: those beyond which not to go.
        inclusive: whether those count.
        control_inputs: as of `get_ops_ios`, with those that follow.
        control_outputs: as there.
        control_ios: as there.

    Raises:
        ValueError: an operation is both a seed and on the boundary.
    """
    before, after = check_cios(control_inputs, control_outputs, control_ios)
    seeds = util.make_list_of_op(seed_ops, allow_graph=False)
    boundary = set(util.make_list_of_op(boundary_ops))
    if not boundary.isdisjoint(seeds):
        raise ValueError("Boundary is intersecting with the seeds.")
    touched: set[Operation] = set()

    def neighbours(op: Operation) -> list[Operation]:
        found = [*_producers(op, before), *_users(op, after)]
        touched.update(boundary.intersection(found))
        return found

    reached = set(_walk(seeds, neighbours, lambda op: op not in boundary))
    if inclusive:
        reached |= touched
    return [op for op in util.make_list_of_op(ops) if op in reached]


# ---------------------------------------------------------------- by walks
def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    stop_at_ts: Any = (), control_outputs: Any = None,
) -> list[Operation]:  # fmt: skip
    """What depends on operations, or on tensors, the nearest first.

    Args:
        seed_ops: the operations, or tensors, whose users are then where it begins.
        inclusive: whether those where it begins are part of the result.
        within_ops: the operations out of which not to go, if any.
        within_ops_fn: a function of operations that must be true.
        stop_at_ts: tensors beyond which not to go.
        control_outputs: a `ControlOutputs` if those that wait count.

    Raises:
        TypeError: what should be operations are not.
    """
    _, after = check_cios(False, control_outputs)
    seeds = _seeds(seed_ops, util.get_consuming_ops)
    stops = frozenset(util.make_list_of_t(stop_at_ts))
    return _walked(seeds, lambda op: _users(op, after, stops), inclusive, within_ops, within_ops_fn)


def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    stop_at_ts: Any = (), control_inputs: bool = False,
) -> list[Operation]:  # fmt: skip
    """What operations, or tensors, depend on, the nearest first.

    Args:
        seed_ops: the operations or tensors.
        inclusive: whether they are part of the result.
        within_ops: the operations out of which not to go, if any.
        within_ops_fn: a function of operations that must be true.
        stop_at_ts: tensors beyond which not to go.
        control_inputs: whether control inputs count.

    Raises:
        TypeError: what should be operations are not.
    """
    seeds = _seeds(seed_ops, util.get_generating_ops)
    stops = frozenset(util.make_list_of_t(stop_at_ts))
    return _walked(
        seeds, lambda op: _producers(op, control_inputs, stops), inclusive, within_ops,
        within_ops_fn,
    )  # fmt: skip


def get_walks_intersection_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True,
    backward_inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """What depends on some operations, and others depend on it.

    Args:
        forward_seed_ops: as of `get_forward_walk_ops`.
        backward_seed_ops: as of `get_backward_walk_ops`.
        forward_inclusive: whether the former are part of the walk from them,
        backward_inclusive: and the latter of that from them.
        within_ops: as there.
        within_ops_fn: as there.
        control_inputs: as of `get_ops_ios`, with those that follow.
        control_outputs: as there.
        control_ios: as there.
    """
    before, after = check_cios(control_inputs, control_outputs, control_ios)
    forward = get_forward_walk_ops(
        forward_seed_ops, forward_inclusive, within_ops, within_ops_fn, control_outputs=after
    )
    backward = get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, within_ops, within_ops_fn, control_inputs=before
    )
    both = frozenset(backward)
    return [op for op in forward if op in both]


def get_walks_union_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True,
    backward_inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None,
    control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None,
) -> list[Operation]:  # fmt: skip
    """What depends on some operations, or others depend on; see `get_walks_intersection_ops`."""
    before, after = check_cios(control_inputs, control_outputs, control_ios)
    forward = get_forward_walk_ops(
        forward_seed_ops, forward_inclusive, within_ops, within_ops_fn, control_outputs=after
    )
    backward = get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, within_ops, within_ops_fn, control_inputs=before
    )
    return util.concatenate_unique(forward, backward)


def _get_input_ts(ops: Any) -> list[Tensor]:
    return list(dict.fromkeys(t for op in util.make_list_of_op(ops) for t in op.inputs))


def _get_output_ts(ops: Any) -> list[Tensor]:
    return [t for op in util.make_list_of_op(ops) for t in op.outputs]


def _producers(
    op: Operation, control_inputs: bool, stops: Collection[Tensor] = ()
) -> list[Operation]:
    found = [t.op for t in op.inputs if t not in stops]
    return [*found, *op.control_inputs] if control_inputs else found


def _users(op: Operation, after: Any, stops: Collection[Tensor] = ()) -> list[Operation]:
    found = [user for t in op.outputs if t not in stops for user in t.consumers()]
    return found if after is None else [*found, *after.get(op)]


def _seeds(given: Any, of_tensors: Callable[[Any], list[Operation]]) -> list[Operation]:
    listed = list(given) if util.is_iterable(given) else [given]
    if listed and isinstance(listed[0], Tensor):
        return of_tensors(listed)
    return util.make_list_of_op(listed, allow_graph=False)


def _walked(
    seeds: list[Operation], neighbours: Callable[[Operation], list[Operation]], inclusive: bool,
    within_ops: Any, within_ops_fn: Any,
) -> list[Operation]:  # fmt: skip
    # An empty collection is no bound, as in TF.
    within = frozenset(util.make_list_of_op(within_ops, allow_graph=False)) if within_ops else None
    seeds = [op for op in seeds if within is None or op in within]

    def admits(op: Operation) -> bool:
        return (within is None or op in within) and (within_ops_fn is None or within_ops_fn(op))

    found = _walk(seeds, neighbours, admits)
    if inclusive:
        return found
    known = frozenset(seeds)
    return [op for op in found if op not in known]


def _walk(
    seeds: Iterable[Operation],
    neighbours: Callable[[Operation], list[Operation]],
    admits: Callable[[Operation], bool],
) -> list[Operation]:
    """The seeds and all that can be reached from them, breadth first."""
    found = dict.fromkeys(seeds)
    wave = list(found)
    while wave:
        wave = [
            op
            for op in dict.fromkeys(near for op in wave for near in neighbours(op))
            if op not in found and admits(op)
        ]
        found.update(dict.fromkeys(wave))
    return list(found)
