"""Attributes and op definitions between native values and TF's protobufs.

Native values: DType, raw shape tuple or None, str (bytes when not UTF-8), int, float, bool, array
for tensors, FuncGraph for functions, and lists of these. What has no native form stays AttrValue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.opdef import ArgDef, AttrDef, float_attr
from opdock.io import protos
from opdock.io.tensor_proto import decode_array, encode_array
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.graph.nodes.registry import OpSpec

_FIELD = {
    "type": "type", "shape": "shape", "string": "s", "int": "i", "float": "f", "bool": "b",
    "tensor": "tensor", "func": "func",
}  # fmt: skip
_KIND = {field: kind for kind, field in _FIELD.items()}


# ---------------------------------------------------------------- native to proto
def encode_attr(value: Any, attr_type: str | None, functions: Any = None) -> Any:
    """The AttrValue of a native value.

    Args:
        value: the native value; an AttrValue is returned as it is.
        attr_type: the declared type ("int", "list(shape)"); guessed from the value when None.
        functions: maps a FuncGraph to the name of its function in the library being written.

    Raises:
        TypeError: the value fits no attribute type.
    """
    if isinstance(value, protos.AttrValue):
        return value
    attr_type = attr_type or _guess(value)
    out = protos.AttrValue()
    if attr_type.startswith("list("):
        kind = attr_type[5:-1]
        # An empty list is still a list on the wire.
        out.list.SetInParent()
        field = getattr(out.list, _FIELD[kind])
        for item in value:
            field.append(_encode(item, kind, functions))
        return out
    encoded = _encode(value, attr_type, functions)
    field_name = _FIELD[attr_type]
    if attr_type in ("shape", "tensor", "func"):
        getattr(out, field_name).CopyFrom(encoded)
    else:
        setattr(out, field_name, encoded)
    return out


def _encode(value: Any, kind: str, functions: Any) -> Any:
    if kind == "string":
        return value.encode() if isinstance(value, str) else bytes(value)
    if kind == "type":
        return dtypes.as_dtype(value).as_datatype_enum
    if kind == "shape":
        return encode_shape(shapes.as_shape(value))
    if kind == "tensor":
        return value if isinstance(value, protos.TensorProto) else encode_array(np.asarray(value))
    if kind == "func":
        if isinstance(value, protos.NameAttrList):
            return value
        name = value if isinstance(value, str) else functions(value) if functions else None
        return protos.NameAttrList(name=name or value.func_name)
    if kind == "int":
        return int(value)
    return float(value) if kind == "float" else bool(value)


def _guess(value: Any) -> str:
    if isinstance(value, list):
        return f"list({_guess(value[0]) if value else 'string'})"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (str, bytes)):
        return "string"
    if isinstance(value, DType):
        return "type"
    if value is None or isinstance(value, (tuple, shapes.TensorShape)):
        return "shape"
    if isinstance(value, np.ndarray):
        return "tensor"
    if hasattr(value, "func_name"):
        return "func"
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be an attribute.")


def encode_shape(shape: Shape) -> Any:
    """The TensorShapeProto of a raw shape."""
    proto = protos.TensorShapeProto()
    if shape is None:
        proto.unknown_rank = True
        return proto
    proto.SetInParent()
    for size in shape:
        proto.dim.add(size=-1 if size is None else size)
    return proto


# ---------------------------------------------------------------- proto to native
_NATIVE: Final = (str, bytes, int, float, list, tuple, DType)


def native_attr(value: Any, attr_type: str | None = None) -> Any:
    """The native value of an AttrValue; of one that is native already, floats lose what none holds.

    Raises:
        TypeError: the content is not of the declared type.
        ValueError: a tensor's content does not fit its shape.
    """
    # The common ones first, so that building a graph needs no protobuf.
    if isinstance(value, float):
        return float_attr(value)
    if isinstance(value, list) and value and isinstance(value[0], float):
        return [float_attr(v) for v in value]
    if isinstance(value, _NATIVE) or not isinstance(value, protos.AttrValue):
        return value
    field = value.WhichOneof("value")
    if field == "list":
        return _native_list(value.list, attr_type)
    if field is None:
        # A message whose only content is empty may be absent on the wire.
        if attr_type is not None and attr_type.startswith("list("):
            return []
        if attr_type == "shape":
            return ()
        raise TypeError("the attribute has no value")
    if field == "placeholder" and attr_type is None:
        return value
    kind = _KIND.get(field, field)
    if attr_type is not None and kind != attr_type:
        raise TypeError(f"the attribute has a value of type {kind}, {attr_type} expected")
    return _native(getattr(value, field), kind)


def _native_list(items: Any, attr_type: str | None) -> list[Any]:
    used = [field.name for field, _ in items.ListFields()]
    if len(used) > 1:
        raise TypeError(f"the attribute lists values of several types: {', '.join(used)}")
    if not used:
        if attr_type is not None and not attr_type.startswith("list("):
            raise TypeError(f"the attribute has an empty list, {attr_type} expected")
        return []
    kind = _KIND[used[0]]
    if attr_type is not None and attr_type != f"list({kind})":
        raise TypeError(f"the attribute has a value of type list({kind}), {attr_type} expected")
    return [_native(item, kind) for item in getattr(items, used[0])]


def _native(value: Any, kind: str) -> Any:
    if kind == "string":
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if kind == "type":
        return dtypes.as_dtype(value).base_dtype
    if kind == "shape":
        return decode_shape(value)
    if kind == "tensor":
        return decode_array(value)
    return value


def decode_shape(proto: Any) -> Shape:
    """The raw shape of a TensorShapeProto.

    Raises:
        ValueError: a dimension is below -1.
    """
    if proto.unknown_rank:
        return None
    sizes = [d.size for d in proto.dim]
    if any(s < -1 for s in sizes):
        raise ValueError(f"A shape has the dimensions {sizes}; -1 stands for an unknown one")
    return tuple(None if s < 0 else s for s in sizes)


# ---------------------------------------------------------------- definitions
def to_op_def(spec: OpSpec) -> Any:
    """An op's definition as TF's OpDef."""
    definition = spec.definition
    proto = protos.OpDef(
        name=spec.name,
        is_stateful=spec.stateful,
        is_commutative=spec.commutative,
        is_aggregate=spec.aggregate,
        allows_uninitialized_input=spec.allows_uninitialized_input,
    )
    for arg in definition.inputs:
        _encode_arg(arg, proto.input_arg.add())
    for arg in definition.outputs:
        _encode_arg(arg, proto.output_arg.add())
    for attr in definition.attrs.values():
        _encode_attr_def(attr, proto.attr.add())
    return proto


def _encode_arg(arg: ArgDef, proto: Any) -> None:
    proto.name = arg.name
    proto.type_attr = arg.type_attr
    proto.number_attr = arg.number_attr
    proto.type_list_attr = arg.type_list_attr
    proto.is_ref = arg.is_ref
    if arg.dtype is not None:
        proto.type = arg.dtype.as_datatype_enum


def _encode_attr_def(attr: AttrDef, proto: Any) -> None:
    proto.name = attr.name
    proto.type = attr.type
    if attr.has_default:
        proto.default_value.CopyFrom(encode_attr(attr.default, attr.type))
    if attr.allowed is not None:
        kind = "type" if "type" in attr.type else "string"
        proto.allowed_values.CopyFrom(encode_attr(list(attr.allowed), f"list({kind})"))
    if attr.minimum is not None:
        proto.has_minimum = True
        proto.minimum = attr.minimum
