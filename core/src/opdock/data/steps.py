"""The ops of datasets over nested structures: each function makes one node.

They know what a dataset is by its variant and the structure of specs of its elements, and give the
same of the dataset that they make. `opdock.data.dataset` has the class with the methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from opdock import dtypes
from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.spec import DatasetSpec
from opdock.data.statistics import StatsAggregator
from opdock.data.util import nest, random_seed, sparse, structure
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.constant_value import constant_value, known_shape
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops import data_elements as elements
from opdock.ops import data_functions as functions
from opdock.ops import data_sources as sources
from opdock.ops import data_stats as stats
from opdock.shapes import Dimension, TensorShape, as_tensor_shape

__all__ = ["DatasetLike", "Made", "int64"]

Fn = Callable[..., Any]


class DatasetLike(Protocol):
    """What a step needs to know of a dataset."""

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""

    @property
    def _variant_tensor(self) -> Tensor:
        """The variant."""


class Made(NamedTuple):
    """A dataset that was made.

    Attributes:
        variant: the tensor that holds it.
        spec: the structure of specs of its elements.
        functions: the functions that it calls.
    """

    variant: Tensor
    spec: Any
    functions: Sequence[StructuredFunctionWrapper] = ()


def int64(value: Any, name: str) -> Tensor:
    """An argument as a tensor of int64."""
    return convert_to_tensor(value, dtype=dtypes.int64, name=name)


def _flat(spec: Any) -> dict[str, Any]:
    return structure.flat_structure(spec)


def unchanged(op: Any, dataset: DatasetLike, *arguments: Any, **attrs: Any) -> Made:
    """A dataset with the elements of another one, as an op makes it."""
    spec = dataset.element_spec
    return Made(op(dataset._variant_tensor, *arguments, **_flat(spec), **attrs), spec)


def with_aggregator(
    dataset: DatasetLike, aggregator: StatsAggregator, prefix: str, counter_prefix: str
) -> Made:
    """The same elements, whose statistics an aggregator hears."""
    op = stats.set_stats_aggregator_dataset_op
    return unchanged(op, dataset, aggregator._resource, prefix, counter_prefix)


# ---------------------------------------------------------------- sources
def from_tensors(tensors: Any) -> Made:
    """One element."""
    element = structure.normalize_element(tensors)
    spec = structure.type_spec_from_value(element)
    flat = structure.to_tensor_list(spec, element)
    shapes = _flat(spec)["output_shapes"]
    return Made(sources.tensor_dataset_op(flat, output_shapes=shapes), spec)


def from_tensor_slices(tensors: Any) -> Made:
    """The slices of an element."""
    element = structure.normalize_element(tensors)
    batched = structure.type_spec_from_value(element)
    flat = structure.to_batched_tensor_list(batched, element)
    spec = nest.map_structure(lambda s: s._unbatch(), batched)
    size = Dimension(None)
    for tensor in flat:
        size.assert_is_compatible_with(tensor.shape[0])
        size = size.merge_with(tensor.shape[0])
    shapes = _flat(spec)["output_shapes"]
    return Made(sources.tensor_slice_dataset_op(flat, output_shapes=shapes), spec)


def from_sparse_tensor_slices(sparse_tensor: Any) -> Made:
    """The rows of a sparse tensor, as (indices, values, shape)."""
    if not isinstance(sparse_tensor, SparseTensor):
        raise TypeError(f"`sparse_tensor` must be a `tf.SparseTensor` object.Was {sparse_tensor}.")
    indices, dims = sparse_tensor.indices.shape.raw, sparse_tensor.dense_shape.shape.raw
    columns = None if indices is None else indices[1]
    columns = dims[0] if columns is None and dims is not None else columns
    rank = None if columns is None else columns - 1
    spec = (
        TensorSpec([None, rank], dtypes.int64), TensorSpec([None], sparse_tensor.dtype),
        TensorSpec([rank], dtypes.int64),
    )  # fmt: skip
    variant = sources.sparse_tensor_slice_dataset_op(
        sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape
    )
    return Made(variant, spec)


def range_(*args: Any) -> Made:
    """Numbers, as Python's `range` counts them."""
    if not 1 <= len(args) <= 3:
        raise ValueError(f"Invalid arguments to RangeDataset: {args}")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    spec = TensorSpec([], dtypes.int64)
    given = int64(start, "start"), int64(stop, "stop"), int64(step, "step")
    return Made(sources.range_dataset_op(*given, **_flat(spec)), spec)


