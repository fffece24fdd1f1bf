"""Control: ordering (`group`, `tuple`, `no_op`), and functional `cond`.

Loops are in `composed/loops`, and what is made of conditions in `composed/case`.

Branches and loop bodies are functions of their own (`FuncGraph`); what they use from outside
becomes an argument. Only the taken branch runs.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor, has_graph
from opdock.graph.nodes.scopes import control_dependencies, device, executing_eagerly, name_scope
from opdock.ops.registry import Control, Fails, ShapeSig, Traits, define_op, get
from opdock.ops.support import control_mode
from opdock.ops.support.arrays import arrays_as_lists, arrays_differ
from opdock.ops.support.bodies import check_loop, share_captures
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["cond", "group", "no_op", "tuple", "with_dependencies"]

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


@while_op.shape
@stateless_while_op.shape
def _loop_shape(sig: ShapeSig) -> list[Shape]:
    check_loop(sig.attrs["cond"], sig.attrs["body"], sig.n_outputs)
    return _declared(sig)


@if_op.shape
@stateless_if_op.shape
def _declared(sig: ShapeSig) -> list[Shape]:
    declared: list[Shape] = sig.attrs["output_shapes"]
    return list(declared) if declared else [None] * sig.n_outputs


@if_op.gradient
@stateless_if_op.gradient
def _if_gradient(op: Operation, *grads: Any) -> Any:
    # Differentiates the branches: autodiff stands above the ops.
    from opdock.autodiff.control import if_gradient

    return if_gradient(op, *grads)


@while_op.gradient
@stateless_while_op.gradient
def _while_gradient(op: Operation, *grads: Any) -> Any:
    # Differentiates the body: autodiff stands above the ops.
    from opdock.autodiff.backward_loop import while_gradient

    return while_gradient(op, *grads)


# ---------------------------------------------------------------- ordering
@extensible
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing, for use as a control input; None in eager programs."""
    done: Operation = no_op_op(name=name)
    return done


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that finishes when all `inputs` have; None in eager programs.

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
    if executing_eagerly():
        # All of it has run.
        return None  # type: ignore[return-value]
    with name_scope(name, "group_deps", [i for i in nest.flatten(inputs) if has_graph(i)]) as scope:
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
        f"type '{type(item).__name__}'."
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
    if graph.eager:
        return output_tensor
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        graph.colocate_with(output_tensor),
        control_dependencies(dependencies),
    ):
        if isinstance(output_tensor, IndexedSlices):
            values = get("Identity")(output_tensor.values, name=scope)
            return IndexedSlices(values, output_tensor.indices, output_tensor.dense_shape)
        return get("Identity")(convert_to_tensor(output_tensor), name=scope)


@extensible
def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """`tensors` as a list of which each waits for all.

    Raises:
        ValueError: there is no tensor among them.
        TypeError: `control_inputs` holds something that is no operation.
    """
    if executing_eagerly():
        return tensors  # type: ignore[return-value]
    with name_scope(name, "tuple", tensors):
        present = [t for t in tensors if t is not None]
        if not present:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gates = [
            _operation(t if isinstance(t, Operation) or hasattr(t, "op") else convert_to_tensor(t))
            for t in present
        ]
        for extra in control_inputs or ():
            if not isinstance(extra, (Operation, Tensor)) and not hasattr(extra, "op"):
                raise TypeError(f"Control input must be Operation or Tensor: {extra}")
            gates.append(_operation(extra))
        gate = group(*gates)
        return [_behind(gate, t) for t in tensors]


def _behind(gate: Operation, item: Any) -> Any:
    """An item of a tuple, which waits for all of them."""
    if item is None:
        return None
    if isinstance(item, Operation):
        with control_dependencies([gate]):
            return group(item)
    return with_dependencies([gate], item)


# ---------------------------------------------------------------- cond
@extensible
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
    then_fn = _callable("true_fn", true_fn, "fn1", fn1)
    else_fn = _callable("false_fn", false_fn, "fn2", fn2)
    if executing_eagerly():
        with name_scope(name, "cond", [pred]):
            result = then_fn() if bool(pred) else else_fn()
        return result if strict else _unpacked(result)
    with name_scope(name, "cond", [pred]) as scope:
        second = control_mode.second_version()
        condition = _predicate(pred, scope, second)
        strict = strict or second
        branches = [_Branch(scope, "true", then_fn), _Branch(scope, "false", else_fn)]
        _match(branches[0], branches[1], strict, second)
        awaited = [op for b in branches for op in b.graph.awaited()]
        captures = share_captures([b.graph for b in branches])
        stateful = any(b.graph.stateful for b in branches)
        with control_dependencies(awaited):
            outputs = (if_op if stateful else stateless_if_op)(
                condition, captures, Tout=[t.dtype.base_dtype for t in branches[0].tensors],
                then_branch=branches[0].graph, else_branch=branches[1].graph,
                output_shapes=_common_shapes(branches), name=scope,
            )  # fmt: skip
    for branch in branches:
        branch.graph.hand_out = functools.partial(_hand_out, outputs[0].op)
    result = nest.pack_sequence_as(branches[0].result, list(outputs), expand_composites=True)
    return result if strict else _unpacked(result)


def _hand_out(op: Operation, tensor: Tensor, to: Graph) -> Tensor | None:
    # Lists are for the few programs that need them.
    from opdock.ops.support.recorded import hand_out

    return hand_out(op, tensor, to)


