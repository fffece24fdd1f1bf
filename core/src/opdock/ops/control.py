"""Control: ordering (`group`, `tuple`, `no_op`), and functional `cond` and `case`.

Loops are in `loops`.

Branches and loop bodies are functions of their own (`FuncGraph`); what they use from outside
becomes an argument. Only the taken branch runs.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, device, name_scope
from opdock.ops.registry import Control, Fails, ShapeSig, Traits, define_op, get
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["case", "cond", "group", "no_op", "tuple", "with_dependencies"]

_tuple: Final[type[Any]] = builtins.tuple

no_op_op = define_op("NoOp", "->")
control_trigger_op = define_op("ControlTrigger", "->")
for _op in (no_op_op, control_trigger_op):
    _op.declare(Traits(builtin=True, fails=Fails.NEVER))
for _op in (no_op_op, control_trigger_op):
    _op.shape(no_outputs)
    _op.not_differentiable()

if_op = define_op(
    "If", "cond: Tcond, input: Tin -> output: Tout",
    "Tcond: type, Tin: list(type) >= 0, Tout: list(type) >= 0, then_branch: func, "
    "else_branch: func, output_shapes: list(shape) = []",
    stateful=True,
)  # fmt: skip
stateless_if_op = define_op(
    "StatelessIf", "cond: Tcond, input: Tin -> output: Tout",
    "Tcond: type, Tin: list(type) >= 0, Tout: list(type) >= 0, then_branch: func, "
    "else_branch: func, output_shapes: list(shape) = []",
)  # fmt: skip
for _op in (if_op, stateless_if_op):
    _op.declare(Traits(builtin=True, control=Control.COND))
while_op = define_op(
    "While", "input: T -> output: T",
    "T: list(type) >= 0, cond: func, body: func, output_shapes: list(shape) = [], "
    "parallel_iterations: int = 10",
    stateful=True,
)  # fmt: skip
stateless_while_op = define_op(
    "StatelessWhile", "input: T -> output: T",
    "T: list(type) >= 0, cond: func, body: func, output_shapes: list(shape) = [], "
    "parallel_iterations: int = 10",
)  # fmt: skip
for _op in (while_op, stateless_while_op):
    _op.declare(Traits(builtin=True, control=Control.LOOP))


@if_op.shape
@stateless_if_op.shape
@while_op.shape
@stateless_while_op.shape
def _declared(sig: ShapeSig) -> list[Shape]:
    declared: list[Shape] = sig.attrs["output_shapes"]
    return list(declared) if declared else [None] * sig.n_outputs


@if_op.gradient
@stateless_if_op.gradient
def _if_gradient(op: Operation, *grads: Any) -> Any:
    from opdock.autodiff.control import if_gradient

    return if_gradient(op, *grads)


@while_op.gradient
@stateless_while_op.gradient
def _while_gradient(op: Operation, *grads: Any) -> Any:
    from opdock.autodiff.backward_loop import while_gradient

    return while_gradient(op, *grads)


# ---------------------------------------------------------------- ordering
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing, for use as a control input."""
    done: Operation = no_op_op(name=name)
    return done


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that finishes when all `inputs` have.

    Args:
        *inputs: operations or tensors, or nested structures of them.
        name: the node's name ("group_deps" by default).

    Raises:
        TypeError: an input is neither.
        ValueError: an unknown keyword is given.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(kwargs))
    with name_scope(
        name, "group_deps", [i for i in nest.flatten(inputs) if hasattr(i, "graph")]
    ) as scope:
        by_device: dict[str, list[Operation]] = {}
        for item in nest.flatten(inputs):
            if item is None:
                continue
            op = _operation(item)
            by_device.setdefault(op.device, []).append(op)
        if len(by_device) <= 1:
            ((where, ops),) = by_device.items() or (("", []),)
            return _barrier(ops, where, scope)
        # One barrier a device, so that each waits for its own before they meet.
        barriers = [_barrier(ops, where, None) for where, ops in sorted(by_device.items())]
        return _barrier(barriers, "", scope)


def _operation(item: Any) -> Operation:
    if isinstance(item, Operation):
        return item
    if isinstance(item, (IndexedSlices, SparseTensor)):
        return item.values.op
    if isinstance(item, Tensor) or isinstance(getattr(item, "op", None), Operation):
        op: Operation = item.op
        return op
    raise TypeError(
        f"Expected tf.group() expected Tensor objects not None or other types, got {item!r} of "
        "type "
        f"'{type(item).__name__}'."
    )


