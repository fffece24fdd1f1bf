"""`tf.TypeSpec`: what is known of a value before it exists, and `TensorSpec`, the commonest kind.

A value of several tensors is taken apart into components, each with a spec of its own, and put
together from such components again. What a spec says of itself (`_serialize`) gives it equality,
a hash, its text, pickling, and the spec that two of its kind have in common.
"""

from __future__ import annotations

import copy
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.shapes import TensorShape
from opdock.util import nest


class TypeSpec(metaclass=ABCMeta):
    """What is known of a value: its Python type, and dtype and shape of its tensors."""

    __slots__ = ()
    # In a nested structure a spec stands for a structure of specs, as its value does for tensors.
    _is_composite = True

    def _composite_key(self) -> str:
        return self.value_type.__name__

    def _composite_parts(self) -> Any:
        return self._component_specs

    def _from_parts(self, parts: Any) -> Any:
        return self._from_components(parts)

    # ------------------------------------------------------------ for subclasses to say
    @property
    @abstractmethod
    def value_type(self) -> type:
        """The Python type of the values."""

    @property
    @abstractmethod
    def _component_specs(self) -> Any:
        """The structure of specs that `_to_components` follows."""

    @abstractmethod
    def _to_components(self, value: Any) -> Any:
        """The tensors of a value, without making operations."""

    @abstractmethod
    def _from_components(self, components: Any) -> Any:
        """The value that has these tensors."""

    @abstractmethod
    def _serialize(self) -> tuple[Any, ...]:
        """The arguments from which the constructor makes an equal spec."""

    @classmethod
    def _deserialize(cls, serialization: tuple[Any, ...]) -> Self:
        return cls(*serialization)

    # ------------------------------------------------------------ comparing
    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether some value fits both this spec and the other, or the spec of the value given.

        Raises:
            TypeError: no spec describes the value.
        """
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            other = type_spec_from_value(other)
        return type(self) is type(other) and _compatible(self._serialize(), other._serialize())

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The narrowest spec that both fit.

        Raises:
            ValueError: there is none; the two differ in more than shapes.
        """
        if type(self) is not type(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return self._deserialize(_common(self._serialize(), other._serialize()))

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """The narrowest spec that this one and all others fit; None where there is none."""
        found: TypeSpec = self
        for other in others:
            try:
                found = found.most_specific_compatible_type(other)
            except ValueError:
                return None
        return found

    def _without_tensor_names(self) -> TypeSpec:
        return self

    def _with_tensor_ranks_only(self) -> TypeSpec:
        """The spec of values whose dimensions may have any sizes, as Keras asks for it."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _key(self._serialize()) == _key(other._serialize())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), _key(self._serialize())))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._serialize()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"

    # ------------------------------------------------------------ flat lists of tensors
    @property
    def _flat_tensor_specs(self) -> list[Any]:
        found: list[Any] = []
        for spec in nest.flatten(self._component_specs):
            found += [spec] if isinstance(spec, TensorSpec) else spec._flat_tensor_specs
        return found

    def _to_tensor_list(self, value: Any) -> list[Tensor]:
        parts = nest.flatten_up_to(self._component_specs, self._to_components(value))
        specs = nest.flatten(self._component_specs)
        return [
            tensor
            for spec, part in zip(specs, parts, strict=True)
            for tensor in ([part] if isinstance(spec, TensorSpec) else spec._to_tensor_list(part))
        ]

    def _from_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        """The value that has these tensors; ValueError where they do not fit."""
        expected = self._flat_tensor_specs
        if len(tensor_list) != len(expected):
            raise ValueError("Incompatible input: wrong number of tensors")
        for i, (tensor, spec) in enumerate(zip(tensor_list, expected, strict=True)):
            if not spec.is_compatible_with(tensor):
                raise ValueError(
                    f"Incompatible input: tensor {i} ({tensor}) is incompatible with {spec}"
                )
        return self._from_compatible_tensor_list(tensor_list)

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        parts, left = [], list(tensor_list)
        for spec in nest.flatten(self._component_specs):
            count = len(spec._flat_tensor_specs)
            parts.append(spec._from_compatible_tensor_list(left[:count]))
            del left[:count]
        return self._from_components(nest.pack_sequence_as(self._component_specs, parts))

    # ------------------------------------------------------------ as datasets say it
    def _to_legacy_output_types(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_types()")

    def _to_legacy_output_shapes(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_shapes()")

    def _to_legacy_output_classes(self) -> Any:
        return self.value_type


class BatchableTypeSpec(TypeSpec):
    """A spec whose values can be stacked into a value of the same type, and taken apart again."""

    __slots__ = ()

    @abstractmethod
    def _batch(self, batch_size: int | None) -> TypeSpec:
        """The spec of a stack of such values."""

    @abstractmethod
    def _unbatch(self) -> TypeSpec:
        """The spec of one value of such a stack; ValueError for a scalar."""

    def _to_batched_tensor_list(self, value: Any) -> list[Tensor]:
        tensors = self._to_tensor_list(value)
        if any(t.raw_shape == () for t in tensors):
            raise ValueError(f"Value {value} has insufficient rank for batching.")
        return tensors


class TensorSpec(BatchableTypeSpec):
    """Shape, dtype and name of a tensor.

    Args:
        shape: what `tf.TensorShape` takes; None for an unknown rank.
        dtype: what `tf.as_dtype` takes.
        name: the tensor's name, if it has one.

    Raises:
        TypeError: `shape` is no shape, or `dtype` no dtype.
    """

    __slots__ = ("_dtype", "_name", "_shape")
    _is_composite = False

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """A copy of a spec, under another name if one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """The spec of a tensor; its name is that of the operation. ValueError for anything else."""
        if not isinstance(tensor, Tensor):
            raise ValueError("`tensor` should be a tf.Tensor")
        return TensorSpec(tensor.shape, tensor.dtype, name or tensor.op.name)

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    @property
    def value_type(self) -> type:
        """`tf.Tensor`."""
        return Tensor

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether dtypes agree and shapes may; names do not matter."""
        return (
            isinstance(spec_or_tensor, (TensorSpec, Tensor))
            and self._dtype.is_compatible_with(spec_or_tensor.dtype)
            and self._shape.is_compatible_with(spec_or_tensor.shape)
        )

    def most_specific_compatible_type(self, other: TypeSpec) -> TensorSpec:
        """The narrowest spec that both fit; ValueError where the dtypes differ."""
        if type(self) is not type(other) or self._dtype != other._dtype:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}")
        assert isinstance(other, TensorSpec)
        shape = self._shape.most_specific_compatible_shape(other._shape)
        return TensorSpec(shape, self._dtype, self._name if self._name == other._name else None)

    def _with_tensor_ranks_only(self) -> TensorSpec:
        shape = None if self._shape.ndims is None else [None] * self._shape.ndims
        return TensorSpec(shape, self._dtype, self._name)

    def _without_tensor_names(self) -> TensorSpec:
        found = copy.copy(self)
        found._name = None
        return found

    def __hash__(self) -> int:
        return hash((self._shape.raw, self._dtype))

    def __eq__(self, other: object) -> bool:
        return TypeSpec.__eq__(self, other)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Tensor:
        try:
            tensor = convert_to_tensor(value, self._dtype)
            shapes.merge(tensor.raw_shape, self._shape.raw)
        except (TypeError, ValueError):
            raise ValueError(
                f"Value {value!r} is not convertible to a tensor with dtype {self._dtype} and "
                f"shape {self._shape}."
            ) from None
        return tensor

    def _from_components(self, components: Any) -> Any:
        return components

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Tensor:
        (tensor,) = tensor_list
        tensor.set_shape(self._shape)
        return tensor

    def _batch(self, batch_size: int | None) -> TensorSpec:
        return TensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> TensorSpec:
        if self._shape.ndims == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(self._shape[1:], self._dtype)

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape


# ---------------------------------------------------------------- specs of values
_converters: list[tuple[type, Callable[[Any], TypeSpec], bool]] = []


def register_type_spec_from_value_converter(
    type_object: type, converter_fn: Callable[[Any], TypeSpec], allow_subclass: bool = False
) -> None:
    """Says what spec values of a Python type have; what is registered last is asked first.

    Args:
        type_object: the type.
        converter_fn: takes a value of it.
        allow_subclass: whether values of its subclasses are meant too.
    """
    _converters.append((type_object, converter_fn, allow_subclass))


def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, an array, a value of several tensors, or what converts to a tensor.

    Raises:
        TypeError: there is no spec for such a value.
    """
    found = spec_or_none(value)
    if found is None:
        try:
            found = spec_or_none(convert_to_tensor(value))
        except (TypeError, ValueError):
            raise TypeError(
                f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}"
            ) from None
    assert found is not None
    return found


