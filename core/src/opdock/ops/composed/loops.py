"""`tf.while_loop`: a While op whose condition and body are functions of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from opdock import dtypes, shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor, has_graph
from opdock.graph.nodes.scopes import control_dependencies, executing_eagerly, name_scope
from opdock.graph.nodes.typespec import TypeSpec
from opdock.ops.control import check_scalar, stateless_while_op, while_op
from opdock.ops.registry import get
from opdock.ops.support import common_shapes, control_mode
from opdock.ops.support.arrays import arrays_as_lists, arrays_differ, storage_changes
from opdock.ops.support.bodies import share_captures
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats `body` as long as `cond` holds.

    Args:
        cond: function of the loop variables to a scalar bool tensor.
        body: function of the loop variables to their next values, in the same structure.
        loop_vars: the initial values: a (nested) list, tuple or dict of tensors.
        shape_invariants: shapes that hold in every turn, where they differ from the initial ones.
        back_prop: whether gradients flow through the loop.
        parallel_iterations, swap_memory: accepted for TF's signature.
        name: the name scope.
        maximum_iterations: a limit on the number of turns.
        return_same_structure: keep a structure of one element.

    Raises:
        TypeError: an argument has the wrong type, or `cond` gives no bool.
        ValueError: `loop_vars` is empty, or the structure or a shape changes in the body.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if not nest.flatten(loop_vars):
        raise ValueError("No loop variables provided")
    if executing_eagerly():
        result = _turns(cond, body, loop_vars, maximum_iterations)
        return (
            result
            if return_same_structure or len(loop_vars) > 1
            else _unpacked(result, False, counted=maximum_iterations is not None)
        )
    limit = None if maximum_iterations is None else _count(maximum_iterations)
    if limit is not None and constant_value(limit) is None:
        # Known only when the graph runs: the turns are counted.
        counted = _counted(cond, body, loop_vars, limit)
        invariants = (
            None if shape_invariants is None else (shapes.TensorShape([]), shape_invariants)
        )
        start = (convert_to_tensor(0), loop_vars)
        result = while_loop(*counted, start, invariants, parallel_iterations, back_prop, name=name)
        return _unpacked(result[1], return_same_structure, counted=True)
    with name_scope(name, "while", [v for v in nest.flatten(loop_vars) if has_graph(v)]) as scope:
        loop = _Loop(scope, loop_vars, shape_invariants, limit)
        loop.trace(cond, body)
        if loop.others is not None:
            # A turn makes arrays of its own: what is handed on are lists of their elements.
            items = arrays_as_lists(nest.flatten(loop_vars), loop.others)
            loop = _Loop(scope, nest.pack_sequence_as(loop_vars, items), shape_invariants, limit)
            loop.trace(cond, body)
        outputs = loop.build(parallel_iterations, back_prop)
    result = nest.pack_sequence_as(loop.result, outputs, expand_composites=True)
    return _unpacked(result, return_same_structure, counted=limit is not None)


def _turns(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, limit: Any) -> Any:
    """A loop whose operations run as they are made: Python's."""
    values, turns = loop_vars, 0
    while bool(cond(*values)) and (limit is None or turns < int(limit)):
        values = body(*values)
        if not isinstance(values, (list, tuple)):
            values = (values,)
        nest.assert_same_structure(list(loop_vars), list(values), expand_composites=True)
        turns += 1
    return nest.map_structure(
        lambda v: v if getattr(v, "_is_composite", False) else convert_to_tensor(v), values
    )


def _unpacked(result: Any, keep: bool, counted: bool) -> Any:
    """The only variable of a loop of one tensor; other results as they are.

    In TF the count of turns is a variable too, so there only the user's structure says that there
    is one.
    """
    if keep or not isinstance(result, (list, tuple)) or (counted and len(result) > 1):
        return result
    return result[0] if len(nest.flatten(result, expand_composites=True)) == 1 else result


