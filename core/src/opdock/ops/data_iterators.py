"""Iterators: places in datasets that sessions keep from step to step."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar
from opdock.ops.support.data import ELEMENTS, gives_elements, working_op
from opdock.shapes import Shape

__all__: list[str] = []

_NAMED = f"shared_name: string, container: string, {ELEMENTS}"
_ANY = "output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []"
_HANDLE = Traits(effect=False, merge=False, fold=False)

iterator_op = define_op("Iterator", "-> handle: resource", _NAMED, stateful=True)
iterator_v2_op = define_op("IteratorV2", "-> handle: resource", _NAMED, stateful=True)
one_shot_iterator_op = define_op(
    "OneShotIterator", "-> handle: resource",
    f"dataset_factory: func, {ELEMENTS}, container: string = '', shared_name: string = ''",
    stateful=True,
)  # fmt: skip
iterator_from_string_handle_op = define_op(
    "IteratorFromStringHandle", "string_handle: string -> resource_handle: resource", _ANY,
    stateful=True,
)  # fmt: skip
iterator_from_string_handle_v2_op = define_op(
    "IteratorFromStringHandleV2", "string_handle: string -> resource_handle: resource", _ANY,
    stateful=True,
)  # fmt: skip
iterator_to_string_handle_op = define_op(
    "IteratorToStringHandle", "resource_handle: resource -> string_handle: string", stateful=True
)
_HANDLES = (
    iterator_op, iterator_v2_op, one_shot_iterator_op, iterator_from_string_handle_op,
    iterator_from_string_handle_v2_op, iterator_to_string_handle_op,
)  # fmt: skip
for _op in _HANDLES:
    _op.declare(_HANDLE).not_differentiable()
    _op.shape(scalar)

anonymous_iterator_op = define_op(
    "AnonymousIterator", "-> handle: resource", ELEMENTS, stateful=True
)
anonymous_iterator_v2_op = define_op(
    "AnonymousIteratorV2", "-> handle: resource, deleter: variant", ELEMENTS, stateful=True
)
for _op in (anonymous_iterator_op, anonymous_iterator_v2_op):
    _op.not_differentiable().shape(lambda sig: [()] * sig.n_outputs)
delete_iterator_op = working_op("DeleteIterator", "handle: resource, deleter: variant ->")
delete_iterator_op.shape(no_outputs)
make_iterator_op = working_op("MakeIterator", "dataset: variant, iterator: resource ->")
make_iterator_op.shape(no_outputs)
iterator_get_next_op = working_op(
    "IteratorGetNext", "iterator: resource -> components: output_types", ELEMENTS, takes=True
)
iterator_get_next_sync_op = working_op(
    "IteratorGetNextSync", "iterator: resource -> components: output_types", ELEMENTS, takes=True
)
dataset_to_single_element_op = working_op(
    "DatasetToSingleElement", "dataset: variant -> components: output_types", ELEMENTS
)
iterator_get_next_as_optional_op = working_op(
    "IteratorGetNextAsOptional", "iterator: resource -> optional: variant", ELEMENTS
)
serialize_iterator_op = working_op(
    "SerializeIterator", "resource_handle: resource -> serialized: variant"
)
deserialize_iterator_op = working_op(
    "DeserializeIterator", "resource_handle: resource, serialized: variant ->"
)
deserialize_iterator_op.shape(no_outputs)
dataset_to_tf_record_op = working_op(
    "DatasetToTFRecord", "input_dataset: variant, filename: string, compression_type: string ->"
)
dataset_to_tf_record_op.shape(no_outputs)
for _op in (iterator_get_next_op, iterator_get_next_sync_op, dataset_to_single_element_op):
    gives_elements(_op)
for _op in (iterator_get_next_as_optional_op, serialize_iterator_op):
    _op.shape(scalar)

dataset_cardinality_op = define_op(
    "DatasetCardinality", "input_dataset: variant -> cardinality: int64"
).not_differentiable()  # fmt: skip
optional_from_value_op = define_op(
    "OptionalFromValue", "components: Toutput_types -> optional: variant",
    "Toutput_types: list(type) >= 1",
).not_differentiable()  # fmt: skip
optional_none_op = define_op("OptionalNone", "-> optional: variant").not_differentiable()
optional_has_value_op = define_op(
    "OptionalHasValue", "optional: variant -> has_value: bool"
).not_differentiable()  # fmt: skip
optional_get_value_op = define_op(
    "OptionalGetValue", "optional: variant -> components: output_types", ELEMENTS
).not_differentiable()  # fmt: skip
for _op in (dataset_cardinality_op, optional_from_value_op, optional_none_op):
    _op.shape(scalar)
gives_elements(optional_get_value_op)


@optional_has_value_op.shape
def _has_value_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return ()


wrap_dataset_variant_op = define_op(
    "WrapDatasetVariant", "input_handle: variant -> output_handle: variant"
).not_differentiable()  # fmt: skip
unwrap_dataset_variant_op = define_op(
    "UnwrapDatasetVariant", "input_handle: variant -> output_handle: variant"
).not_differentiable()  # fmt: skip
for _op in (wrap_dataset_variant_op, unwrap_dataset_variant_op):
    _op.shape(scalar)
