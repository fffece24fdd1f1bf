"""`tf.contrib.data`: `tf.data.experimental` by its older name, and a few more transformations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opdock.data import TFRecordDataset
from opdock.data.dataset_v1 import make_one_shot_iterator
from opdock.data.experimental import (
    AUTOTUNE,
    CheckpointInputPipelineHook,
    Counter,
    CsvDataset,
    Optional,
    RandomDataset,
    Reducer,
    SqlDataset,
    TFRecordWriter,
    bucket_by_sequence_length,
    choose_from_datasets,
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_next_as_optional,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    make_batched_features_dataset,
    make_csv_dataset,
    make_saveable_from_iterator,
    map_and_batch,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
    unique,
)
from opdock.data.experimental.readers import LMDBDataset
from opdock.data.experimental.sharing import sliding_windows
from opdock.data.util import nest
from opdock.ops.array import ensure_shape
from opdock.shapes import as_tensor_shape

__all__ = [
    "AUTOTUNE", "CheckpointInputPipelineHook", "Counter", "CsvDataset", "LMDBDataset", "Optional",
    "RandomDataset", "Reducer", "SqlDataset", "TFRecordWriter", "assert_element_shape",
    "batch_and_drop_remainder", "bucket_by_sequence_length", "choose_from_datasets",
    "copy_to_device", "dense_to_sparse_batch", "enumerate_dataset", "get_next_as_optional",
    "get_single_element", "group_by_reducer", "group_by_window", "ignore_errors",
    "make_batched_features_dataset", "make_csv_dataset", "make_saveable_from_iterator",
    "map_and_batch", "padded_batch_and_drop_remainder", "parallel_interleave",
    "parse_example_dataset", "prefetch_to_device", "read_batch_features", "reduce_dataset",
    "rejection_resample", "sample_from_datasets", "scan", "shuffle_and_repeat",
    "sliding_window_batch", "sloppy_interleave", "unbatch", "unique",
]  # fmt: skip

Apply = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> Apply:
    """Batches of that many elements; what is left at the end is left out."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Apply:
    """Padded batches of that many elements; what is left at the end is left out.

    Args:
        batch_size: how many.
        padded_shapes, padding_values: as of `tf.data.Dataset.padded_batch`.
    """
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
) -> Apply:
    """The elements of the datasets that a function makes, from whichever has one."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Apply:
    """Batches of `window_size` elements that overlap; those that would be smaller are left out.

    Args:
        window_size: how many elements a batch has.
        stride: the older name of `window_shift`.
        window_shift: how many elements after a window the next one begins; 1 by default.
        window_stride: how far apart the elements of a window are.

    Raises:
        ValueError: both `stride` and `window_shift` are given.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = next((s for s in (window_shift, stride) if s is not None), 1)
    return lambda dataset: sliding_windows(dataset, window_size, shift, window_stride)


def assert_element_shape(expected_shapes: Any) -> Apply:
    """The same elements, whose shapes are checked: at once as far as they are known, or in a step.

    Args:
        expected_shapes: a structure of shapes like an element; unknown dimensions fit any.

    Raises:
        ValueError: a shape that is known does not fit.
    """
    flat = [as_tensor_shape(s) for s in nest.flatten(expected_shapes)]

    def checked(*element: Any) -> Any:
        parts = [ensure_shape(t, s) for t, s in zip(nest.flatten(element), flat, strict=True)]
        found = nest.pack_sequence_as(element, parts)
        return found[0] if len(found) == 1 else found

    return lambda dataset: dataset.map(checked)


def reduce_dataset(dataset: Any, reducer: Reducer) -> Any:
    """What a reducer makes of all elements; its final function is not called."""
    return dataset.reduce(reducer.init_func(np.int64(0)), reducer.reduce_func)


def read_batch_features(
    file_pattern: Any, batch_size: int, features: Mapping[str, Any], reader: Any = TFRecordDataset,
    reader_args: Any = None, randomize_input: bool = True, num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:  # fmt: skip
    """The next batch of the Examples in files, as a dictionary of tensors.

    Args:
        file_pattern: files, or patterns of their names.
        batch_size: how many Examples.
        features: what is parsed; see `tf.io.parse_example`.
        reader: makes a dataset of serialized Examples of names of files.
        reader_args: further arguments of that.
        randomize_input: whether Examples are shuffled.
        num_epochs: how often all are read; without end by default.
        capacity: from how many the next one is drawn.
    """
    dataset = make_batched_features_dataset(
        file_pattern, batch_size, features, reader=reader, reader_args=reader_args,
        shuffle=randomize_input, num_epochs=num_epochs, shuffle_buffer_size=capacity,
    )  # fmt: skip
    return make_one_shot_iterator(dataset).get_next()
