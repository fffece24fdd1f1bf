"""Nested structures of Python values, shapes, types and specs as protobufs, and back.

A SavedModel says in this form what a signature takes that is more than one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.io import protos
from opdock.shapes import TensorShape

__all__ = ["NotEncodableError", "StructureCoder", "decode_proto", "encode_structure"]

_SPECS: Final = {
    1: "opdock.graph.nodes.compositespec:SparseTensorSpec",
    2: "opdock.graph.nodes.compositespec:IndexedSlicesSpec",
    3: "opdock.ops.composed.ragged_spec:RaggedTensorSpec",
    5: "opdock.data.spec:DatasetSpec",
    7: "opdock.data.optional:OptionalSpec",
}
"""TF's numbers of the kinds of values, and their specs here."""


class NotEncodableError(Exception):
    """A value has no form as a protobuf."""


class StructureCoder:
    """Writes structures as `StructuredValue`s and reads them.

    A structure is made of lists, tuples, named tuples, dicts with strings for keys, None, booleans,
    integers, floats, strings, `TensorShape`s, `DType`s and specs.
    """

    def encode_structure(self, nested_structure: Any) -> Any:
        """A structure as a `StructuredValue`.

        Raises:
            NotEncodableError: it holds a value of another kind.
        """
        proto = protos.StructuredValue()
        _encode(nested_structure, proto)
        return proto

    def can_encode(self, nested_structure: Any) -> bool:
        """Whether `encode_structure` takes a structure."""
        try:
            self.encode_structure(nested_structure)
        except NotEncodableError:
            return False
        return True

    def decode_proto(self, proto: Any) -> Any:
        """The structure that a `StructuredValue` holds.

        Raises:
            NotEncodableError: it holds nothing that is known.
            ValueError: it holds a spec of a kind that is not known.
        """
        return _decode(proto)


def encode_structure(nested_structure: Any) -> Any:
    """`StructureCoder.encode_structure`."""
    return StructureCoder().encode_structure(nested_structure)


def decode_proto(proto: Any) -> Any:
    """`StructureCoder.decode_proto`."""
    return StructureCoder().decode_proto(proto)


# ---------------------------------------------------------------- to a protobuf
def _encode(value: Any, out: Any) -> None:
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            write(value, out)
            return
    raise NotEncodableError(f"No encoder for object [{value}] of type [{type(value)}].")


def _write_none(value: None, out: Any) -> None:
    out.none_value.SetInParent()


def _write_list(value: list[Any], out: Any) -> None:
    out.list_value.SetInParent()
    for item in value:
        _encode(item, out.list_value.values.add())


def _write_tuple(value: tuple[Any, ...], out: Any) -> None:
    if hasattr(value, "_fields"):
        out.named_tuple_value.name = type(value).__name__
        for key, item in zip(value._fields, value, strict=True):
            pair = out.named_tuple_value.values.add(key=key)
            _encode(item, pair.value)
        return
    out.tuple_value.SetInParent()
    for item in value:
        _encode(item, out.tuple_value.values.add())


def _write_dict(value: dict[Any, Any], out: Any) -> None:
    out.dict_value.SetInParent()
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotEncodableError(f"A dict with the key [{key}] of type [{type(key)}].")
        _encode(item, out.dict_value.fields[key])


def _write_tensor_spec(value: TensorSpec, out: Any) -> None:
    spec = out.tensor_spec_value
    spec.shape.CopyFrom(value.shape.as_proto())
    spec.dtype = value.dtype.as_datatype_enum
    spec.name = value.name or ""


def _write_type_spec(value: TypeSpec, out: Any) -> None:
    for number in _SPECS:
        if type(value) is _spec_class(number):
            out.type_spec_value.type_spec_class = number
            out.type_spec_value.type_spec_class_name = type(value).__name__
            _encode(value._serialize(), out.type_spec_value.type_state)
            return
    raise NotEncodableError(f"No encoder for object [{value}] of type [{type(value)}].")


def _setter(field: str) -> Callable[[Any, Any], None]:
    return lambda value, out: setattr(out, field, value)


# The first that fits: a boolean is an integer too, and a TensorSpec a TypeSpec.
_WRITERS: Final[tuple[tuple[Any, Callable[[Any, Any], None]], ...]] = (
    (type(None), _write_none),
    (list, _write_list),
    (tuple, _write_tuple),
    (dict, _write_dict),
    (bool, _setter("bool_value")),
    (float, _setter("float64_value")),
    (int, _setter("int64_value")),
    (str, _setter("string_value")),
    (TensorShape, lambda value, out: out.tensor_shape_value.CopyFrom(value.as_proto())),
    (DType, lambda value, out: setattr(out, "tensor_dtype_value", value.as_datatype_enum)),
    (TensorSpec, _write_tensor_spec),
    (TypeSpec, _write_type_spec),
)


# ---------------------------------------------------------------- from a protobuf
def _decode(proto: Any) -> Any:
    kind = proto.WhichOneof("kind")
    if kind not in _READERS:
        raise NotEncodableError(f"No decoder for a value of the kind {kind}: {proto}")
    return _READERS[kind](getattr(proto, kind))


def _read_named_tuple(value: Any) -> Any:
    items = {pair.key: _decode(pair.value) for pair in value.values}
    make: Any = NamedTuple
    return make(value.name, [(key, Any) for key in items])(**items)


def _read_tensor_spec(value: Any) -> TensorSpec:
    dtype = dtypes.as_dtype(value.dtype)
    return TensorSpec(TensorShape(value.shape), dtype, value.name or None)


def _read_type_spec(value: Any) -> Any:
    if value.type_spec_class not in _SPECS:
        raise ValueError(
            f"The type '{value.type_spec_class_name}' is not supported by this version. (The "
            "object you are loading must have been created with a newer version of TensorFlow.)"
        )
    return _spec_class(value.type_spec_class)._deserialize(_decode(value.type_state))


def _spec_class(number: int) -> Any:
    module, _, name = _SPECS[number].partition(":")
    return getattr(import_module(module), name)


def _same(value: Any) -> Any:
    return value


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "none_value": lambda value: None,
    "list_value": lambda value: [_decode(item) for item in value.values],
    "tuple_value": lambda value: tuple(_decode(item) for item in value.values),
    "dict_value": lambda value: {key: _decode(item) for key, item in value.fields.items()},
    "named_tuple_value": _read_named_tuple,
    "bool_value": _same,
    "float64_value": _same,
    "int64_value": _same,
    "string_value": _same,
    "tensor_shape_value": TensorShape,
    "tensor_dtype_value": dtypes.as_dtype,
    "tensor_spec_value": _read_tensor_spec,
    "type_spec_value": _read_type_spec,
}
