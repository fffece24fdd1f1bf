"""What other versions of TensorFlow write: newer ones more attributes, older ones other shapes."""

from __future__ import annotations

from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec
from opdock.graph.serial.attr_proto import encode_attr
from opdock.shapes import Shape

# Attribute -> value at which an op behaves as it did before it had the attribute.
_LATER_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "grad_a": (False, True),  # hints that an operand is a gradient; the product is the same
    "grad_b": (False, True),
    "grad_x": (False, True),
    "grad_y": (False, True),
    "explicit_paddings": ([],),
    "exponential_avg_factor": (1.0,),
    "ensure_minimum_range": (0.01,),
    "narrow_range": (False,),
    "axis": (-1,),
    "allow_missing_files": (False,),
    "registered_name": ("",),
    "half_pixel_centers": (False,),
    "incompatible_shape_error": (True,),
    "batch_dims": (0,),
    "bad_indices_policy": ("",),
    "use_unbounded_threadpool": (False,),
    "Tsegmentids": (dtypes.int32, dtypes.int64),  # see `narrowed`
    "sparse_gradient": (False, True),  # what its gradient looks like
}
# Attributes that say nothing of what is computed, whatever they are.
_REMARKS = frozenset({"debug_name", "metadata"})

_SCALARS_MEAN_UNKNOWN: Final = 21
_SEGMENTS: Final = 2  # which input of the ops on segments of sparse rows has their ids


def check_unknown_attrs(spec: OpSpec, node: str, attrs: dict[str, Any]) -> None:
    """Accepts attributes that the op does not know only with the value that means nothing.

    They stay on the node, so that a graph goes out as it came in. Names with a leading underscore
    belong to nobody's definition.

    Raises:
        ValueError: an unknown attribute has another value.
    """
    known = spec.definition.attrs
    for name, value in attrs.items():
        if name in known or name in _REMARKS or name.startswith("_"):
            continue
        # Floats travel as 32 bits.
        seen = round(value, 6) if isinstance(value, float) else value
        if not any(seen == v for v in _LATER_DEFAULTS.get(name, ())):
            raise ValueError(
                f"NodeDef mentions attr '{name}' not in Op<name={spec.name}>; node '{node}'. (Check"
                " whether your GraphDef-interpreting binary is up to date with your"
                " GraphDef-generating binary.)"
            )


def strip_producer_defaults(graph_def: Any, producer_op_list: Any) -> None:
    """Drops attributes that the writing program declares with the default they have.

    Args:
        graph_def: changed in place, as TF does.
        producer_op_list: the writer's `OpList`.
    """
    definitions = {op.name: op for op in producer_op_list.op}
    for node in graph_def.node:
        producer, own = definitions.get(node.op), registry.find(node.op)
        if producer is None or own is None:
            continue
        for attr in producer.attr:
            if attr.name in own.definition.attrs or attr.name not in node.attr:
                continue
            if not attr.HasField("default_value"):
                continue
            if node.attr[attr.name] == attr.default_value:
                del node.attr[attr.name]


def fill_in_defaults(graph_def: Any) -> None:
    """Writes the default of each attribute that a node does not have, in place.

    Nodes of ops that nobody defines, and of functions, stay as they are.
    """
    for node in graph_def.node:
        spec = registry.find(node.op)
        for attr in () if spec is None else spec.definition.attrs.values():
            if attr.has_default and attr.name not in node.attr:
                node.attr[attr.name].CopyFrom(encode_attr(attr.default, attr.type))


def forget_scalar_shape(op: str, producer: int, attrs: dict[str, Any]) -> None:
    """Takes the shape of a scalar from a placeholder that an old program wrote.

    Up to version 21 of GraphDefs it stood for a shape that is not known.

    Args:
        op: the node's type.
        producer: the version that wrote the GraphDef.
        attrs: changed in place.
    """
    if op == "Placeholder" and producer <= _SCALARS_MEAN_UNKNOWN and attrs.get("shape") == ():
        attrs["shape"] = None


def narrowed(graph: Graph, name: str, inputs: list[Tensor], attrs: dict[str, Any]) -> list[Tensor]:
    """The inputs of a node, its ids of segments as int32: newer versions take int64 too.

    Args:
        graph: gets the cast, where there is one.
        name: the node's.
        inputs: its inputs.
        attrs: its attributes, changed in place.
    """
    if attrs.pop("Tsegmentids", dtypes.int32) != dtypes.int64:
        return inputs
    ids, at = inputs[_SEGMENTS], graph.unique_name(f"{name}/segment_ids_as_int32")
    kinds = {"SrcT": ids.dtype.base_dtype, "DstT": dtypes.int32, "Truncate": False}
    cast = graph._create_op(registry.get("Cast"), at, [ids], kinds, [dtypes.int32])
    return [*inputs[:_SEGMENTS], cast.outputs[0], *inputs[_SEGMENTS + 1 :]]


def refine_shapes(op: Operation, known: list[Shape]) -> None:
    """Adds to the static shapes of an op's outputs what its `_output_shapes` says.

    Raises:
        ValueError: the two contradict each other.
    """
    for tensor, shape in zip(op.outputs, known, strict=False):
        try:
            tensor.set_shape(shape)
        except ValueError as e:
            base = tensor.dtype.base_dtype
            if base is dtypes.resource or (tensor.dtype._is_ref_dtype and base is dtypes.string):
                continue  # A handle: other versions of TF took it for another shape.
            raise ValueError(
                f"Node '{op.name}' has an _output_shapes attribute inconsistent with the"
                f" GraphDef for output #{tensor.value_index}: {e}"
            ) from None
