"""Graphs and nodes as TF's GraphDef and NodeDef, and nodes from flat inputs and attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from opdock.dtypes import DType, proto_name
from opdock.graph.control.function_op import functions_of
from opdock.graph.control.signatures import check_functions
from opdock.graph.nodes import registry
from opdock.graph.nodes.opdef import ArgDef
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec
from opdock.graph.serial.attr_proto import encode_shape, native_attr, to_op_def
from opdock.graph.serial.function_writer import FunctionLibraryWriter
from opdock.graph.serial.node_def import fill_node_def
from opdock.io import protos

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph

__all__ = [
    "build_node", "create_from_flat", "graph_def_size_limit", "native_attr",
    "to_graph_def", "to_op_def",
]  # fmt: skip

# Serialized protobufs end at 2 GB.
graph_def_size_limit: Final = 2**31 - 1
# No real op has more; a damaged attribute must not make us build a list of a billion tensors.
_MAX_ARGUMENTS: Final = 1 << 20


# ---------------------------------------------------------------- graph to GraphDef
def to_graph_def(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """A graph as a GraphDef.

    Args:
        graph: the graph.
        from_version: leave out operations that were there at this `graph.version`.
        add_shapes: write the static shapes as the attribute `_output_shapes`.

    Returns:
        The GraphDef; bodies of functional control flow are in its library.

    Raises:
        ValueError: it would be larger than 2 GB.
    """
    proto = protos.GraphDef()
    proto.versions.CopyFrom(graph.graph_def_versions)
    with graph._lock:  # other threads may build the graph meanwhile
        functions = FunctionLibraryWriter(proto.library, functions_of(graph).values())
        first = None if from_version is None else from_version - graph._edits
        size = 0
        for op in graph.get_operations():
            if first is not None and op._id <= first:
                continue
            node = proto.node.add()
            fill_node_def(op, node, functions.name_of)
            if add_shapes and op.outputs:
                shapes_attr = node.attr["_output_shapes"].list
                shapes_attr.SetInParent()
                shapes_attr.shape.extend(encode_shape(t.raw_shape) for t in op.outputs)
            size += node.ByteSize()
            if size > graph_def_size_limit:
                raise ValueError("GraphDef cannot be larger than 2GB.")
        functions.finish()
    return proto


# ---------------------------------------------------------------- nodes
def create_from_flat(
    graph: Graph, op_type: str, inputs: list[Any], name: str | None, attrs: dict[str, Any]
) -> Operation:
    """Adds a node of a registered type; `attrs` may hold AttrValue or native values.

    Raises:
        NotFoundError: the op type is not registered.
        ValueError, TypeError: inputs or attributes do not fit its definition.
    """
    spec = registry.get(op_type)
    tensors = [t if isinstance(t, Tensor) else graph.as_graph_element(t) for t in inputs]
    name = name or op_type
    unique = name[:-1] if name.endswith("/") else graph.unique_name(name)
    native = {k: native_attr(v, spec.attr_type(k)) for k, v in attrs.items()}
    return build_node(graph, spec, unique, tensors, native)


def build_node(
    graph: Graph, spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any]
) -> Operation:
    """Adds a node whose name is unique already, checking it as TF checks a NodeDef.

    Missing attributes are taken from the inputs' types, then from the defaults.

    Raises:
        ValueError: inputs or attributes do not fit the definition.
    """
    full = _complete(spec, name, inputs, attrs)
    _check_inputs(spec, name, inputs, full)
    check_functions(spec, name, inputs, full)
    outputs = argument_dtypes(spec, name, spec.definition.outputs, full)
    return graph._create_op(spec, name, inputs, full, outputs)


def _complete(
    spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any]
) -> dict[str, Any]:
    definition = spec.definition
    full: dict[str, Any] = {}
    inferred: dict[str, Any] | None = None
    for attr in definition.attrs.values():
        if attr.name in attrs:
            value = attrs[attr.name]
            _check_value(spec, name, attr, value)
        else:
            if inferred is None:
                inferred = _inferred_attrs(spec, inputs)
            if attr.name in inferred:
                value = inferred[attr.name]
            elif attr.has_default:
                value = list(attr.default) if isinstance(attr.default, list) else attr.default
            else:
                raise ValueError(
                    f"NodeDef missing attr '{attr.name}' from {_signature(spec)}; node '{name}'"
                )
        full[attr.name] = value
    full.update((k, v) for k, v in attrs.items() if k not in full)
    return full


def _check_value(spec: OpSpec, name: str, attr: Any, value: Any) -> None:
    if attr.allowed is not None:
        allowed = attr.allowed
        for item in value if attr.type.startswith("list(") else (value,):
            if item not in allowed:
                have = ", ".join(getattr(a, "name", f'"{a}"') for a in allowed)
                raise ValueError(
                    f"Value for attr '{attr.name}' of {getattr(item, 'name', repr(item))} is not in"
                    f" the list of allowed values: {have}; node '{name}', {_signature(spec)}"
                )
    if attr.minimum is not None:
        got = len(value) if attr.type.startswith("list(") else value
        if got < attr.minimum:
            raise ValueError(
                f"Value for attr '{attr.name}' of {got} must be at least minimum {attr.minimum};"
                f" node '{name}', {_signature(spec)}"
            )


def _inferred_attrs(spec: OpSpec, inputs: list[Tensor]) -> dict[str, Any]:
    """What the inputs say about attributes that were not given: possible for single tensors and
    for one list that takes what the single ones leave."""
    out: dict[str, Any] = {}
    args = spec.definition.inputs
    spare = len(inputs) - sum(not a.is_list for a in args)
    lists = [a for a in args if a.is_list]
    at = 0
    for arg in args:
        if not arg.is_list:
            if at < len(inputs) and arg.type_attr:
                out.setdefault(arg.type_attr, inputs[at].dtype.base_dtype)
            at += 1
            continue
        if len(lists) != 1:
            break
        part = inputs[at : at + max(spare, 0)]
        at += len(part)
        if arg.type_list_attr:
            out[arg.type_list_attr] = [t.dtype.base_dtype for t in part]
        else:
            out[arg.number_attr] = len(part)
            if arg.type_attr and part:
                out.setdefault(arg.type_attr, part[0].dtype.base_dtype)
    return out


def _check_inputs(spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any]) -> None:
    expected = argument_dtypes(spec, name, spec.definition.inputs, attrs)
    if len(expected) != len(inputs):
        wanted = ", ".join(map(proto_name, expected))
        raise ValueError(
            f"NodeDef expected inputs '{wanted}' do not match {len(inputs)} inputs specified;"
            f" {_signature(spec)}; node '{name}'"
        )
    for i, (dtype, tensor) in enumerate(zip(expected, inputs, strict=True)):
        got = tensor.dtype
        if got is not dtype and got.base_dtype is not dtype:
            raise ValueError(
                f"Input {i} of node {name} was passed {proto_name(got)} from {tensor.name}"
                f" incompatible with expected {proto_name(dtype)}."
            )


def argument_dtypes(
    spec: OpSpec, name: str, arguments: Sequence[ArgDef], attrs: dict[str, Any]
) -> list[DType]:
    """The types of a node's inputs or outputs, lists flattened."""
    out: list[DType] = []
    for arg in arguments:
        if arg.type_list_attr:
            types = attrs[arg.type_list_attr]
        else:
            count = attrs[arg.number_attr] if arg.number_attr else 1
            if not 0 <= count <= _MAX_ARGUMENTS:
                raise ValueError(f"Node '{name}' would have {count} edges; {_signature(spec)}")
            types = [arg.dtype or attrs[arg.type_attr]] * count
        out.extend(t.as_ref if arg.is_ref else t for t in types)
    return out


def _signature(spec: OpSpec) -> str:
    definition = spec.definition
    ins = ", ".join(a.name for a in definition.inputs)
    outs = ", ".join(a.name for a in definition.outputs)
    attrs = "; ".join(f"attr={a.name}:{a.type}" for a in definition.attrs.values())
    return f"Op<name={spec.name}; signature={ins} -> {outs}; {attrs}>"