def random(seed: Any) -> Made:
    """Random numbers of 32 bits."""
    spec = TensorSpec([], dtypes.int64)
    return Made(sources.random_dataset_op(*random_seed.get_seed(seed), **_flat(spec)), spec)


def generator(init_args: Any, init_func: Fn, next_func: Fn, finalize_func: Fn) -> Made:
    """What a function gives until it says that there is no more."""
    name = "Dataset.from_generator()"
    begins = structure.type_spec_from_value(init_args)
    init = StructuredFunctionWrapper(init_func, name, input_structure=begins)
    following = init.output_structure
    step = StructuredFunctionWrapper(next_func, name, input_structure=following)
    end = StructuredFunctionWrapper(finalize_func, name, input_structure=following)
    variant = sources.generator_dataset_op(
        [*structure.to_tensor_list(begins, init_args), *init.captured], step.captured,
        end.captured, init_func=init.function, next_func=step.function,
        finalize_func=end.function, **_flat(step.output_structure),
    )  # fmt: skip
    return Made(variant, step.output_structure, [init, step, end])


# ---------------------------------------------------------------- elements as they are
def zip_(datasets: Any) -> Made:
    """Elements side by side, in the structure of the datasets."""
    for dataset in nest.flatten(datasets):
        if not hasattr(dataset, "_variant_tensor"):
            if isinstance(dataset, list):
                raise TypeError(
                    "The argument to `Dataset.zip()` must be a nested structure of `Dataset` "
                    f"objects. Nested structures do not support Python lists; please use a tuple "
                    f"instead. Got: {datasets}"
                )
            raise TypeError(
                "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects. "
                f"Got: {datasets}"
            )
    spec = nest.pack_sequence_as(datasets, [d.element_spec for d in nest.flatten(datasets)])
    variants = [d._variant_tensor for d in nest.flatten(datasets)]
    return Made(elements.zip_dataset_op(variants, **_flat(spec)), spec)


def concatenate(first: DatasetLike, second: DatasetLike) -> Made:
    """One dataset after the other."""
    a, b = first.element_spec, second.element_spec
    types, others = structure.legacy_types(a), structure.legacy_types(b)
    if types != others:
        raise TypeError(f"Two datasets to concatenate have different types {types} and {others}")
    classes, other_classes = structure.legacy_classes(a), structure.legacy_classes(b)
    if classes != other_classes:
        raise TypeError(
            f"Two datasets to concatenate have different classes {classes} and {other_classes}"
        )
    shapes = [
        x.most_specific_compatible_shape(y)
        for x, y in zip(
            nest.flatten(structure.legacy_shapes(a)), nest.flatten(structure.legacy_shapes(b)),
            strict=True,
        )
    ]  # fmt: skip
    spec = structure.convert_legacy_structure(types, nest.pack_sequence_as(types, shapes), classes)
    variant = elements.concatenate_dataset_op(
        first._variant_tensor, second._variant_tensor, **_flat(spec)
    )
    return Made(variant, spec)


def shuffle(dataset: DatasetLike, buffer_size: Any, seed: Any, reshuffle: bool | None) -> Made:
    """Elements in random order."""
    return unchanged(
        elements.shuffle_dataset_op, dataset, int64(buffer_size, "buffer_size"),
        *random_seed.get_seed(seed),
        reshuffle_each_iteration=True if reshuffle is None else reshuffle,
    )  # fmt: skip


# ---------------------------------------------------------------- batches
def batch(dataset: DatasetLike, batch_size: Any, drop_remainder: Any) -> Made:
    """Stacked elements."""
    size = int64(batch_size, "batch_size")
    drop = convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder")
    known = constant_value(size) if constant_value(drop) else None
    spec = batched_spec(dataset.element_spec, None if known is None else int(known))
    variant = elements.batch_dataset_v2_op(dataset._variant_tensor, size, drop, **_flat(spec))
    return Made(variant, spec)


