"""What is known of elements: nested structures of `TypeSpec`s, and the tensors they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.data.spec import DatasetSpec
from opdock.data.util import nest
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor, SparseTensorValue
from opdock.graph.nodes.compositespec import SparseTensorSpec
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.nodes.typespec import (
    TensorSpec,
    TypeSpec,
    register_type_spec_from_value_converter,
    spec_or_none,
)
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.composed.tensor_array_spec import TensorArraySpec
from opdock.ops.registry import get
from opdock.shapes import TensorShape

__all__ = [
    "are_compatible", "convert_legacy_structure", "flat_structure", "from_compatible_tensor_list",
    "from_tensor_list", "get_flat_tensor_shapes", "get_flat_tensor_specs",
    "get_flat_tensor_types", "legacy_classes", "legacy_shapes", "legacy_types",
    "normalize_element", "to_batched_tensor_list", "to_tensor_list", "type_spec_from_value",
]  # fmt: skip

# Arrays may be elements: a list of what is in them passes from one step to the next.
register_type_spec_from_value_converter(TensorArray, TensorArraySpec.from_value, True)


def type_spec_from_value(element: Any, use_fallback: bool = True) -> Any:
    """The structure of specs of an element.

    Args:
        element: a nested structure of values.
        use_fallback: whether what has no spec may become a tensor.

    Raises:
        TypeError: a part of it has no spec.
    """
    spec = None if isinstance(element, list) else spec_or_none(element)
    if spec is not None:
        return spec
    if isinstance(element, dict):
        result = element.copy()
        for key in element:
            result[key] = type_spec_from_value(element[key])
        return result
    if isinstance(element, tuple):
        parts = [type_spec_from_value(v) for v in element]
        return type(element)(*parts) if hasattr(element, "_fields") else tuple(parts)
    if hasattr(type(element), "__attrs_attrs__"):
        names = [a.name for a in type(element).__attrs_attrs__]
        return type(element)(*(type_spec_from_value(getattr(element, n)) for n in names))
    if use_fallback:
        try:
            return type_spec_from_value(convert_to_tensor(element), use_fallback=False)
        except (TypeError, ValueError):
            pass
    raise TypeError(
        f"Could not build a TypeSpec for {element!r} with type {type(element).__name__}"
    )


def normalize_element(element: Any) -> Any:
    """An element whose leaves are tensors and values made of tensors."""
    found: list[Any] = []
    with name_scope("normalize_element"):
        for i, part in enumerate(nest.flatten(element)):
            spec = spec_or_none(part)
            if isinstance(part, list):
                spec = spec if isinstance(spec, DatasetSpec) else None
                part = part if spec is None else spec._from_components(_stacked(part))
            if isinstance(part, SparseTensorValue):
                found.append(SparseTensor.from_value(part))
            elif spec is None or isinstance(spec, TensorSpec):
                found.append(convert_to_tensor(part, name=f"component_{i}"))
            else:
                found.append(part)
    return nest.pack_sequence_as(element, found)


def _stacked(datasets: Any) -> Tensor:
    """The variants of a list of datasets, or of a list of such lists, as one tensor."""
    if not isinstance(datasets, list):
        found: Tensor = datasets._variant_tensor
        return found
    stacked: Tensor = get("Pack")([_stacked(d) for d in datasets], axis=0)
    return stacked


def convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """The structure of specs of what TF 1 says in three structures.

    Raises:
        TypeError: there is no spec for a class.
    """
    flat = zip(
        nest.flatten(output_types), nest.flatten(output_shapes), nest.flatten(output_classes),
        strict=True,
    )  # fmt: skip
    return nest.pack_sequence_as(output_classes, [_spec(*parts) for parts in flat])


def _spec(dtype: Any, shape: Any, cls: Any) -> TypeSpec:
    if isinstance(cls, TypeSpec):
        return cls
    if isinstance(cls, type) and issubclass(cls, SparseTensor):
        return SparseTensorSpec(shape, dtype)
    if isinstance(cls, type) and issubclass(cls, Tensor):
        return TensorSpec(shape, dtype)
    if isinstance(cls, type) and issubclass(cls, TensorArray):
        return TensorArraySpec._of_legacy(dtype, shape)
    raise TypeError(f"Could not build a structure for output class {cls!r}")


# ---------------------------------------------------------------- legacy views
def legacy_types(element_spec: Any) -> Any:
    """The structure of element types."""
    return nest.map_structure(lambda s: s._to_legacy_output_types(), element_spec)


def legacy_shapes(element_spec: Any) -> Any:
    """The structure of shapes."""
    return nest.map_structure(lambda s: s._to_legacy_output_shapes(), element_spec)


def legacy_classes(element_spec: Any) -> Any:
    """The structure of Python classes."""
    return nest.map_structure(lambda s: s._to_legacy_output_classes(), element_spec)


# ---------------------------------------------------------------- flat tensors
def get_flat_tensor_specs(element_spec: Any) -> list[Any]:
    """The specs of the tensors that stand for an element."""
    return [t for spec in nest.flatten(element_spec) for t in spec._flat_tensor_specs]


def get_flat_tensor_shapes(element_spec: Any) -> list[TensorShape]:
    """The shapes of these tensors."""
    return [spec.shape for spec in get_flat_tensor_specs(element_spec)]


def get_flat_tensor_types(element_spec: Any) -> list[DType]:
    """The types of these tensors."""
    return [spec.dtype for spec in get_flat_tensor_specs(element_spec)]


def flat_structure(element_spec: Any) -> dict[str, Any]:
    """The attributes by which ops say what their elements are."""
    return {
        "output_types": get_flat_tensor_types(element_spec),
        "output_shapes": [s.raw for s in get_flat_tensor_shapes(element_spec)],
    }


def to_tensor_list(element_spec: Any, element: Any) -> list[Tensor]:
    """The tensors that stand for an element.

    Raises:
        ValueError, TypeError: the element has another structure.
    """
    return _to_list(lambda spec, part: spec._to_tensor_list(part), element_spec, element)


def to_batched_tensor_list(element_spec: Any, element: Any) -> list[Tensor]:
    """The same, for an element of which slices are to be taken.

    Raises:
        ValueError: a part is a scalar, or the element has another structure.
    """
    return _to_list(lambda spec, part: spec._to_batched_tensor_list(part), element_spec, element)


def _to_list(
    encode: Callable[[Any, Any], list[Tensor]], element_spec: Any, element: Any
) -> list[Tensor]:
    nest.assert_same_structure(element_spec, element)
    parts = zip(nest.flatten(element_spec), nest.flatten(element), strict=True)
    return [tensor for spec, part in parts for tensor in encode(spec, part)]


def from_tensor_list(element_spec: Any, tensor_list: Any) -> Any:
    """The element for which tensors stand.

    Raises:
        ValueError: their number, types or shapes are others.
    """
    return _from_list(lambda spec, parts: spec._from_tensor_list(parts), element_spec, tensor_list)


def from_compatible_tensor_list(element_spec: Any, tensor_list: Any) -> Any:
    """The element for which tensors stand that are known to fit.

    Raises:
        ValueError: their number is another one.
    """
    return _from_list(
        lambda spec, parts: spec._from_compatible_tensor_list(parts), element_spec, tensor_list
    )


def _from_list(decode: Callable[[Any, Any], Any], element_spec: Any, tensor_list: Any) -> Any:
    specs, left = nest.flatten(element_spec), list(tensor_list)
    counts = [len(spec._flat_tensor_specs) for spec in specs]
    if sum(counts) != len(left):
        raise ValueError(f"Expected {sum(counts)} tensors but got {len(left)}.")
    found = []
    for spec, count in zip(specs, counts, strict=True):
        found.append(decode(spec, left[:count]))
        del left[:count]
    return nest.pack_sequence_as(element_spec, found)


def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether two structures of specs have the same form and specs that fit each other."""
    try:
        nest.assert_same_structure(spec1, spec2)
    except (TypeError, ValueError):
        return False
    pairs = zip(nest.flatten(spec1), nest.flatten(spec2), strict=True)
    return all(a.is_compatible_with(b) and b.is_compatible_with(a) for a, b in pairs)