def spec_or_none(value: Any) -> TypeSpec | None:
    """The spec of a value, or None where it would have to become a tensor first."""
    own = getattr(value, "_type_spec", None)
    if isinstance(own, TypeSpec):
        return own
    if isinstance(value, list) and value:
        spec = _spec_of_list([spec_or_none(v) for v in value])
        if spec is not None:
            return spec
    for type_object, converter, allow_subclass in reversed(_converters):
        if type(value) is type_object or (allow_subclass and isinstance(value, type_object)):
            found: TypeSpec = converter(value)
            return found
    return None


def _spec_of_list(specs: list[TypeSpec | None]) -> TypeSpec | None:
    """The spec of what the values of these specs are when they are stacked, if they can be."""
    common = specs[0]
    if not isinstance(common, BatchableTypeSpec):
        return None
    try:
        for spec in specs[1:]:
            common = common.most_specific_compatible_type(spec)  # type: ignore[arg-type]
        return common._batch(len(specs))  # type: ignore[attr-defined, no-any-return]
    except (TypeError, ValueError):
        return None


register_type_spec_from_value_converter(Tensor, lambda t: TensorSpec(t.shape, t.dtype))
register_type_spec_from_value_converter(np.ndarray, lambda a: TensorSpec(a.shape, a.dtype))


# ---------------------------------------------------------------- what specs say of themselves
def _key(value: Any) -> Any:
    """A part of a serialization as something that can be compared and hashed."""
    if isinstance(value, TensorShape):
        return TensorShape, value.raw
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((k, _key(value[k])) for k in sorted(value))
    if isinstance(value, tuple):
        return tuple(_key(v) for v in value)
    return value


def _compatible(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_compatible(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_compatible(a[k], b[k]) for k in a)
    if isinstance(a, (TypeSpec, TensorShape, DType)):
        return a.is_compatible_with(b)
    return bool(_key(a) == _key(b))


def _common(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        if isinstance(a, tuple) and len(a) == len(b):
            parts = [_common(x, y) for x, y in zip(a, b, strict=True)]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, dict) and a.keys() == b.keys():
            return {k: _common(a[k], b[k]) for k in a}
        if isinstance(a, TensorShape):
            return a.most_specific_compatible_shape(b)
        if isinstance(a, TypeSpec):
            return a.most_specific_compatible_type(b)
        if _key(a) == _key(b):
            return a
    raise ValueError(f"Types are not compatible: {a!r} vs {b!r}")


__all__ = [
    "BatchableTypeSpec", "TensorSpec", "TypeSpec", "register_type_spec_from_value_converter",
    "spec_or_none", "type_spec_from_value",
]  # fmt: skip