class _Loop:
    def __init__(self, scope: str, loop_vars: Any, invariants: Any, limit: Any) -> None:
        self.scope = scope
        self.structure = loop_vars
        self.start = [convert_to_tensor(v) for v in nest.flatten(loop_vars, expand_composites=True)]
        self.shapes = self._invariants(invariants)
        self.limit = limit
        self.others: list[Any] | None = None  # what the body returns, with arrays in other memory
        outer = get_default_graph()
        base = scope.replace("/", "_") + str(len(outer.get_operations()))
        self.cond_graph = FuncGraph(base + "_cond", outer, is_loop=True, leaves=True)
        self.body_graph = FuncGraph(base + "_body", outer, is_loop=True, leaves=True)

    def _invariants(self, invariants: Any) -> list[Shape]:
        items = nest.flatten(self.structure)
        if invariants is None:
            return self._as_they_start(items)
        flat = nest.flatten_up_to(self.structure, invariants)
        expanded = [s for i, f in zip(items, flat, strict=True) for s in _expanded(i, f)]
        for tensor, shape in zip(self.start, expanded, strict=True):
            if not shapes.is_compatible(tensor.raw_shape, shape):
                raise ValueError(
                    f"The shape invariant specified for {tensor.name} is not compatible with "
                    "the initial shape of the loop variable. It enters the loop with shape "
                    f"{_text(tensor.raw_shape)}, but the specified shape invariant is "
                    f"{_text(shape)}."
                )
        return expanded

    def _as_they_start(self, items: list[Any]) -> list[Shape]:
        """The shapes of the initial values; composites may have another number of elements."""
        found: list[Shape] = []
        for item in items:
            keeps = getattr(item, "_loop_shapes", None)
            found += [self.start[len(found)].raw_shape] if keeps is None else keeps()
        return found

    def trace(self, cond: Callable[..., Any], body: Callable[..., Any]) -> None:
        with self.cond_graph.as_default():
            arguments = self._arguments(self.cond_graph, "Merge")
            keep = convert_to_tensor(_call(cond, self.structure, arguments))
            second = control_mode.second_version()
            if second:
                keep = control_mode.squeezed(keep)
            elif keep.dtype.base_dtype is not dtypes.bool_:
                raise TypeError(
                    f"Input 'input' of 'LoopCond' Op has type {keep.dtype.name} that does not "
                    "match expected type of bool."
                )
            if not second:
                check_scalar(keep, f"{self.scope}LoopCond", "LoopCond")
            self.cond_graph.outputs = [get("Identity")(keep, name="LoopCond")]
        with self.body_graph.as_default():
            arguments = self._arguments(self.body_graph, "Identity")
            self.body_graph.starts = dict(zip(arguments, self.start, strict=True))
            result = _call(body, self.structure, arguments)
            self.body_graph.outputs = self._results(result)

    def _arguments(self, graph: FuncGraph, name: str) -> list[Tensor]:
        return [
            graph.add_input(t.dtype, shape, name)
            for t, shape in zip(self.start, self.shapes, strict=True)
        ]

    def _results(self, result: Any) -> list[Tensor]:
        items, out = self._checked(result), list[Tensor]()
        if self.others is not None:
            return out
        for item, start, shape in zip(items, self.start, self.shapes, strict=True):
            tensor = convert_to_tensor(item, None if hasattr(item, "dtype") else start.dtype)
            alike = tensor.dtype.base_dtype is start.dtype.base_dtype
            refers = start.dtype._is_ref_dtype
            if not alike or (refers and not tensor.dtype._is_ref_dtype):
                raise TypeError(
                    f"Loop variable {start.name} enters the loop with dtype {start.dtype.name} but "
                    f"has dtype {tensor.dtype.name} after one iteration."
                )
            if not common_shapes.covers(shape, tensor.raw_shape):
                raise ValueError(
                    f"Input tensor '{start.name}' enters the loop with shape {_text(shape)}, but "
                    f"has shape {_text(tensor.raw_shape)} after one iteration. To allow the shape "
                    "to vary across iterations, use the `shape_invariants` argument of "
                    "tf.while_loop to specify a less-specific shape."
                )
            passed_on = get("RefIdentity" if refers else "Identity")
            out.append(passed_on(tensor, name="NextIteration"))
        return out

    def _checked(self, result: Any) -> list[Any]:
        """What the body returns, flat; the first layer may be a list in place of a tuple."""
        if not nest.is_sequence(result):
            result = [result]
        if not isinstance(self.structure, (list, tuple)):
            nest.assert_same_structure(self.structure, result, expand_composites=True)
        elif self._is_the_variable(result):
            result = [result]
        else:
            nest.assert_same_structure(list(self.structure), list(result), expand_composites=True)
        starts, returned = nest.flatten(self.structure), nest.flatten(result)
        if storage_changes(starts, returned):
            self.others = returned
        elif arrays_differ(starts, returned):
            result = nest.pack_sequence_as(result, arrays_as_lists(returned, starts))
        self.result = result
        return nest.flatten(result, expand_composites=True)

    def _is_the_variable(self, result: Any) -> bool:
        """Whether the body returns the only variable itself: a counted loop may."""
        if self.limit is None or len(self.structure) > 1:
            return False
        try:
            nest.assert_same_structure(self.structure[0], result, expand_composites=True)
        except (TypeError, ValueError):
            return False
        return True

    def build(self, parallel_iterations: int, back_prop: bool) -> list[Tensor]:
        graphs = [self.cond_graph, self.body_graph]
        written = self.cond_graph.written() | self.body_graph.written()
        for graph in graphs:
            graph.read_again(written)
            graph.forget_unused()
        awaited = [op for graph in graphs for op in graph.awaited()]
        captures = share_captures(graphs)
        for _, inner in self.body_graph.captures:
            # What is only read passes through unchanged.
            self.body_graph.outputs.append(inner)
        inputs = [*self.start, *captures]
        stateful = self.cond_graph.stateful or self.body_graph.stateful
        op = while_op if stateful else stateless_while_op
        attrs: dict[str, Any] = {}
        if not back_prop:
            attrs["_back_prop"] = False
        if self.limit is not None:
            attrs["_maximum_iterations"] = math.ceil(cast("Any", constant_value(self.limit)))
        with control_dependencies(awaited):
            outputs = op(
                inputs, cond=self.cond_graph, body=self.body_graph,
                output_shapes=[*self.shapes, *[c.raw_shape for c in captures]],
                parallel_iterations=parallel_iterations, name=self.scope, **attrs,
            )  # fmt: skip
        return [self._after(*pair) for pair in zip(self.start, outputs, strict=False)]

    def _after(self, start: Tensor, output: Tensor) -> Tensor:
        """The result of a variable: of a reference the same reference, once the loop is over."""
        if not start.dtype._is_ref_dtype:
            return output
        with control_dependencies([output.op]):
            found: Tensor = get("RefIdentity")(start, name="Exit")
        return found


