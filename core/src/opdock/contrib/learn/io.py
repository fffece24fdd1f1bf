"""`tf.contrib.learn.io`: batches of examples of arrays, or read from files by queues and parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import opdock as tf
from opdock.contrib.input_pipeline import seek_next
from opdock.contrib.learn.array_inputs import numpy_input_fn, pandas_input_fn

__all__ = [
    "numpy_input_fn", "pandas_input_fn", "queue_parsed_features", "read_batch_examples",
    "read_batch_features", "read_batch_record_features", "read_keyed_batch_examples",
    "read_keyed_batch_examples_shared_queue", "read_keyed_batch_features",
    "read_keyed_batch_features_shared_queue",
]  # fmt: skip

KEY_FEATURE_NAME: Final = "__key__"

Parse = Callable[[Any], Any] | None


def read_batch_examples(
    file_pattern: Any, batch_size: Any, reader: Callable[[], Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, num_threads: int = 1,
    read_batch_size: int = 1, parse_fn: Parse = None, name: str | None = None,
    seed: int | None = None,
) -> Any:  # fmt: skip
    """Batches of what a reader reads, without keys; see `read_keyed_batch_examples`."""
    return read_keyed_batch_examples(**locals())[1]


def read_keyed_batch_examples(
    file_pattern: Any, batch_size: Any, reader: Callable[[], Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, num_threads: int = 1,
    read_batch_size: int = 1, parse_fn: Parse = None, name: str | None = None,
    seed: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Batches of what a reader reads, with the keys that it gives.

    Args:
        file_pattern: patterns of files.
        batch_size: how many there are in a batch.
        reader: makes a reader.
        randomize_input: whether files and examples are shuffled.
        num_epochs: how many times through the files; without end if None.
        queue_capacity: how many examples wait at most.
        num_threads: how many readers there are.
        read_batch_size: how many are read at once.
        parse_fn: what is made of what is read, or None.
        name: a name for the operations.
        seed: the seed of the shuffling.

    Returns:
        The keys, and the examples or what they were parsed into.

    Raises:
        ValueError: no file matches, or a number does not fit.
    """
    return _read(shared=False, **locals())