def batched_spec(spec: Any, size: int | None) -> Any:
    """The structure of specs of batches; TypeError where a part cannot be stacked."""
    return nest.map_structure(lambda s: s._batch(size), spec)


def padded_batch(
    dataset: DatasetLike, batch_size: Any, padded_shapes: Any, padding_values: Any,
    drop_remainder: Any,
) -> Made:  # fmt: skip
    """Stacked elements, padded to shapes."""
    spec = dataset.element_spec
    classes, types = structure.legacy_classes(spec), structure.legacy_types(spec)
    if sparse.any_sparse(classes):
        raise TypeError("Batching of padded sparse tensors is not currently supported")
    size = int64(batch_size, "batch_size")
    if padding_values is None:
        padding_values = nest.map_structure(_no_padding, types)
    shapes = structure.legacy_shapes(spec)
    padded = [
        _padded_shape(wanted, known)
        for known, wanted in zip(
            nest.flatten(shapes), nest.flatten_up_to(shapes, padded_shapes), strict=True
        )
    ]
    values = nest.map_structure_up_to(shapes, _padding_value, padding_values, types)
    drop = convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder")
    dropped = constant_value(drop)
    known = constant_value(size) if dropped else None
    lead = TensorShape([None if known is None else int(known)])
    full = nest.pack_sequence_as(
        shapes, [lead.concatenate(TensorShape(known_shape(p))) for p in padded]
    )
    made = structure.convert_legacy_structure(types, full, classes)
    arguments = dataset._variant_tensor, size, padded, nest.flatten(values)
    output_shapes = _flat(made)["output_shapes"]
    if dropped is not None and not dropped:
        variant = elements.padded_batch_dataset_op(*arguments, output_shapes=output_shapes)
    else:
        variant = elements.padded_batch_dataset_v2_op(*arguments, drop, output_shapes=output_shapes)
    return Made(variant, made)


def _no_padding(dtype: Any) -> Any:
    if dtype.base_dtype is dtypes.string:
        return ""
    if dtype.base_dtype is dtypes.variant:
        raise TypeError(
            "Unable to create padding for field of type 'variant' because t.base_type == "
            f"dtypes.variant == {dtype.base_dtype}."
        )
    return np.zeros((), dtype.as_numpy_dtype)


def _padded_shape(wanted: Any, known: TensorShape) -> Tensor:
    try:
        if isinstance(wanted, Tensor) and wanted.dtype != dtypes.int64:
            raise TypeError("no shape, but numbers")
        as_shape = as_tensor_shape(wanted)
        found = convert_to_tensor(
            [-1 if d is None else d for d in as_shape.as_list()], dtype=dtypes.int64
        )
    except (TypeError, ValueError):
        found = convert_to_tensor(wanted, preferred_dtype=dtypes.int64)
        if found.shape.dims is not None and len(found.shape.dims) != 1:
            raise ValueError(
                f"Padded shape {wanted} must be a 1-D tensor of tf.int64 values, but its shape was "
                f"{found.shape}."
            ) from None
        if found.dtype != dtypes.int64:
            raise TypeError(
                f"Padded shape {wanted} must be a 1-D tensor of tf.int64 values, but its element "
                f"type was {found.dtype.name}."
            ) from None
        as_shape = TensorShape(known_shape(found))
    if not _can_be_padded(known, as_shape):
        raise ValueError(
            f"The padded shape {as_shape} is not compatible with the corresponding input component "
            f"shape {known}."
        )
    return found


def _can_be_padded(known: TensorShape, wanted: TensorShape) -> bool:
    a, b = known.raw, wanted.raw
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(
        x is None or y is None or x <= y for x, y in zip(a, b, strict=True)
    )


def _padding_value(value: Any, dtype: Any) -> Tensor:
    tensor = convert_to_tensor(value, name="padding_value")
    if not tensor.shape.is_compatible_with(TensorShape([])):
        raise ValueError(f"Padding value should be a scalar, but is not: {tensor}")
    if tensor.dtype != dtype:
        raise TypeError(f"Padding value tensor ({tensor}) does not match output type: {dtype}")
    return tensor


