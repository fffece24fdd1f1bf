"""Formats: which inputs, outputs and attributes of an op a data format orders.

`NHWC` has the channels last, `NCHW` first; everything here holds for images, of rank four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import Node
from opdock.dtypes import as_dtype
from opdock.graph.nodes import registry
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.traits import Formatted

OTHER: Final = {"NHWC": "NCHW", "NCHW": "NHWC"}
# What makes a tensor of this format of one of the other.
FROM_OTHER: Final = {"NHWC": (0, 2, 3, 1), "NCHW": (0, 3, 1, 2)}
LAYOUT: Final = "_layout"  # the mark of a transpose, or an op, that is there for a format's sake
_LISTS: Final = ("strides", "dilations", "ksize")

Perm = tuple[int, ...]


def form_of(node: Node) -> Formatted | None:
    """How a node meets its data format, if it could just as well have the other one."""
    form = node.traits.layout
    if not isinstance(form, Formatted) or node.attrs.get("data_format") not in OTHER:
        return None
    data = [node.inputs[i] for i in form.data]
    if any(len(v.shape or ()) != 4 or v.dtype._is_ref_dtype for v in data):
        return None
    if any(vector(node, i) is None for i in form.vectors):
        return None
    return form


def vector(node: Node, index: int) -> list[int] | None:
    """An input with an entry for each dimension, where its value is known."""
    found = node.known_input(index)
    return [int(d) for d in found] if isinstance(found, np.ndarray) else None


def attrs_in(node: Node, data_format: str) -> dict[str, Any]:
    """The attributes of the same op in another data format."""
    perm = FROM_OTHER[data_format]
    attrs = {**node.attrs, "data_format": data_format}
    for name in _LISTS:
        if len(attrs.get(name) or ()) == 4:
            attrs[name] = reordered(attrs[name], perm)
    pads = attrs.get("explicit_paddings")
    if pads:
        pairs = reordered([pads[i : i + 2] for i in range(0, 8, 2)], perm)
        attrs["explicit_paddings"] = [p for pair in pairs for p in pair]
    return attrs


def reordered(values: Sequence[Any], perm: Perm) -> list[Any]:
    """One entry a dimension, as a transpose by `perm` moves the dimensions."""
    return [values[a] for a in perm]


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes `perm`."""
    return tuple(perm.index(a) for a in range(len(perm)))


def followed_by(first: Perm, second: Perm) -> Perm:
    """One permutation for two transposes in this order."""
    return tuple(first[a] for a in second)


def in_other_format(node: Node) -> Callable[..., Any] | None:
    """A decomposition for a device that takes an op only in the other data format.

    Transposes go around it; the layout pass cancels those that meet.
    """
    form = form_of(node)
    if form is None or LAYOUT in node.attrs or node.spec is None:
        return None
    spec, given = node.spec, node.attrs["data_format"]
    wanted = OTHER[given]
    names = set(spec.definition.attrs) - set(spec.definition.inferred)
    attrs = {k: v for k, v in attrs_in(node, wanted).items() if k in names}
    vectors = {i: reordered(vector(node, i) or (), FROM_OTHER[wanted]) for i in form.vectors}

    def build(*tensors: Any) -> Any:
        inputs = list(tensors)
        for i in form.data:
            inputs[i] = _marked(registry.get("Transpose")(inputs[i], FROM_OTHER[wanted]))
        for i, vector in vectors.items():
            inputs[i] = constant(vector, node.inputs[i].dtype)
        made = spec(*inputs, **attrs)
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        _marked(outputs[0])
        for i in form.results:
            outputs[i] = _marked(registry.get("Transpose")(outputs[i], FROM_OTHER[given]))
        return outputs

    return build


def _marked(tensor: Any) -> Any:
    tensor.op.attrs[LAYOUT] = True
    return tensor


PERM_ATTRS: Final = {"Tperm": as_dtype("int32")}
