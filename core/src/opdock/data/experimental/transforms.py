"""Transformations for `Dataset.apply`: each function returns one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.data import stateful, steps
from opdock.data.devices import copied
from opdock.data.functions import StructuredFunctionWrapper
from opdock.data.interleave import parallel_interleaved
from opdock.data.options import Options
from opdock.data.steps import Made, int64
from opdock.data.util import nest, random_seed, structure
from opdock.data.util.convert import partial_shape_to_tensor
from opdock.graph.nodes.compositespec import SparseTensorSpec
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.ops import data_elements as elements
from opdock.ops import data_functions as functions
from opdock.shapes import TensorShape

__all__ = [
    "copy_to_device", "dense_to_sparse_batch", "enumerate_dataset", "ignore_errors",
    "map_and_batch", "map_and_batch_with_legacy_function", "parallel_interleave",
    "prefetch_to_device", "scan", "shuffle_and_repeat", "take_while", "unbatch", "unique",
]  # fmt: skip

Apply = Callable[[Any], Any]
Fn = Callable[..., Any]


def scan(initial_state: Any, scan_func: Fn) -> Apply:
    """A function of a state and each element gives the next state and an element.

    Args:
        initial_state: a nested structure of tensors.
        scan_func: `(state, element) -> (state, element)`.
    """
    return lambda dataset: dataset._follow(
        stateful.scan(dataset, initial_state, scan_func, keeps_count=True)
    )


def take_while(predicate: Fn) -> Apply:
    """The elements before the first of which a predicate does not hold."""
    op, name = functions.take_while_dataset_op, "tf.data.experimental.take_while()"
    return lambda dataset: dataset._follow(steps.filter_(dataset, predicate, op, name))


def unique() -> Apply:
    """Each element the first time that it comes: scalars of integers or strings."""

    def apply(dataset: Any) -> Any:
        types = structure.legacy_types(dataset.element_spec)
        if types not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise TypeError(
                "`tf.data.experimental.unique()` only supports inputs with a single `tf.int32`, "
                "`tf.int64`, or `tf.string` component."
            )
        return dataset._unchanged(elements.unique_dataset_op)

    return apply


def ignore_errors() -> Apply:
    """The elements that can be made; those in whose place there is an error are left out."""
    return lambda dataset: dataset._unchanged(elements.ignore_errors_dataset_op)


def enumerate_dataset(start: Any = 0) -> Apply:
    """Elements with their numbers; see `Dataset.enumerate`.

    Args:
        start: the first number.
    """
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Apply:
    """The slices of elements; see `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Apply:
    """Elements in random order, `count` times; the buffer goes from one time to the next.

    Args:
        buffer_size: how many elements there are to choose from.
        count: the number of times; None or -1 for ever.
        seed: the seed of the order.
    """

    def apply(dataset: Any) -> Any:
        return dataset._unchanged(
            elements.shuffle_and_repeat_dataset_op, int64(buffer_size, "buffer_size"),
            *random_seed.get_seed(seed), int64(-1 if count is None else count, "count"),
        )  # fmt: skip

    return apply


def parallel_interleave(
    map_func: Fn, cycle_length: Any, block_length: Any = 1, sloppy: Any = False,
    buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Apply:  # fmt: skip
    """`Dataset.interleave` with a thread for each open dataset.

    Args:
        map_func: from an element to a dataset.
        cycle_length: how many datasets are open.
        block_length: how many elements of one come in a row.
        sloppy: whether the order may depend on what is ready; here it never does.
        buffer_output_elements: how many elements of each may wait.
        prefetch_input_elements: accepted for TF's signature.
    """
    return lambda dataset: dataset._follow(
        parallel_interleaved(
            dataset, map_func, cycle_length, block_length, sloppy, buffer_output_elements,
            prefetch_input_elements,
        )
    )  # fmt: skip


def map_and_batch(
    map_func: Fn, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Apply:  # fmt: skip
    """A function of each element, of several at once, and stacks of what it gives.

    Args:
        map_func: of an element.
        batch_size: of how many elements a stack is.
        num_parallel_batches: how many stacks are worked on; or else:
        num_parallel_calls: how many elements are.
        drop_remainder: whether a smaller last stack is dropped.

    Raises:
        ValueError: both numbers are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive."
        )
    if num_parallel_calls is None:
        num_parallel_calls = batch_size * (
            1 if num_parallel_batches is None else num_parallel_batches
        )

    def apply(dataset: Any) -> Any:
        function = StructuredFunctionWrapper(
            map_func, "tf.data.experimental.map_and_batch()", dataset=dataset
        )
        size = int64(batch_size, "batch_size")
        drop = convert_to_tensor(drop_remainder, dtype=dtypes.bool, name="drop_remainder")
        known = constant_value(size) if constant_value(drop) else None
        spec = steps.batched_spec(function.output_structure, None if known is None else int(known))
        variant = functions.map_and_batch_dataset_op(
            dataset._variant_tensor, function.captured, size,
            int64(num_parallel_calls, "num_parallel_calls"), drop, f=function.function,
            preserve_cardinality=True, **structure.flat_structure(spec),
        )  # fmt: skip
        return dataset._follow(Made(variant, spec, [function]))

    return apply


def map_and_batch_with_legacy_function(
    map_func: Fn, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Apply:  # fmt: skip
    """`map_and_batch`, under the name for functions of TF's older kind.

    Args:
        map_func: the function.
        batch_size: the number of elements in a batch.
        num_parallel_batches: how many batches are made at once.
        drop_remainder: whether a last, smaller batch is dropped.
        num_parallel_calls: how many calls run at once, instead of `num_parallel_batches`.
    """
    return map_and_batch(
        map_func, batch_size, num_parallel_batches, drop_remainder, num_parallel_calls
    )


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Apply:
    """Batches of tensors of several sizes, as sparse tensors.

    Args:
        batch_size: of how many elements.
        row_shape: the shape of each row; unknown dimensions fit the largest element.
    """

    def apply(dataset: Any) -> Any:
        types = structure.legacy_types(dataset.element_spec)
        if nest.is_sequence(types):
            raise TypeError(
                "DenseToSparseDataset requires an input whose elements have a single component, "
                f"whereas the input has {types!r}."
            )
        shape = TensorShape([None]).concatenate(
            row_shape if isinstance(row_shape, TensorShape) else TensorShape(row_shape)
        )
        spec = SparseTensorSpec(shape, types)
        variant = elements.dense_to_sparse_batch_dataset_op(
            dataset._variant_tensor, int64(batch_size, "batch_size"),
            partial_shape_to_tensor(row_shape), **structure.flat_structure(spec),
        )  # fmt: skip
        return dataset._follow(Made(variant, spec))

    return apply


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Apply:
    """The same elements, in the memory of a device.

    An iterator of the device, made under `tf.device`, gives them as they lie there. An element with
    a component that can only be in the host's memory, such as a string, stays there, and steps copy
    of it what they need.

    Args:
        target_device: the name of that device.
        source_device: the name of the device where the elements are made.

    Raises:
        ValueError: a name is none of a device.
    """
    for name in (target_device, source_device):
        DeviceSpec.from_string(name)

    def apply(dataset: Any) -> Any:
        options = Options()
        options.experimental_optimization.apply_default_optimizations = False
        options.experimental_optimization.autotune = False
        made = copied(dataset, target_device, source_device)
        return dataset._follow(made).with_options(options)

    return apply


def prefetch_to_device(device: str, buffer_size: Any = None) -> Apply:
    """The same elements, made ahead of work on a device; see `copy_to_device`.

    Args:
        device: the device.
        buffer_size: how many elements are made ahead.
    """
    return lambda dataset: dataset.apply(copy_to_device(device)).prefetch(buffer_size)
