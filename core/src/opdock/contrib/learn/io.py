"""`tf.contrib.learn.io`: batches of examples from files, which threads read and parse ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import opdock as tf
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.queues import FIFOQueue
from opdock.ops.composed.readers import TFRecordReader
from opdock.train.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "queue_parsed_features", "read_batch_examples", "read_batch_features",
    "read_batch_record_features", "read_keyed_batch_examples", "read_keyed_batch_features",
]  # fmt: skip

_KEY: Final = "__key__"  # under which the keys wait in a queue of dictionaries


def read_batch_examples(
    file_pattern: Any, batch_size: Any, reader: Callable[[], Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, num_threads: int = 1,
    read_batch_size: Any = 1, parse_fn: Any = None, name: str | None = None,
    seed: int | None = None,
) -> Any:  # fmt: skip
    """Batches of what a reader reads; `read_keyed_batch_examples` says more."""
    return read_keyed_batch_examples(
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity,
        num_threads, read_batch_size, parse_fn, name, seed,
    )[1]  # fmt: skip


def read_keyed_batch_examples(
    file_pattern: Any, batch_size: Any, reader: Callable[[], Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, num_threads: int = 1,
    read_batch_size: Any = 1, parse_fn: Any = None, name: str | None = None,
    seed: int | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Batches of what a reader reads, with their keys, through queues that threads fill.

    Args:
        file_pattern: a pattern of files, or a list of them.
        batch_size: how many a batch has.
        reader: makes a reader.
        randomize_input: whether files and examples come in random order.
        num_epochs: how often each file is read; None is without end.
        queue_capacity: how many examples may wait.
        num_threads: how many readers there are; more than one mix the order.
        read_batch_size: how many records are read at once.
        parse_fn: what is to be made of what was read; a dictionary, or a tensor.
        name: a name for the operations.
        seed: of the random order.

    Returns:
        The keys, and the batch: strings, or what `parse_fn` gave.

    Raises:
        ValueError: no file matches, or a number makes no sense.
    """
    files = _files(file_pattern, randomize_input)
    _check("queue_capacity", queue_capacity)
    if isinstance(batch_size, Tensor):
        least = int(queue_capacity * 0.4)
    elif batch_size is None or not 0 < batch_size < queue_capacity:
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    else:
        least = max(queue_capacity - 3 * batch_size, batch_size)
    _check("read_batch_size", read_batch_size)
    _check("num_threads", num_threads)
    if num_epochs is not None:
        _check("num_epochs", num_epochs)
    with name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        with name_scope("file_name_queue") as queue_scope:
            queue = tf.train.string_input_producer(
                tf.constant(files, name="input"), num_epochs, randomize_input, seed,
                name=queue_scope,
            )  # fmt: skip
        many = isinstance(read_batch_size, Tensor) or read_batch_size > 1
        with name_scope("read"):
            examples = [
                _read(reader(), queue, read_batch_size if many else None, parse_fn)
                for _ in range(num_threads)
            ]
        options = {
            "capacity": queue_capacity, "enqueue_many": many, "name": scope,
            "allow_smaller_final_batch": num_epochs is not None,
        }  # fmt: skip
        if randomize_input:
            options |= {"min_after_dequeue": least, "seed": seed}
            batch = tf.train.shuffle_batch_join(examples, batch_size, **options)
        else:
            batch = tf.train.batch_join(examples, batch_size, **options)
    if isinstance(batch, dict):
        return batch.pop(_KEY), batch
    keys, read = batch
    return keys, read