def read_keyed_batch_examples_shared_queue(
    file_pattern: Any, batch_size: Any, reader: Callable[[], Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, num_threads: int = 1,
    read_batch_size: int = 1, parse_fn: Parse = None, name: str | None = None,
    seed: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`read_keyed_batch_examples`, the place among the files in variables that workers share."""
    return _read(shared=True, **locals())


def file_names(file_pattern: Any, shuffled: bool) -> list[str]:
    if isinstance(file_pattern, list) and not file_pattern:
        raise ValueError("No files given to dequeue_examples.")
    patterns = file_pattern if isinstance(file_pattern, list) else [file_pattern]
    found = [name for pattern in patterns for name in tf.gfile.Glob(pattern)]
    if not found:
        raise ValueError(f"No files match {file_pattern}.")
    return found if shuffled else sorted(found)


def _check(
    batch_size: Any, queue_capacity: int, read_batch_size: Any, num_threads: int, num_epochs: Any
) -> None:
    if not queue_capacity or queue_capacity <= 0:
        raise ValueError(f"Invalid queue_capacity {queue_capacity}.")
    known = not isinstance(batch_size, tf.Tensor)
    if batch_size is None or (known and not 0 < batch_size < queue_capacity):
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    known = not isinstance(read_batch_size, tf.Tensor)
    if read_batch_size is None or (known and read_batch_size <= 0):
        raise ValueError(f"Invalid read_batch_size {read_batch_size}.")
    if not num_threads or num_threads <= 0:
        raise ValueError(f"Invalid num_threads {num_threads}.")
    if num_epochs is not None and num_epochs <= 0:
        raise ValueError(f"Invalid num_epochs {num_epochs}.")


def _read(
    shared: bool, file_pattern: Any, batch_size: Any, reader: Callable[[], Any],
    randomize_input: bool, num_epochs: int | None, queue_capacity: int, num_threads: int,
    read_batch_size: int, parse_fn: Parse, name: str | None, seed: int | None,
) -> tuple[Any, Any]:  # fmt: skip
    files = file_names(file_pattern, randomize_input)
    _check(batch_size, queue_capacity, read_batch_size, num_threads, num_epochs)
    with tf.name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        with tf.name_scope("file_name_queue") as queue_scope:
            if shared:
                queue = tf.FIFOQueue(1, [tf.string], [[]])
                step = queue.enqueue(seek_next(files, randomize_input, seed, num_epochs))
                tf.train.add_queue_runner(tf.train.QueueRunner(queue, [step]))
            else:
                queue = tf.train.string_input_producer(
                    tf.constant(files, name="input"), shuffle=randomize_input,
                    num_epochs=num_epochs, name=queue_scope, seed=seed,
                )  # fmt: skip
        with tf.name_scope("read"):
            several = read_batch_size > 1
            each = [
                _one(reader(), queue, read_batch_size if several else None, parse_fn)
                for _ in range(num_threads)
            ]
        options: dict[str, Any] = {
            "capacity": queue_capacity, "enqueue_many": several, "name": scope,
            "allow_smaller_final_batch": num_epochs is not None,
        }  # fmt: skip
        if randomize_input:
            least = (
                int(queue_capacity * 0.4)
                if isinstance(batch_size, tf.Tensor)
                else max(queue_capacity - 3 * batch_size, batch_size)
            )
            found = tf.train.shuffle_batch_join(
                each, batch_size, min_after_dequeue=least, seed=seed, **options
            )
        else:
            found = tf.train.batch_join(each, batch_size, **options)
        if isinstance(found, dict):
            return found.pop(KEY_FEATURE_NAME), found
        keys, examples = found
        return keys, examples


def _one(reader: Any, queue: Any, several: int | None, parse_fn: Parse) -> Any:
    keys, examples = reader.read_up_to(queue, several) if several else reader.read(queue)
    parsed = parse_fn(examples) if parse_fn else examples
    if isinstance(parsed, dict):
        return {**parsed, KEY_FEATURE_NAME: keys}
    return keys, parsed


# --------------------------------------------------------------------------------- parsed
def read_keyed_batch_features(
    file_pattern: Any, batch_size: Any, features: Mapping[str, Any], reader: Callable[[], Any],
    randomize_input: bool = True, num_epochs: int | None = None, queue_capacity: int = 10000,
    reader_num_threads: int = 1, feature_queue_capacity: int = 100, num_enqueue_threads: int = 2,
    parse_fn: Parse = None, name: str | None = None, read_batch_size: int | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Batches of the features of Examples, with the keys that the reader gives.

    Args:
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, parse_fn,
            name: as of `read_keyed_batch_examples`.
        features: what is parsed, as of `tf.parse_example`.
        reader_num_threads: how many readers there are.
        feature_queue_capacity: how many parsed batches wait at most.
        num_enqueue_threads: how many threads parse.
        read_batch_size: how many are read at once; a batch if None.
    """
    with tf.name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples(
            file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity,
            reader_num_threads, batch_size if read_batch_size is None else read_batch_size,
            parse_fn, scope,
        )  # fmt: skip
        parsed = tf.parse_example(examples, features)
        return queue_parsed_features(
            parsed, keys, feature_queue_capacity, num_enqueue_threads, scope
        )


def read_keyed_batch_features_shared_queue(
    file_pattern: Any, batch_size: Any, features: Mapping[str, Any], reader: Callable[[], Any],
    randomize_input: bool = True, num_epochs: int | None = None, queue_capacity: int = 10000,
    reader_num_threads: int = 1, feature_queue_capacity: int = 100, num_queue_runners: int = 2,
    parse_fn: Parse = None, name: str | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """`read_keyed_batch_features`, the place among the files in variables that workers share."""
    with tf.name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples_shared_queue(
            file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity,
            reader_num_threads, batch_size, parse_fn, scope,
        )  # fmt: skip
        parsed = tf.parse_example(examples, features)
        return queue_parsed_features(parsed, keys, feature_queue_capacity, num_queue_runners, scope)


def queue_parsed_features(
    parsed_features: Mapping[str, Any], keys: Any = None, feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2, name: str | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """A queue behind parsed features, so that they are parsed ahead.

    Args:
        parsed_features: tensors and sparse tensors by name.
        keys: a tensor that goes with them, or None.
        feature_queue_capacity: how many batches wait at most.
        num_enqueue_threads: how many threads put them in.
        name: a name for the operations.

    Returns:
        The keys, and the features, as they come out.
    """
    beside = [] if keys is None else [keys]
    with tf.name_scope(name, "queue_parsed_features", [*parsed_features.values(), *beside]):
        parts = {key: _parts(parsed_features[key]) for key in sorted(parsed_features)}
        given = [tensor for some in parts.values() for tensor in some] + beside
        queue = tf.FIFOQueue(feature_queue_capacity, [tensor.dtype for tensor in given])
        full = tf.cast(queue.size(), tf.float32) * (1.0 / feature_queue_capacity)
        title = f"queue/parsed_features/{queue.name}/fraction_of_{feature_queue_capacity}_full"
        tf.summary.scalar(title, full)
        closed = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        steps = [queue.enqueue(given) for _ in range(num_enqueue_threads)]
        tf.train.add_queue_runner(
            tf.train.QueueRunner(queue, steps, queue_closed_exception_types=closed)
        )
        taken = queue.dequeue()
        taken = taken if isinstance(taken, list) else [taken]
        for tensor, like in zip(taken, given, strict=True):
            tensor.set_shape(like.shape)
        rest = iter(taken)
        found = {}
        for key, some in parts.items():
            own = [next(rest) for _ in some]
            found[key] = tf.SparseTensor(*own) if len(own) == 3 else own[0]
        return next(rest, None), found


def _parts(tensor: Any) -> list[Any]:
    if isinstance(tensor, tf.SparseTensor):
        return [tensor.indices, tensor.values, tensor.dense_shape]
    return [tensor]


def read_batch_features(
    file_pattern: Any, batch_size: Any, features: Mapping[str, Any], reader: Callable[[], Any],
    randomize_input: bool = True, num_epochs: int | None = None, queue_capacity: int = 10000,
    feature_queue_capacity: int = 100, reader_num_threads: int = 1, num_enqueue_threads: int = 2,
    parse_fn: Parse = None, name: str | None = None, read_batch_size: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Batches of the features of Examples, without keys; see `read_keyed_batch_features`."""
    return read_keyed_batch_features(**locals())[1]


def read_batch_record_features(
    file_pattern: Any, batch_size: Any, features: Mapping[str, Any], randomize_input: bool = True,
    num_epochs: int | None = None, queue_capacity: int = 10000, reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> dict[str, Any]:  # fmt: skip
    """`read_batch_features` of files of records."""
    return read_batch_features(reader=tf.TFRecordReader, **locals())
