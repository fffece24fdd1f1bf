"""Functions as op types: what TensorFlow's `Defun` makes, and function libraries bring.

A node whose type is the name of a function stands for the function's operations; `FunctionSpec` is
the definition of that type. It belongs to the graphs that call it, not to the registry of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opdock import dtypes, shapes
from opdock.graph.control.func_graph import FuncGraph, by_inputs
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.opdef import ArgDef, OpDef
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec, get
from opdock.graph.nodes.thread_scopes import alone
from opdock.graph.nodes.traits import Control, Traits

if TYPE_CHECKING:
    from opdock.graph.variables.variable import Variable

__all__ = [
    "DefinedGraph",
    "FunctionSpec",
    "behind",
    "copied_into",
    "copy_operation",
    "copy_operations",
    "functions_of",
    "root_of",
]

_CALL = Traits(builtin=True, control=Control.CALL)


class DefinedGraph(FuncGraph):
    """The body of a function that stands in a library: its names and collections are its own.

    Attributes:
        variables: those that the body got while it was traced.
        by_value: whether what the body takes from outside is computed again within it.
        may_copy: stateful operations outside of which the body may have a copy of its own.
    """

    def __init__(
        self, name: str, outer: Graph, by_value: bool = False, may_copy: Sequence[Operation] = ()
    ) -> None:
        super().__init__(name, outer)
        self._count = [0]
        self._names_in_use = {}
        self._name_stack = ""
        self._seed = None
        # It has variable scopes of its own, over the program's variables.
        self._scoped_state = {k: v for k, v in outer._scoped_state.items() if k == "variable_store"}
        # Variables belong to the program; all else is of no use outside of the body.
        self._collections = {
            key: outer._collections.setdefault(key, []) for key in _VARIABLE_COLLECTIONS
        }
        self.by_value = by_value
        self.may_copy = frozenset(may_copy)
        self.variables: list[Variable] = []

    def _control_input(self, item: Any) -> Operation | None:
        # A call waits for nothing but its arguments, so the body cannot wait for more.
        return Graph._control_input(self, item)

    def _may_repeat(self, tensor: Tensor) -> bool:
        return False  # callers see the parameters

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        if not self.by_value or tensor in self._captured or not self._may_capture(tensor._op.graph):
            return super()._adopt(tensor, user)
        op = tensor.op
        if op.spec.stateful and op not in self.may_copy:
            raise ValueError(
                f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value."
            )
        if op.spec.traits.placeholder:
            raise ValueError(
                f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value."
            )
        inputs = [self._adopt(t, user) for t in op.inputs]
        copied = copy_operation(self, op, inputs, [])
        self._captured.update(zip(op.outputs, copied.outputs, strict=True))
        return self._captured[tensor]


_VARIABLE_COLLECTIONS = (
    "variables", "trainable_variables", "local_variables", "model_variables",
    "moving_average_variables", "global_step",
)  # fmt: skip


class FunctionSpec(OpSpec):
    """The op type that a function is.

    Args:
        function: the function; its name is the op type.
        output_names: the names of the results; `output_<i>` where none are given.
        attrs: attributes of the function for its definition in a library.
        description: what the definition says of the function.
    """

    def __init__(
        self, function: FuncGraph, output_names: Sequence[str] = (),
        attrs: dict[str, Any] | None = None, description: str = "",
    ) -> None:  # fmt: skip
        super().__init__(
            function.func_name, "", "", stateful=function.stateful, commutative=False,
            aggregate=False, allows_uninitialized_input=False, expr=None,
        )  # fmt: skip
        self.function = function
        self.function_attrs = dict(attrs or {})
        self.description = description
        self.output_names = list(output_names) or [
            f"output_{i}" for i in range(len(function.outputs))
        ]
        self.gradient_spec: FunctionSpec | None = None
        self.python_gradient: Callable[..., Any] | None = None
        self.traits = _CALL  # not declared: it is the runtime's own, whoever wrote the function
        self.callee(lambda attrs: self.function)
        self.gradient(_gradient)
        self._def = OpDef(
            self.name,
            tuple(_argument(t.op.name, t) for t in function.inputs),
            tuple(map(_argument, self.output_names, function.outputs)),
            {},
        )


def _argument(name: str, tensor: Tensor) -> ArgDef:
    return ArgDef(name, dtype=tensor.dtype.base_dtype, is_ref=tensor.dtype._is_ref_dtype)


def _gradient(op: Operation, *grads: Any) -> Any:
    """The gradient of a call: the user's own function, or that of the body, differentiated."""
    spec = op.spec
    assert isinstance(spec, FunctionSpec)
    flowing = [
        get("ZerosLike")(y) if g is None else g for y, g in zip(op.outputs, grads, strict=True)
    ]
    if spec.python_gradient is not None:
        return spec.python_gradient(op, *flowing)
    kinds = [_gradient_dtype(t) for t in op.inputs]
    found = get("SymbolicGradient")([*op.inputs, *flowing], Tout=kinds, f=spec.function)
    return [
        g if kind.is_floating or kind.is_complex else None
        for g, kind in zip(found, kinds, strict=True)
    ]


