"""Bodies of functional control flow as FunctionDefs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import FunctionSpec
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.attr_proto import encode_attr, encode_shape
from opdock.graph.serial.node_def import fill_node_def, keep_group
from opdock.io import protos


class FunctionLibraryWriter:
    """Collects the functions that a GraphDef mentions and writes them into its library."""

    def __init__(self, library: Any, defined: Iterable[FunctionSpec] = ()) -> None:
        self._library = library
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, FuncGraph]] = []
        self._specs: dict[int, FunctionSpec] = {}
        for spec in defined:
            self._define(spec)

    def _define(self, spec: FunctionSpec) -> None:
        """A function that is an op type keeps its name."""
        self._specs[id(spec.function)] = spec
        self._names[id(spec.function)] = spec.name
        self._waiting.append((spec.name, spec.function))

    def _define_called(self, function: FuncGraph) -> None:
        """Functions that are op types in a body may be those of another graph than the one here."""
        for op in function.get_operations():
            called = op.spec
            if isinstance(called, FunctionSpec) and called.name not in self._names.values():
                self._define(called)

    def name_of(self, function: Any) -> str:
        """The library name of a FuncGraph: its own, numbered when another has it."""
        name = self._names.get(id(function))
        if name is None:
            taken = set(self._names.values())
            name, number = function.func_name, 1
            while name in taken:
                name, number = f"{function.func_name}_{number}", number + 1
            self._names[id(function)] = name
            self._waiting.append((name, function))
        return name

    def finish(self) -> None:
        """Writes the functions, including those that they mention themselves."""
        while self._waiting:
            name, function = self._waiting.pop(0)
            self._define_called(function)
            spec = self._specs.get(id(function))
            proto = self._library.function.add()
            if spec is None:
                write_function(name, function, proto, self.name_of)
                continue
            write_definition(spec, proto, self.name_of)
            if spec.gradient_spec is not None:
                self._library.gradient.add(
                    function_name=name, gradient_func=spec.gradient_spec.name
                )


def function_def(spec: FunctionSpec) -> Any:
    """The definition of a function that is an op type."""
    proto = protos.GraphDef().library.function.add()
    write_definition(spec, proto, None)
    return proto


def write_definition(spec: FunctionSpec, proto: Any, functions: Any) -> None:
    """Fills a FunctionDef from a function that is an op type."""
    write_function(spec.name, spec.function, proto, functions, spec.output_names)
    proto.signature.description = spec.description
    for key, value in spec.function_attrs.items():
        proto.attr[key].CopyFrom(encode_attr(value, None))


def write_function(
    name: str, function: FuncGraph, proto: Any, functions: Any, output_names: Sequence[str] = ()
) -> None:
    """Fills a FunctionDef from a FuncGraph."""
    proto.signature.name = name
    arg_names: dict[Tensor, str] = {}
    for tensor in function.inputs:
        arg_names[tensor] = tensor.op.name
        proto.signature.input_arg.add(
            name=tensor.op.name, type=tensor.dtype.base_dtype.as_datatype_enum,
            is_ref=tensor.dtype._is_ref_dtype,
        )  # fmt: skip
        if tensor.dtype.base_dtype is dtypes.resource:
            # TensorFlow's handles of tensor arrays are vectors of two, others scalars.
            continue
        index = len(proto.signature.input_arg) - 1
        shape_attr = proto.arg_attr[index].attr["_output_shapes"].list
        shape_attr.shape.append(encode_shape(tensor.raw_shape))
    # Readers run every stateful node, so what nobody needs is left out.
    needed = function.needed()
    operations = [op for op in function.get_operations() if op in needed and op.type != "_Arg"]
    names = {op.name for op in operations}
    for op in operations:
        node = proto.node_def.add()
        fill_node_def(op, node, functions)
        del node.input[:]
        node.input.extend(_edge(t, arg_names) for t in op.inputs)
        node.input.extend(f"^{c.name}" for c in op.control_inputs if c.type != "_Arg")
        keep_group(node, names)
    for i, tensor in enumerate(function.outputs):
        out = output_names[i] if output_names else f"output_{i}"
        proto.signature.output_arg.add(name=out, type=tensor.dtype.base_dtype.as_datatype_enum)
        proto.ret[out] = _edge(tensor, arg_names)
    for op in function.targets:
        proto.signature.control_output.append(op.name)
        proto.control_ret[op.name] = op.name
    if any(op.spec.stateful for op in operations):
        proto.signature.is_stateful = True


def _edge(tensor: Tensor, arg_names: dict[Tensor, str]) -> str:
    """A tensor as function bodies name it: "arg", or "node:output:index within it"."""
    name = arg_names.get(tensor)
    if name is not None:
        return name
    arg, index = output_arg(tensor.op, tensor.value_index)
    return f"{tensor.op.name}:{arg}:{index}"


def output_arg(op: Operation, index: int) -> tuple[str, int]:
    """(argument name, index within the argument) of a flat output index."""
    for arg, count in _output_counts(op):
        if index < count:
            return arg, index
        index -= count
    raise IndexError(index)


def _output_counts(op: Operation) -> list[tuple[str, int]]:
    out = []
    for arg in op.spec.definition.outputs:
        if arg.type_list_attr:
            count = len(op.attrs[arg.type_list_attr])
        else:
            count = op.attrs[arg.number_attr] if arg.number_attr else 1
        out.append((arg.name, count))
    return out