def _barrier(ops: list[Operation], where: str, name: str | None) -> Operation:
    with control_dependencies(ops):
        if where:
            with device(where):
                return no_op(name)
        return no_op(name)


def with_dependencies(
    dependencies: Sequence[Any], output_tensor: Any, name: str | None = None
) -> Any:
    """`output_tensor` after `dependencies` have run."""
    graph = get_default_graph()
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        graph.colocate_with(output_tensor),
        control_dependencies(dependencies),
    ):
        if isinstance(output_tensor, IndexedSlices):
            values = get("Identity")(output_tensor.values, name=scope)
            return IndexedSlices(values, output_tensor.indices, output_tensor.dense_shape)
        return get("Identity")(convert_to_tensor(output_tensor), name=scope)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """`tensors` as a list of which each waits for all.

    Raises:
        ValueError: there is no tensor among them.
        TypeError: `control_inputs` holds something that is no operation.
    """
    with name_scope(name, "tuple", tensors):
        present = [t for t in tensors if t is not None]
        if not present:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gates = [_operation(convert_to_tensor(t) if not hasattr(t, "op") else t) for t in present]
        for extra in control_inputs or ():
            if not isinstance(extra, (Operation, Tensor)) and not hasattr(extra, "op"):
                raise TypeError(f"Control input must be Operation or Tensor: {extra}")
            gates.append(_operation(extra))
        gate = group(*gates)
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


# ---------------------------------------------------------------- cond
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """`true_fn()` if `pred` holds when the graph runs, else `false_fn()`.

    Only operations made inside the taken function run; those made outside always do.

    Args:
        pred: a scalar bool tensor.
        true_fn, false_fn: functions without arguments that return equal structures.
        strict: keep a list of one tensor as a list.
        name: the name scope.
        fn1, fn2: older names of `true_fn` and `false_fn`.

    Raises:
        TypeError: `pred` is a Python bool or no bool tensor, or a function is not callable.
        ValueError: the structures or types of the results differ.
    """
    true_fn = fn1 if true_fn is None else true_fn
    false_fn = fn2 if false_fn is None else false_fn
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    with name_scope(name, "cond", [pred]) as scope:
        condition = convert_to_tensor(pred, name="pred")
        if condition.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(
                f"Input 'pred' of 'If' Op has type {condition.dtype.name} that does not match "
                "expected type of bool."
            )
        try:
            shapes.with_rank(condition.raw_shape, 0)
        except ValueError as e:
            raise ValueError(f"{e}: the predicate of tf.cond, {condition!r}") from None
        branches = [_trace_branch(scope, "true", true_fn), _trace_branch(scope, "false", false_fn)]
        _match(branches)
        captures = _share_captures([b.graph for b in branches])
        stateful = any(b.graph.stateful for b in branches)
        op = if_op if stateful else stateless_if_op
        node = op(
            condition, captures, Tout=[t.dtype.base_dtype for t in branches[0].tensors],
            then_branch=branches[0].graph, else_branch=branches[1].graph,
            output_shapes=_common_shapes(branches), name=scope,
        )  # fmt: skip
    outputs = [] if isinstance(node, Operation) else list(node)
    if not outputs:
        return node if branches[0].is_op else branches[0].pack([])
    if branches[0].is_op:
        return outputs[0].op
    result = branches[0].pack(outputs)
    if (
        not strict
        and isinstance(result, (list, _tuple))
        and len(result) == 1
        and not hasattr(result, "_fields")
    ):
        return result[0]
    return result


class _Branch:
    """A traced branch: its graph, result tensors and structure."""

    def __init__(self, graph: FuncGraph, result: Any) -> None:
        self.graph = graph
        self.result = result
        self.is_op = isinstance(result, Operation)
        self.tensors: list[Tensor] = []
        with graph.as_default():
            for item in (
                [] if self.is_op or result is None else nest.flatten(result, expand_composites=True)
            ):
                if isinstance(item, Operation):
                    with control_dependencies([item]):
                        self.tensors.append(convert_to_tensor(True))
                    continue
                tensor = convert_to_tensor(item)
                if (
                    tensor.graph is not graph
                    or tensor.dtype._is_ref_dtype
                    or tensor.op.type == "_Arg"
                ):
                    # A branch returns values of its own: a copy of what comes from outside.
                    tensor = get("Identity")(tensor)
                self.tensors.append(tensor)
        graph.outputs = list(self.tensors)

    def pack(self, tensors: list[Tensor]) -> Any:
        """Tensors in the branch's structure."""
        if self.result is None:
            return None
        return nest.pack_sequence_as(self.result, tensors, expand_composites=True)


