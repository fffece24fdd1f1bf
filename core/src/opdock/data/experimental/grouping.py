"""Transformations of elements in groups: by key, by window, by length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.spec import DatasetSpec
from opdock.data.stateful import state_function
from opdock.data.steps import Made
from opdock.data.util import nest, structure
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.check import assert_less
from opdock.ops.compare import less, less_equal, logical_and
from opdock.ops.data_functions import group_by_reducer_dataset_op, group_by_window_dataset_op
from opdock.ops.gather import gather
from opdock.ops.reduce import reduce_min
from opdock.ops.select import where
from opdock.shapes import TensorShape, dimension_value

__all__ = ["Reducer", "bucket_by_sequence_length", "group_by_reducer", "group_by_window"]

Apply = Callable[[Any], Any]
Fn = Callable[..., Any]
_KEY = TensorSpec([], dtypes.int64)


class Reducer:
    """The three functions of a reduction.

    Args:
        init_func: from a key to the first state.
        reduce_func: from a state and an element to the next state.
        finalize_func: from the last state to the result.
    """

    def __init__(self, init_func: Fn, reduce_func: Fn, finalize_func: Fn) -> None:
        self._functions = init_func, reduce_func, finalize_func

    @property
    def init_func(self) -> Fn:
        """From a key to the first state."""
        return self._functions[0]

    @property
    def reduce_func(self) -> Fn:
        """From a state and an element to the next state."""
        return self._functions[1]

    @property
    def finalize_func(self) -> Fn:
        """From the last state to the result."""
        return self._functions[2]


def group_by_reducer(key_func: Fn, reducer: Reducer) -> Apply:
    """What a reduction leaves of the elements of each key, in the order of the keys.

    Args:
        key_func: from an element to a scalar of int64.
        reducer: the reduction.
    """
    name = "tf.data.experimental.group_by_reducer()"

    def apply(dataset: Any) -> Any:
        key = StructuredFunctionWrapper(key_func, name, dataset=dataset)
        if not _is_key(key.output_structure):
            raise ValueError(
                "`key_func` must return a single tf.int64 tensor. Got "
                f"type={key.output_types} and shape={key.output_shapes}"
            )
        init = StructuredFunctionWrapper(reducer.init_func, name, input_structure=_KEY)
        step, state = state_function(
            reducer.reduce_func, name, init.output_structure, lambda s: (s, dataset.element_spec)
        )
        end = StructuredFunctionWrapper(reducer.finalize_func, name, input_structure=state)
        spec = end.output_structure
        variant = group_by_reducer_dataset_op(
            dataset._variant_tensor, key.captured, init.captured, step.captured, end.captured,
            key_func=key.function, init_func=init.function, reduce_func=step.function,
            finalize_func=end.function, **structure.flat_structure(spec),
        )  # fmt: skip
        return dataset._follow(Made(variant, spec, [key, init, step, end]))

    return apply


def _is_key(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.is_compatible_with(_KEY)


def group_by_window(
    key_func: Fn, reduce_func: Fn, window_size: Any = None, window_size_func: Fn | None = None
) -> Apply:
    """The elements of the datasets that a function makes of windows of elements of one key.

    Args:
        key_func: from an element to a scalar of int64.
        reduce_func: from a key and a dataset of up to a window's size to a dataset.
        window_size: how many elements a window has; or else:
        window_size_func: the same from a key.

    Raises:
        ValueError: neither or both of the last two are given.
    """
    if (window_size is None) == (not window_size_func):
        raise ValueError("Must pass either window_size or window_size_func.")
    name = "tf.data.experimental.group_by_window()"

    def size_of(key: Any) -> Any:
        size = window_size if window_size_func is None else window_size_func(key)
        return convert_to_tensor(size, dtype=dtypes.int64)

    def key_of(*args: Any) -> Any:
        return convert_to_tensor(key_func(*args), dtype=dtypes.int64)

    def apply(dataset: Any) -> Any:
        key = StructuredFunctionWrapper(key_of, name, dataset=dataset)
        if not _is_key(key.output_structure):
            raise ValueError("`key_func` must return a single tf.int64 scalar tensor.")
        inputs = (_KEY, DatasetSpec(dataset.element_spec))
        reduce = StructuredFunctionWrapper(reduce_func, name, input_structure=inputs)
        made = reduce.output_structure
        if not isinstance(made, DatasetSpec):
            raise TypeError("`reduce_func` must return a `Dataset` object.")
        size = StructuredFunctionWrapper(size_of, name, input_structure=_KEY)
        if not _is_key(size.output_structure):
            raise ValueError("`window_size_func` must return a single tf.int64 scalar tensor.")
        spec = made._element_spec
        variant = group_by_window_dataset_op(
            dataset._variant_tensor, key.captured, reduce.captured, size.captured,
            key_func=key.function, reduce_func=reduce.function, window_size_func=size.function,
            **structure.flat_structure(spec),
        )  # fmt: skip
        return dataset._follow(Made(variant, spec, [key, reduce, size]))

    return apply


def bucket_by_sequence_length(
    element_length_func: Fn, bucket_boundaries: Any, bucket_batch_sizes: Any,
    padded_shapes: Any = None, padding_values: Any = None, pad_to_bucket_boundary: bool = False,
    no_padding: bool = False, drop_remainder: bool = False,
) -> Apply:  # fmt: skip
    """Batches of elements of about one length.

    Args:
        element_length_func: from an element to a scalar of int32, its length.
        bucket_boundaries: the lengths at which the next bucket begins.
        bucket_batch_sizes: how many elements a batch of each bucket has.
        padded_shapes, padding_values: as of `Dataset.padded_batch`; by default unknown dimensions
            are padded to the largest element of the batch.
        pad_to_bucket_boundary: whether they are padded to the largest length of the bucket.
        no_padding: whether elements have one shape, or are sparse.
        drop_remainder: whether smaller last batches are dropped.

    Raises:
        ValueError: there are not as many sizes as buckets.
    """
    with name_scope("bucket_by_seq_length"):
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
        sizes = constant(bucket_batch_sizes, dtype=dtypes.int64)
        limits = np.iinfo(np.int32)
        starts, ends = [limits.min, *bucket_boundaries], [*bucket_boundaries, limits.max]

        def bucket_of(*args: Any) -> Any:
            length = element_length_func(*args)
            inside = logical_and(less_equal(starts, length), less(length, ends))
            return reduce_min(where(inside))

        def size_of(bucket: Any) -> Any:
            return gather(sizes, bucket)

        def batch(bucket: Any, dataset: Any) -> Any:
            size = size_of(bucket)
            if no_padding:
                return dataset.batch(size, drop_remainder=drop_remainder)
            filler = None
            if pad_to_bucket_boundary:
                last = constant(len(bucket_batch_sizes) - 1, dtype=dtypes.int64)
                check = assert_less(
                    bucket, last,
                    message="When pad_to_bucket_boundary=True, elements must have length < "
                    "max(bucket_boundaries).",
                )  # fmt: skip
                with control_dependencies([check]):
                    boundaries = constant(bucket_boundaries, dtype=dtypes.int64)
                    filler = gather(boundaries, bucket) - 1
            known = padded_shapes or structure.legacy_shapes(dataset.element_spec)
            shapes = _filled(known, filler)
            return dataset.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

        return lambda dataset: dataset.apply(
            group_by_window(bucket_of, batch, window_size_func=size_of)
        )


def _filled(shapes: Any, filler: Any) -> Any:
    found = [
        [filler if dimension_value(d) is None else d for d in TensorShape(shape)]
        for shape in nest.flatten(shapes)
    ]
    return nest.pack_sequence_as(shapes, found)
