"""`tf.while_loop`: a While op whose condition and body are functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.control import _share_captures, stateless_while_op, while_op
from opdock.ops.registry import get
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
    if maximum_iterations is not None and constant_value(_count(maximum_iterations)) is None:
        # Known only when the graph runs: the turns are counted.
        counted = _counted(cond, body, loop_vars, _count(maximum_iterations))
        invariants = (
            None if shape_invariants is None else (shapes.TensorShape([]), shape_invariants)
        )
        start = (convert_to_tensor(0), loop_vars)
        result = while_loop(*counted, start, invariants, parallel_iterations, back_prop, name=name)[
            1
        ]
        single = isinstance(result, (list, tuple)) and len(result) == 1
        return result[0] if single and not return_same_structure else result
    with name_scope(
        name, "while", [v for v in nest.flatten(loop_vars) if hasattr(v, "graph")]
    ) as scope:
        loop = _Loop(scope, loop_vars, shape_invariants, maximum_iterations)
        loop.trace(cond, body)
        outputs = loop.build(parallel_iterations, back_prop)
    result = nest.pack_sequence_as(loop_vars, outputs, expand_composites=True)
    single = (
        isinstance(result, (list, tuple)) and len(result) == 1 and not hasattr(result, "_fields")
    )
    return result[0] if single and not return_same_structure else result


class _Loop:
    def __init__(self, scope: str, loop_vars: Any, invariants: Any, limit: Any) -> None:
        self.scope = scope
        self.structure = loop_vars
        self.start = [convert_to_tensor(v) for v in nest.flatten(loop_vars, expand_composites=True)]
        self.start = [get("Identity")(t) if t.dtype._is_ref_dtype else t for t in self.start]
        self.shapes = self._invariants(invariants)
        self.limit = limit
        outer = get_default_graph()
        base = scope.replace("/", "_") + str(len(outer.get_operations()))
        self.cond_graph = FuncGraph(base + "_cond", outer)
        self.body_graph = FuncGraph(base + "_body", outer)

    def _invariants(self, invariants: Any) -> list[Shape]:
        if invariants is None:
            return [t.raw_shape for t in self.start]
        flat = nest.flatten_up_to(self.structure, invariants)
        expanded: list[Any] = []
        for item, invariant in zip(nest.flatten(self.structure), flat, strict=True):
            if isinstance(item, (IndexedSlices, SparseTensor)):
                count = len(nest.flatten(item, expand_composites=True))
                rank = shapes.as_shape(invariant)
                expanded += (
                    [None] * count
                    if rank is None
                    else [(None, len(rank)), (None,), (len(rank),)][:count]
                )
            else:
                expanded.append(shapes.as_shape(invariant))
        for tensor, shape in zip(self.start, expanded, strict=True):
            if not shapes.is_compatible(tensor.raw_shape, shape):
                raise ValueError(
                    f"The shape invariant specified for {tensor.name} is not compatible with the "
                    "initial "
                    f"shape of the loop variable. It enters the loop with shape "
                    f"{shapes.text(tensor.raw_shape)}, but the specified shape invariant is "
                    f"{shapes.text(shape)}."
                )
        return expanded

    def trace(self, cond: Callable[..., Any], body: Callable[..., Any]) -> None:
        with self.cond_graph.as_default():
            arguments = self._arguments(self.cond_graph)
            keep = convert_to_tensor(_call(cond, self.structure, arguments))
            if keep.dtype.base_dtype is not dtypes.bool_:
                raise TypeError(
                    f"Input 'input' of 'LoopCond' Op has type {keep.dtype.name} that does not "
                    "match "
                    "expected type of bool."
                )
            if keep.raw_shape is not None and keep.raw_shape != ():
                keep = get("Reshape")(keep, convert_to_tensor([], dtypes.int32))
            self.cond_graph.outputs = [get("Identity")(keep)]
        with self.body_graph.as_default():
            arguments = self._arguments(self.body_graph)
            result = _call(body, self.structure, arguments)
            self.body_graph.outputs = self._results(result)

    def _arguments(self, graph: FuncGraph) -> list[Tensor]:
        return [
            graph.add_input(t.dtype, s, t.op.name.rsplit("/", 1)[-1])
            for t, s in zip(self.start, self.shapes, strict=True)
        ]

    def _results(self, result: Any) -> list[Tensor]:
        items = nest.flatten(result, expand_composites=True)
        wanted = nest.flatten(self.structure, expand_composites=True)
        if isinstance(result, (Tensor, list, tuple)) and len(items) == len(wanted):
            pass
        else:
            nest.assert_same_structure(self.structure, result, expand_composites=True)
        out = []
        for item, start, shape in zip(items, self.start, self.shapes, strict=True):
            tensor = convert_to_tensor(item, None if hasattr(item, "dtype") else start.dtype)
            if tensor.dtype.base_dtype is not start.dtype.base_dtype:
                raise TypeError(
                    f"Loop variable {start.name} enters the loop with dtype {start.dtype.name} "
                    "but has "
                    f"dtype {tensor.dtype.name} after one iteration."
                )
            if not _less_specific(shape, tensor.raw_shape):
                raise ValueError(
                    f"Loop variable {start.name} enters the loop with shape "
                    f"{shapes.text(shape)}, but "
                    f"has shape {shapes.text(tensor.raw_shape)} after one iteration. To allow "
                    "the shape "
                    "to vary across iterations, use the `shape_invariants` argument of "
                    "tf.while_loop to "
                    "specify a less-specific shape."
                )
            out.append(get("Identity")(tensor))
        return out

    def build(self, parallel_iterations: int, back_prop: bool) -> list[Tensor]:
        captures = _share_captures([self.cond_graph, self.body_graph])
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
            attrs["_maximum_iterations"] = _limit(self.limit)
        outputs = op(
            inputs, cond=self.cond_graph, body=self.body_graph,
            output_shapes=[*self.shapes, *[c.raw_shape for c in captures]],
            parallel_iterations=parallel_iterations, name=self.scope, **attrs,
        )  # fmt: skip
        return list(outputs)[: len(self.start)]


def _count(value: Any) -> Tensor:
    return convert_to_tensor(value, None if hasattr(value, "dtype") else dtypes.int32)


def _counted(
    cond: Callable[..., Any], body: Callable[..., Any], structure: Any, limit: Tensor
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`cond` and `body` of a loop that also counts its turns, up to `limit`."""

    def keep(turn: Any, state: Any) -> Any:
        return get("LogicalAnd")(
            get("Less")(turn, get("Cast")(limit, DstT=dtypes.int32)),
            _call(cond, structure, nest.flatten(state, expand_composites=True)),
        )

    def step(turn: Any, state: Any) -> Any:
        after = _call(body, structure, nest.flatten(state, expand_composites=True))
        if nest.is_sequence(structure) and not nest.is_sequence(after):
            after = nest.pack_sequence_as(structure, [after])
        return turn + 1, after

    return keep, step


def _limit(value: Any) -> int:
    return int(constant_value(_count(value)))


def _call(fn: Callable[..., Any], structure: Any, arguments: list[Tensor]) -> Any:
    packed = nest.pack_sequence_as(structure, arguments, expand_composites=True)
    if isinstance(structure, dict) or (
        hasattr(structure, "_fields") and not isinstance(structure, (list, tuple))
    ):
        return fn(packed)
    return fn(*packed) if isinstance(packed, (list, tuple)) else fn(packed)


def _less_specific(wide: Shape, narrow: Shape) -> bool:
    if wide is None:
        return True
    if narrow is None or len(wide) != len(narrow):
        return False
    return all(w is None or w == n for w, n in zip(wide, narrow, strict=True))