def _trace_branch(scope: str, kind: str, fn: Callable[[], Any]) -> _Branch:
    outer = get_default_graph()
    graph = FuncGraph(f"{scope.replace('/', '_')}{kind}_{len(outer.get_operations())}", outer)
    with graph.as_default():
        result = fn()
    return _Branch(graph, result)


def _match(branches: list[_Branch]) -> None:
    a, b = branches
    if a.is_op != b.is_op:
        raise ValueError(
            "The two structures don't have the same nested structure: one branch returns an "
            "operation."
        )
    if a.is_op:
        return
    if (a.result is None) != (b.result is None):
        raise ValueError(
            "true_fn and false_fn must return the same structure; one of them returns None."
        )
    if a.result is not None:
        try:
            nest.assert_same_structure(a.result, b.result, expand_composites=True)
        except (ValueError, TypeError) as e:
            raise ValueError(f"Incompatible return values of true_fn and false_fn: {e}") from None
    for x, y in zip(a.tensors, b.tensors, strict=True):
        if x.dtype.base_dtype is not y.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {x.dtype.name}, "
                f"{y.dtype.name}"
            )


def _common_shapes(branches: list[_Branch]) -> list[Shape]:
    out: list[Shape] = []
    for x, y in zip(branches[0].tensors, branches[1].tensors, strict=True):
        out.append(_widest(x.raw_shape, y.raw_shape))
    return out


def _widest(a: Shape, b: Shape) -> Shape:
    """The shape that covers both."""
    if a is None or b is None or len(a) != len(b):
        return None
    return (*(x if x == y else None for x, y in zip(a, b, strict=True)),)


def _share_captures(graphs: list[FuncGraph]) -> list[Tensor]:
    """Gives all graphs the same list of captured inputs, and returns the outer tensors."""
    order: dict[Tensor, None] = {}
    for graph in graphs:
        for outer, _ in graph.captures:
            order.setdefault(outer)
    for graph in graphs:
        known = dict(graph.captures)
        explicit = graph.inputs[: len(graph.inputs) - len(graph.captures)]
        inputs, captures = list(explicit), []
        for outer in order:
            inner = known.get(outer)
            if inner is None:
                inner = graph._make_arg(outer.dtype, outer.raw_shape, "unused").outputs[0]
            inner.op.attrs["index"] = len(inputs)
            inputs.append(inner)
            captures.append((outer, inner))
        graph.inputs, graph.captures = inputs, captures
    return list(order)


# ---------------------------------------------------------------- case
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    Args:
        pred_fn_pairs: pairs of a scalar bool tensor and a function, or a dict of them.
        default: used when no predicate holds; without it the last function is.
        exclusive: fail when more than one predicate holds.
        strict: keep a list of one tensor as a list.
        name: the name scope.

    Raises:
        TypeError, ValueError: the pairs are malformed.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs and default is None:
        raise ValueError("Must have at least one predicate and function")
    for pair in pairs:
        if not isinstance(pair, _tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in pred_fn_pairs must be a 2-tuple, got {pair!r}")
        if not isinstance(pair[0], Tensor) and not hasattr(pair[0], "graph"):
            raise TypeError(f"pred must be Tensor, got {pair[0]!r}")
        if not callable(pair[1]):
            raise TypeError(f"fn for pred {pair[0].name} must be callable.")
    with name_scope(name, "case", [p for p, _ in pairs]):
        predicates = [convert_to_tensor(p) for p, _ in pairs]
        checks: list[Operation] = []
        if exclusive and len(predicates) > 1:
            checks.append(_at_most_one(predicates))
        if default is None:
            default, pairs, predicates = pairs[-1][1], pairs[:-1], predicates[:-1]
        fallback: Callable[[], Any] = default
        for predicate, (_, fn) in reversed(list(zip(predicates, pairs, strict=True))):
            fallback = _chain(predicate, fn, fallback, strict)
        with control_dependencies(checks):
            return fallback()


def _chain(
    pred: Tensor, fn: Callable[[], Any], rest: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(get("Identity")(pred), fn, rest, strict=strict)


def _at_most_one(predicates: list[Tensor]) -> Operation:
    count = get("Sum")(get("Cast")(get("Pack")(predicates, axis=0), DstT=dtypes.int32), [0])
    ok = get("Less")(count, 2)
    message = "Input error: exclusive=True: more than 1 conditions evaluated as True"
    done: Operation = get("Assert")(
        ok, [convert_to_tensor(message), get("Pack")(predicates, axis=0)]
    )
    return done