def _callable(what: str, fn: Any, old: str, old_fn: Any) -> Callable[[], Any]:
    if fn is not None and old_fn is not None:
        raise TypeError(f"cond(): {what} and {old} may not be set simultaneously.")
    fn = old_fn if fn is None else fn
    if fn is None:
        raise TypeError(f"cond(): {what} argument required")
    if not callable(fn):
        raise TypeError(f"{what} must be callable.")
    return fn  # type: ignore[no-any-return]


def _predicate(pred: Any, scope: str, second: bool) -> Tensor:
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    condition = convert_to_tensor(pred, name="pred")
    if second:
        return control_mode.squeezed(condition)
    if condition.dtype.base_dtype is not dtypes.bool_:
        raise TypeError(
            f"Input 'pred' of 'Switch' Op has type {condition.dtype.name} that does not match "
            "expected type of bool."
        )
    check_scalar(condition, f"{scope}Switch", "Switch", 2)
    return condition


def check_scalar(decides: Tensor, name: str, op: str, count: int = 1) -> None:
    """Checks what decides about branches and turns, in the words of TF's op.

    Raises:
        ValueError: it is no scalar.
    """
    known = decides.raw_shape
    if known:
        given = ", ".join([shapes.text(known)] * count)
        raise ValueError(
            f"Shape must be rank 0 but is rank {len(known)} for '{name}' (op: '{op}') with input "
            f"shapes: {given}."
        )


def _unpacked(result: Any) -> Any:
    """The only element of a list or tuple of one; anything else as it is."""
    return result[0] if isinstance(result, (list, _tuple)) and len(result) == 1 else result


class _Branch:
    """A traced branch: its graph, result tensors and structure.

    Raises:
        ValueError: the function returns nothing.
    """

    def __init__(self, scope: str, kind: str, fn: Callable[[], Any]) -> None:
        outer = get_default_graph()
        count = len(outer.get_operations())
        self.graph = FuncGraph(f"{scope.replace('/', '_')}{kind}_{count}", outer, leaves=True)
        with self.graph.as_default():
            self.result = fn()
            if self.result is None:
                raise ValueError(f"{kind}_fn must have a return value.")
            self.tensors = [
                self._own(item, kind == "true")
                for item in nest.flatten(self.result, expand_composites=True)
            ]
        self._finish()

    def _own(self, item: Any, taken: bool) -> Tensor:
        if isinstance(item, Operation):
            # What stands for an operation tells which branch ran.
            with control_dependencies([item]):
                return convert_to_tensor(taken)
        tensor = convert_to_tensor(item)
        foreign = tensor._op.graph is not self.graph or tensor.op.type == "_Arg"
        if foreign or tensor.dtype._is_ref_dtype:
            # A branch returns values of its own: a copy of what comes from outside.
            tensor = get("Identity")(tensor)
        return tensor

    def _finish(self) -> None:
        self.graph.outputs = list(self.tensors)
        self.graph.read_again(self.graph.written())
        self.graph.forget_unused()

    def change(self, items: list[Any]) -> None:
        """Returns other things in the place of those that it returned."""
        self.result = nest.pack_sequence_as(self.result, items)
        self.tensors = [
            self._own(t, True) for t in nest.flatten(self.result, expand_composites=True)
        ]
        self._finish()

    def widen_indices(self) -> None:
        """Makes the indices of slices int64."""
        found: list[Any] = []
        with self.graph.as_default():
            for item in nest.flatten(self.result):
                if isinstance(item, IndexedSlices) and item.indices.dtype is dtypes.int32:
                    indices = get("Cast")(item.indices, DstT=dtypes.int64)
                    item = IndexedSlices(item.values, indices, item.dense_shape)
                found.append(item)
            self.change(found)


def _match(a: _Branch, b: _Branch, strict: bool, second: bool) -> None:
    """Checks that branches return the same structure of the same types."""
    if not strict:
        a.result, b.result = _unpacked(a.result), _unpacked(b.result)
    slices = [
        [i for i in nest.flatten(branch.result) if isinstance(i, IndexedSlices)]
        for branch in (a, b)
    ]
    if any(x.indices.dtype is not y.indices.dtype for x, y in zip(*slices, strict=False)):
        a.widen_indices()
        b.widen_indices()
    results = nest.flatten(a.result), nest.flatten(b.result)
    if arrays_differ(*results):
        for branch, items in zip((a, b), results, strict=True):
            with branch.graph.as_default():
                branch.change(arrays_as_lists(items, results[branch is a]))
    try:
        nest.assert_same_structure(a.result, b.result, expand_composites=True)
    except (TypeError, ValueError) as e:
        kind = "types" if isinstance(e, TypeError) else "values"
        why = f"Incompatible return {kind} of true_fn and false_fn: {e}"
        if second:
            why = (
                "true_fn and false_fn arguments to tf.cond must have the same number, type, and "
                f"overall structure of return values. {why}"
            )
            raise TypeError(why) from None
        raise type(e)(why) from None
    if not a.tensors:
        raise ValueError("true_fn and false_fn must return at least one result.")
    for x, y in zip(a.tensors, b.tensors, strict=True):
        if x.dtype.base_dtype is not y.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {x.dtype.name}, "
                f"{y.dtype.name}"
            )


def _common_shapes(branches: list[_Branch]) -> list[Shape]:
    first, second = branches
    return [
        _widest(x.raw_shape, y.raw_shape)
        for x, y in zip(first.tensors, second.tensors, strict=True)
    ]


def _widest(a: Shape, b: Shape) -> Shape:
    """The shape that covers both."""
    if a is None or b is None or len(a) != len(b):
        return None
    return (*(x if x == y else None for x, y in zip(a, b, strict=True)),)
