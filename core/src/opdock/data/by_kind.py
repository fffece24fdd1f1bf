"""Datasets by the names that TF's internal modules give the classes of each kind.

Older libraries make some of them without the methods of `tf.data.Dataset`. Each is a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.data import steps
from opdock.data.dataset import DatasetV2
from opdock.data.sequence import directed
from opdock.data.util.convert import optional_param_to_tensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops import data_elements as elements
from opdock.ops import data_sources as sources

__all__ = [
    "directed_interleave_dataset", "generator_dataset", "map_dataset", "matching_files_dataset",
    "max_intra_op_parallelism_dataset", "parallel_map_dataset", "prefetch_dataset",
    "tf_record_dataset",
]  # fmt: skip

Fn = Callable[..., Any]
_STRING = TensorSpec([], dtypes.string)


def map_dataset(
    input_dataset: Any, map_func: Fn, use_inter_op_parallelism: bool = True,
    preserve_cardinality: bool = False, use_legacy_function: bool = False,
) -> Any:  # fmt: skip
    """`Dataset.map` of one element at a time.

    Args:
        input_dataset: the elements.
        map_func: of an element.
        use_inter_op_parallelism, use_legacy_function: accepted for TF's signature.
        preserve_cardinality: whether the end of a sequence inside the function is an error.
    """
    made = steps.map_(input_dataset, map_func, None, keeps_count=preserve_cardinality)
    return input_dataset._follow(made)


def parallel_map_dataset(
    input_dataset: Any, map_func: Fn, num_parallel_calls: Any,
    use_inter_op_parallelism: bool = True, preserve_cardinality: bool = False,
    use_legacy_function: bool = False,
) -> Any:  # fmt: skip
    """`Dataset.map` of `num_parallel_calls` elements at once; see `map_dataset`."""
    made = steps.map_(input_dataset, map_func, num_parallel_calls, keeps_count=preserve_cardinality)
    return input_dataset._follow(made)


def prefetch_dataset(input_dataset: Any, buffer_size: Any, slack_period: int | None = None) -> Any:
    """`Dataset.prefetch`.

    Args:
        input_dataset: the elements.
        buffer_size: how many may wait.
        slack_period: after how many elements TF waits before it makes the next ones, a hint.
    """
    size = steps.int64(-1 if buffer_size is None else buffer_size, "buffer_size")
    op, period = elements.prefetch_dataset_op, slack_period or 0
    return input_dataset._unchanged(op, size, slack_period=period)


def max_intra_op_parallelism_dataset(input_dataset: Any, max_intra_op_parallelism: Any) -> Any:
    """The same elements: ops share the threads of the session whatever a dataset asks for."""
    most = steps.int64(max_intra_op_parallelism, "max_intra_op_parallelism")
    return input_dataset._unchanged(elements.max_intra_op_parallelism_dataset_op, most)


def generator_dataset(init_args: Any, init_func: Fn, next_func: Fn, finalize_func: Fn) -> Any:
    """What `next_func` gives of the state that `init_func` made, until OutOfRangeError."""
    return DatasetV2._begin(steps.generator(init_args, init_func, next_func, finalize_func))


def directed_interleave_dataset(selector_input: Any, data_inputs: Sequence[Any]) -> Any:
    """The elements of the datasets that another one chooses by number."""
    return selector_input._follow(directed(selector_input, data_inputs), *data_inputs)


def matching_files_dataset(patterns: Any) -> Any:
    """The names of the files that match patterns, in the order of the names."""
    given = convert_to_tensor(patterns, dtype=dtypes.string, name="patterns")
    return DatasetV2._begin(steps.Made(sources.matching_files_dataset_op(given), _STRING))


def tf_record_dataset(filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> Any:
    """The records of files, by one node: file after file."""
    variant = sources.tf_record_dataset_op(
        convert_to_tensor(filenames, dtype=dtypes.string, name="filenames"),
        optional_param_to_tensor("compression_type", compression_type, "", dtypes.string),
        optional_param_to_tensor("buffer_size", buffer_size, 256 * 1024),
    )
    return DatasetV2._begin(steps.Made(variant, _STRING))