def _gradient_dtype(tensor: Tensor) -> dtypes.DType:
    """The type of the gradient of an argument: that of the variable, where it is a handle."""
    base = tensor.dtype.base_dtype
    return dtypes.float32 if base is dtypes.resource else base


# ---------------------------------------------------------------- the functions of a graph
def root_of(graph: Graph) -> Graph:
    """The graph that a body is, in the end, a part of."""
    root: Any = graph
    while getattr(root, "outer", None) is not None:
        root = root.outer
    return root  # type: ignore[no-any-return]


def functions_of(graph: Graph) -> dict[str, FunctionSpec]:
    """The functions of a graph by name, those of the bodies in it among them."""
    return root_of(graph)._functions


# ---------------------------------------------------------------- copies
def copied_into(function: FuncGraph, arguments: Sequence[Tensor]) -> list[Tensor]:
    """Adds a function's operations to the default graph, with arguments for its parameters.

    Returns:
        The results.
    """
    values: dict[Tensor, Tensor] = dict(zip(function.inputs, arguments, strict=True))
    copy_operations(function, function.needed(), values)
    return [values[t] for t in function.outputs]


def behind(ends: Iterable[Operation], values: Container[Tensor]) -> set[Operation]:
    """The operations that ends depend on, as far as there are no values yet."""
    found: set[Operation] = set()
    stack = list(ends)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            for tensor in op._inputs:
                if tensor not in values:
                    stack.append(tensor._op)
            stack += op._control_inputs
    return found


def copy_operations(
    function: Graph, needed: Container[Operation], values: dict[Tensor, Tensor]
) -> dict[Operation, Operation]:
    """Adds some of a function's operations to the default graph.

    Args:
        function: the function, or another graph.
        needed: which ones; parameters are none of them.
        values: what stands in for tensors of the function; gets the results of the copies, but for
            tensors that have a stand-in.

    Returns:
        The copies.
    """
    graph = get_default_graph()
    made: dict[Operation, Operation] = {}
    for op in by_inputs(function.get_operations(), needed):
        if op.type == "_Arg":
            continue
        waits = [made[c] for c in op.control_inputs if c in made]
        made[op] = copy_operation(graph, op, [values[t] for t in op.inputs], waits)
        for old, new in zip(op.outputs, made[op].outputs, strict=True):
            values.setdefault(old, new)
    return made


def copy_operation(
    graph: Graph, op: Operation, inputs: list[Tensor], waits: Sequence[Operation]
) -> Operation:
    """One operation again, in another graph; the bodies that it runs are copied as well."""
    attrs = {k: _own_body(v, graph) for k, v in op.attrs.items()}
    kinds = [t.dtype for t in op.outputs]
    with alone(graph._scopes), graph.control_dependencies(list(waits)):
        found = graph._create_op(op.spec, graph.unique_name(op.name), inputs, attrs, kinds)
    for new, old in zip(found.outputs, op.outputs, strict=True):
        # Who calls a function with tensors of other shapes than it was made for gets others back.
        if shapes.is_compatible(new.raw_shape, old.raw_shape):
            new.set_shape(old.shape)
    found._set_device(op.device)
    return found


def _own_body(value: Any, outer: Graph) -> Any:
    # A gradient adds outputs to bodies, so no two operations may share one.
    if isinstance(value, list):
        return [_own_body(item, outer) for item in value]
    if not isinstance(value, FuncGraph) or isinstance(value, DefinedGraph):
        return value
    body = FuncGraph(value.func_name, outer, is_loop=value.loop is value)
    with body.as_default():
        for tensor in value.inputs:
            body.add_input(tensor.dtype, tensor.raw_shape)
        body.outputs = copied_into(value, body.inputs)
    return body
