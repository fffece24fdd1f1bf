"""Attributes that programs newer than TF 1.15 write and that change nothing at their defaults."""

from __future__ import annotations

from typing import Any, Final

from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec

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
}
# Attributes that say nothing of what is computed, whatever they are.
_REMARKS = frozenset({"debug_name"})

_SCALARS_MEAN_UNKNOWN: Final = 21


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