def unbatch(dataset: DatasetLike) -> Made:
    """The slices of elements."""
    flat_shapes = structure.get_flat_tensor_shapes(dataset.element_spec)
    if any(s.ndims == 0 for s in flat_shapes):
        raise ValueError("Cannot unbatch an input with scalar components.")
    size = Dimension(None)
    for shape in flat_shapes:
        try:
            size = size.merge_with(shape[0])
        except ValueError:
            raise ValueError(
                "Cannot unbatch an input whose components have different batch sizes."
            ) from None
    spec = nest.map_structure(lambda s: s._unbatch(), dataset.element_spec)
    return Made(elements.unbatch_dataset_op(dataset._variant_tensor, **_flat(spec)), spec)


def window(dataset: DatasetLike, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> Made:
    """Datasets of elements that follow each other."""
    spec = nest.map_structure(DatasetSpec, dataset.element_spec)
    variant = elements.window_dataset_op(
        dataset._variant_tensor, int64(size, "size"),
        int64(size if shift is None else shift, "shift"), int64(stride, "stride"),
        convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder"), **_flat(spec),
    )  # fmt: skip
    return Made(variant, spec)


# ---------------------------------------------------------------- functions
def map_(
    dataset: DatasetLike, map_func: Fn, num_parallel_calls: Any, *,
    keeps_count: bool = False, name: str = "Dataset.map()",
) -> Made:  # fmt: skip
    """A function of each element."""
    function = StructuredFunctionWrapper(map_func, name, dataset=dataset)
    spec = function.output_structure
    attrs = {"f": function.function, "preserve_cardinality": keeps_count, **_flat(spec)}
    if num_parallel_calls is None:
        variant = functions.map_dataset_op(dataset._variant_tensor, function.captured, **attrs)
    else:
        calls = convert_to_tensor(num_parallel_calls, dtype=dtypes.int32, name="num_parallel_calls")
        variant = functions.parallel_map_dataset_op(
            dataset._variant_tensor, function.captured, calls, **attrs
        )
    return Made(variant, spec, [function])


def inner_spec(function: StructuredFunctionWrapper) -> Any:
    """The structure of specs of the elements of the datasets that a function makes.

    Raises:
        TypeError: it makes something else.
    """
    spec = function.output_structure
    if not isinstance(spec, DatasetSpec):
        raise TypeError(f"`map_func` must return a `Dataset` object. Got {type(spec)}")
    return spec._element_spec


def flat_map(dataset: DatasetLike, map_func: Fn) -> Made:
    """The elements of datasets, one dataset after the other."""
    function = StructuredFunctionWrapper(map_func, "Dataset.flat_map()", dataset=dataset)
    spec = inner_spec(function)
    variant = functions.flat_map_dataset_op(
        dataset._variant_tensor, function.captured, f=function.function, **_flat(spec)
    )
    return Made(variant, spec, [function])


def interleave(
    dataset: DatasetLike, map_func: Fn, cycle_length: Any, block_length: Any,
    num_parallel_calls: Any,
) -> Made:  # fmt: skip
    """The elements of datasets in turn."""
    function = StructuredFunctionWrapper(map_func, "Dataset.interleave()", dataset=dataset)
    spec = inner_spec(function)
    cycle = int64(cycle_length, "cycle_length"), int64(block_length, "block_length")
    attrs = {"f": function.function, **_flat(spec)}
    if num_parallel_calls is None:
        variant = functions.interleave_dataset_op(
            dataset._variant_tensor, function.captured, *cycle, **attrs
        )
    else:
        variant = functions.parallel_interleave_dataset_v2_op(
            dataset._variant_tensor, function.captured, *cycle,
            int64(num_parallel_calls, "num_parallel_calls"), **attrs,
        )  # fmt: skip
    return Made(variant, spec, [function])


def filter_(
    dataset: DatasetLike, predicate: Fn, op: Any = functions.filter_dataset_op,
    name: str = "Dataset.filter()",
) -> Made:  # fmt: skip
    """The elements of which a predicate holds, or those before the first of which it does not."""
    function = StructuredFunctionWrapper(predicate, name, dataset=dataset)
    spec = function.output_structure
    if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec([], dtypes.bool)):
        raise ValueError("`predicate` must return a scalar boolean tensor.")
    variant = op(
        dataset._variant_tensor, function.captured, predicate=function.function,
        **_flat(dataset.element_spec),
    )  # fmt: skip
    return Made(variant, dataset.element_spec, [function])