def read_batch_features(
    file_pattern: Any, batch_size: Any, features: Any, reader: Callable[[], Any],
    randomize_input: bool = True, num_epochs: int | None = None, queue_capacity: int = 10000,
    feature_queue_capacity: int = 100, reader_num_threads: int = 1, num_enqueue_threads: int = 2,
    parse_fn: Any = None, name: str | None = None, read_batch_size: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Batches of features of `Example`s; `read_keyed_batch_features` says more."""
    return read_keyed_batch_features(
        file_pattern, batch_size, features, reader, randomize_input, num_epochs, queue_capacity,
        reader_num_threads, feature_queue_capacity, num_enqueue_threads, parse_fn, name,
        read_batch_size,
    )[1]  # fmt: skip


def read_keyed_batch_features(
    file_pattern: Any, batch_size: Any, features: Any, reader: Callable[[], Any],
    randomize_input: bool = True, num_epochs: int | None = None, queue_capacity: int = 10000,
    reader_num_threads: int = 1, feature_queue_capacity: int = 100, num_enqueue_threads: int = 2,
    parse_fn: Any = None, name: str | None = None, read_batch_size: Any = None,
) -> tuple[Tensor, dict[str, Any]]:  # fmt: skip
    """Batches of features of `Example`s, with the keys of these, which threads parse ahead.

    Args:
        file_pattern: a pattern of files, or a list of them.
        batch_size: how many a batch has.
        features: what to parse, by name.
        reader: makes a reader.
        randomize_input: whether files and examples come in random order.
        num_epochs: how often each file is read; None is without end.
        queue_capacity: how many examples may wait.
        reader_num_threads: how many readers there are.
        feature_queue_capacity: how many parsed batches may wait.
        num_enqueue_threads: how many threads parse.
        parse_fn: makes `Example`s of what was read.
        name: a name for the operations.
        read_batch_size: how many records are read at once; a batch by default.

    Returns:
        The keys, and tensors and sparse tensors by name.

    Raises:
        ValueError: no file matches, or a number makes no sense.
    """
    with name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples(
            file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity,
            reader_num_threads, batch_size if read_batch_size is None else read_batch_size,
            parse_fn, scope,
        )  # fmt: skip
        parsed = tf.parse_example(examples, features)
        return queue_parsed_features(
            parsed, keys, feature_queue_capacity, num_enqueue_threads, scope
        )


def read_batch_record_features(
    file_pattern: Any, batch_size: Any, features: Any, randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> dict[str, Any]:  # fmt: skip
    """Batches of features of `Example`s in TFRecord files, as `read_batch_features` gives them."""
    return read_batch_features(
        file_pattern, batch_size, features, TFRecordReader, randomize_input, num_epochs,
        queue_capacity, reader_num_threads=reader_num_threads, name=name,
    )  # fmt: skip


def queue_parsed_features(
    parsed_features: dict[str, Any], keys: Tensor | None = None, feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2, name: str | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Puts features through a queue that threads fill, so that steps find them ready.

    Args:
        parsed_features: tensors and sparse tensors by name.
        keys: a tensor that goes with them.
        feature_queue_capacity: how many may wait.
        num_enqueue_threads: how many threads fill the queue.
        name: a name for the operations.

    Returns:
        The keys, or None, and the features as they come out.
    """
    given = list(parsed_features.values()) + ([] if keys is None else [keys])
    with name_scope(name, "queue_parsed_features", given):
        names = sorted(parsed_features)
        parts = {n: _parts(parsed_features[n]) for n in names}
        flat = [t for n in names for t in parts[n]] + ([] if keys is None else [keys])
        queue = FIFOQueue(feature_queue_capacity, [t.dtype for t in flat])
        tf.summary.scalar(
            f"queue/parsed_features/{queue.name}/fraction_of_{feature_queue_capacity}_full",
            tf.cast(queue.size(), tf.float32) * (1.0 / feature_queue_capacity),
        )
        add_queue_runner(
            QueueRunner(
                queue,
                [queue.enqueue(flat) for _ in range(num_enqueue_threads)],
                queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
            )
        )
        out = queue.dequeue()
        out = out if isinstance(out, list) else [out]
        for tensor, before in zip(out, flat, strict=True):
            tensor.set_shape(before.get_shape())
    rest = iter(out)
    features: dict[str, Any] = {}
    for n in names:
        taken = [next(rest) for _ in parts[n]]
        features[n] = SparseTensor(*taken) if len(taken) > 1 else taken[0]
    return next(rest, None), features


def _parts(feature: Any) -> list[Tensor]:
    if isinstance(feature, SparseTensor):
        return [feature.indices, feature.values, feature.dense_shape]
    return [feature]


def _read(reader: Any, queue: Any, count: Any, parse: Any) -> Any:
    keys, read = reader.read(queue) if count is None else reader.read_up_to(queue, count)
    if parse:
        read = parse(read)
        if isinstance(read, dict):
            return {**read, _KEY: keys}
    return keys, read


def _files(pattern: Any, mixed: bool) -> list[str]:
    if isinstance(pattern, list) and not pattern:
        raise ValueError("No files given to dequeue_examples.")
    patterns = pattern if isinstance(pattern, list) else [pattern]
    files = [f for p in patterns for f in tf.gfile.Glob(p)]
    if not files:
        raise ValueError(f"No files match {pattern}.")
    return files if mixed else sorted(files)


def _check(name: str, number: Any) -> None:
    if not isinstance(number, Tensor) and (not number or number <= 0):
        raise ValueError(f"Invalid {name} {number}.")