def _expanded(item: Any, invariant: Any) -> list[Shape]:
    """The shapes of the tensors of a loop variable, of which the user gives one shape or a spec."""
    if isinstance(invariant, TypeSpec):
        if not invariant.is_compatible_with(item):
            raise TypeError(f"TypeSpec {invariant!r} is not compatible with {item!r}")
        return [spec.shape.raw for spec in nest.flatten(invariant._component_specs)]
    keeps = getattr(item, "_loop_shapes", None)
    if keeps is None:
        return [shapes.as_shape(invariant)]
    found: list[Shape] = keeps(shapes.TensorShape(invariant))
    return found


def _count(value: Any) -> Tensor:
    count = convert_to_tensor(value, name="maximum_iterations")
    if count.raw_shape:
        raise ValueError(f"maximum_iterations must be a scalar, saw shape: {count.shape}")
    return count


def _counted(
    cond: Callable[..., Any], body: Callable[..., Any], structure: Any, limit: Tensor
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`cond` and `body` of a loop that also counts its turns, up to `limit`."""

    def keep(turn: Any, state: Any) -> Any:
        return get("LogicalAnd")(
            get("Less")(get("Cast")(turn, DstT=limit.dtype), limit),
            _call(cond, state, nest.flatten(state, expand_composites=True)),
        )

    def step(turn: Any, state: Any) -> Any:
        after = _call(body, state, nest.flatten(state, expand_composites=True))
        if nest.is_sequence(structure) and not nest.is_sequence(after):
            after = nest.pack_sequence_as(structure, [after])
        return turn + 1, after

    return keep, step


def _call(fn: Callable[..., Any], structure: Any, arguments: list[Tensor]) -> Any:
    packed = nest.pack_sequence_as(structure, arguments, expand_composites=True)
    if isinstance(structure, dict) or (
        hasattr(structure, "_fields") and not isinstance(structure, (list, tuple))
    ):
        return fn(packed)
    return fn(*packed) if isinstance(packed, (list, tuple)) else fn(packed)


def _text(shape: Shape) -> str:
    return str(shapes.TensorShape(shape))
