"""Batches of arrays, frames and iterators for placeholders: the feeders of `tf.contrib.learn`.

`feeding.py` has what its estimators use themselves. These are the classes of TensorFlow's module
`data_feeder`, which programs call with a number of classes: labels become one-hot rows for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import opdock as tf
from opdock.contrib.learn.frames import (
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
)

__all__ = [
    "DataFeeder", "StreamingDataFeeder", "check_array", "setup_predict_data_feeder",
    "setup_processor_data_feeder", "setup_train_data_feeder",
]  # fmt: skip


def _each(function: Callable[..., Any], values: Any, *others: Any) -> Any:
    """Applies a function to a value, or to each of a dictionary's with those of others' keys."""
    if not isinstance(values, Mapping):
        return function(values, *others)
    return {
        key: function(value, *(o.get(key) if isinstance(o, Mapping) else o for o in others))
        for key, value in values.items()
    }


def check_array(array: Any, dtype: Any) -> Any:
    """An array or list as an array of a type; anything else, such as a file's data, as it is."""
    return np.asarray(array, dtype) if isinstance(array, (np.ndarray, list)) else array


def _is_iterator(x: Any) -> bool:
    return hasattr(x, "__next__")


def _check_batch(batch_size: int | None) -> None:
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"Invalid batch_size {batch_size}.")


def _input_shape(shape: Sequence[int], batch_size: int) -> list[int]:
    return [batch_size, *(shape[1:] or [1])]


def _output_shape(shape: Sequence[int], classes: int | None, batch_size: int) -> list[int]:
    rest = list(shape[1:])
    if rest[:1] == [1]:
        rest = rest[1:]
    return [batch_size, *rest, *([classes] if classes is not None and classes > 1 else [])]


class DataFeeder:
    """Batches of arrays in memory.

    Args:
        x: the features, an array or frame of examples, or a dictionary of such.
        y: the labels likewise; None where there are none.
        n_classes: how many there are: labels become one-hot. None, 0 and 1 are numbers to regress.
            For a dictionary of labels, a dictionary.
        batch_size: how many examples a batch has; all by default.
        shuffle: whether each epoch is in an order of its own.
        random_state: NumPy's, by which the order is drawn.
        epochs: how many there are; without end for None.

    Attributes:
        n_classes: see above.
        input_shape, output_shape: those of a batch, or dictionaries of them.
    """

    def __init__(
        self, x: Any, y: Any, n_classes: Any, batch_size: int | None = None, shuffle: bool = True,
        random_state: np.random.RandomState | None = None, epochs: int | None = None,
    ) -> None:  # fmt: skip
        y = np.array(y) if isinstance(y, list) else y
        self._x = _each(lambda v: check_array(v, v.dtype), x)
        self._y = None if y is None else _each(lambda v: check_array(v, v.dtype), y)
        if n_classes is not None and y is not None and not isinstance(y, Mapping):
            self._y = check_array(y, np.int64 if n_classes > 1 else np.float32)
        self.n_classes = n_classes
        self.max_epochs = epochs
        self._shapes(
            _each(np.shape, self._x), None if y is None else _each(np.shape, self._y), batch_size
        )
        self._input_dtype = _each(lambda v: _told(v.dtype), self._x)
        self._output_dtype: Any = np.float32
        if y is not None:
            self._output_dtype = _each(lambda v: _told(v.dtype), self._y)
        if isinstance(n_classes, Mapping):
            for key in n_classes.keys() & self._output_dtype.keys():
                self._output_dtype[key] = np.float32
        self._shuffle = shuffle
        self.random_state = random_state or np.random.RandomState(42)
        self.indices = self._order()
        self.offset = self.epoch = 0
        self._epoch_placeholder: Any = None
        self._input_placeholder: Any = None
        self._output_placeholder: Any = None

    x = property(lambda self: self._x, doc="The features.")
    y = property(lambda self: self._y, doc="The labels.")
    shuffle = property(lambda self: self._shuffle, doc="Whether each epoch has its own order.")
    input_dtype = property(lambda self: self._input_dtype, doc="The type of the features.")
    output_dtype = property(lambda self: self._output_dtype, doc="The type of the labels.")
    batch_size = property(lambda self: self._batch_size, doc="How many examples a batch has.")

    def _shapes(self, x_shape: Any, y_shape: Any, batch_size: int | None) -> None:
        _check_batch(batch_size)
        first = next(iter(x_shape.values())) if isinstance(x_shape, Mapping) else x_shape
        self._batch_size = size = first[0] if batch_size is None else batch_size
        self.input_shape = _each(lambda s: _input_shape(s, size), x_shape)
        self.output_shape = None
        if y_shape is not None:
            self.output_shape = _each(
                lambda s, n: _output_shape(s, n, size), y_shape, self.n_classes
            )

    def _size(self) -> int:
        first = next(iter(self._x.values())) if isinstance(self._x, Mapping) else self._x
        return int(first.shape[0])

    def _order(self) -> Any:
        size = self._size()
        return self.random_state.permutation(size) if self._shuffle else np.arange(size)

    def make_epoch_variable(self) -> Any:
        """A placeholder for the number of the epoch, which is fed from then on."""
        self._epoch_placeholder = tf.placeholder(tf.int32, [1], name="epoch")
        return self._epoch_placeholder

    def input_builder(self) -> tuple[Any, Any]:
        """Placeholders for the features and the labels in the default graph."""
        self._input_placeholder = _placeholders(self.input_shape, self._input_dtype, "input")
        self._output_placeholder = _placeholders(self.output_shape, self._output_dtype, "output")
        return self._input_placeholder, self._output_placeholder

    def set_placeholders(self, input_placeholder: Any, output_placeholder: Any) -> None:
        """Feeds these placeholders; that of the labels may be None."""
        self._input_placeholder = input_placeholder
        self._output_placeholder = output_placeholder

    def get_feed_params(self) -> dict[str, Any]:
        """Where the feeder is."""
        return {"epoch": self.epoch, "offset": self.offset, "batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict[str, Any]]:
        """A function that gives a batch as a feed; StopIteration after the last epoch."""
        return self._next_feed

    def _next_feed(self) -> dict[str, Any]:
        if self.max_epochs is not None and self.epoch >= self.max_epochs:
            raise StopIteration
        feed: dict[str, Any] = {}
        if self._epoch_placeholder is not None:
            feed[self._epoch_placeholder.name] = [self.epoch]
        chosen = self.indices[self.offset : self.offset + self._batch_size]
        _fed(feed, self._input_placeholder, _each(lambda v: _rows(v, chosen), self._x))
        if self._output_placeholder is not None:
            labels = _each(
                lambda v, shape, dtype, n: _labels(v, chosen, shape, dtype, n),
                self._y, self.output_shape, self._output_dtype, self.n_classes,
            )  # fmt: skip
            _fed(feed, self._output_placeholder, labels)
        self.offset += self._batch_size
        if self.offset >= self._size():
            self.indices = self._order()
            self.offset = 0
            self.epoch += 1
        return feed


class StreamingDataFeeder(DataFeeder):
    """Batches of what iterators give, which need not be in memory.

    Args:
        x: an iterator of examples, arrays or dictionaries of them.
        y: one of labels likewise, or None.
        n_classes: as for `DataFeeder`.
        batch_size: how many examples a batch has; one by default.
    """

    def __init__(self, x: Any, y: Any, n_classes: Any, batch_size: int | None) -> None:
        x_first, self._x = _peeked(x)
        y_first, self._y = (None, None) if y is None else _peeked(y)
        if isinstance(y_first, Mapping) and n_classes is not None:
            assert isinstance(n_classes, Mapping)
        self.n_classes = n_classes
        y_shape = None if y is None else _each(lambda v: [1, *np.shape(v)], y_first)
        self._shapes(_each(lambda v: [1, *v.shape], x_first), y_shape, batch_size)
        self._input_dtype = _each(lambda v: _told(v.dtype), x_first)
        if y is None:
            self._output_dtype = None
        elif isinstance(y_first, Mapping) or not n_classes:
            self._output_dtype = _each(lambda v: _told(np.asarray(v).dtype), y_first)
        else:
            self._output_dtype = np.float32
        self._epoch_placeholder = None
        self.stopped = False

    def get_feed_params(self) -> dict[str, Any]:
        """The size of a batch."""
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict[str, Any]]:
        """A function that gives a batch as a feed; StopIteration once the iterators are through."""
        self.stopped = False
        return self._next_feed

    def _next_feed(self) -> dict[str, Any]:
        examples = [] if self.stopped else list(itertools.islice(self._x, self._batch_size))
        self.stopped = len(examples) < self._batch_size
        if not examples:
            raise StopIteration
        feed: dict[str, Any] = {}
        _fed(feed, self._input_placeholder, _stacked(
            examples, self.input_shape, self._input_dtype, None))  # fmt: skip
        if self._y is not None:
            labels = list(itertools.islice(self._y, len(examples)))
            _fed(feed, self._output_placeholder, _stacked(
                labels, self.output_shape, self._output_dtype, self.n_classes))  # fmt: skip
        return feed


def _told(dtype: Any) -> Any:
    if dtype == np.float64:
        tf.logging.warn("float64 is not supported by many models, consider casting to float32.")
    return dtype


def _peeked(iterator: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first that an iterator gives, and the iterator as it was."""
    first = next(iterator)
    return first, itertools.chain([first], iterator)


def _placeholders(shape: Any, dtype: Any, name: str) -> Any:
    if shape is None:
        return None
    if isinstance(shape, Mapping):
        return {k: _placeholders(s, dtype[k], f"{name}_{k}") for k, s in shape.items()}
    return tf.placeholder(tf.as_dtype(dtype), [None, *shape[1:]], name=name)


def _fed(feed: dict[str, Any], placeholders: Any, values: Any) -> None:
    if isinstance(values, Mapping):
        for key, value in values.items():
            feed[placeholders[key].name] = value
    else:
        feed[placeholders.name] = values


def _at(data: Any, indices: Any) -> Any:
    return np.asarray(data.iloc[indices] if hasattr(data, "iloc") else data[indices])


def _rows(data: Any, indices: Any) -> Any:
    rows = _at(data, indices)
    return rows.reshape(len(indices), 1) if len(data.shape) == 1 else rows


def _one_hot(labels: Any, classes: int, shape: Sequence[int], dtype: Any) -> Any:
    numbers = np.asarray(labels).astype(np.int64)
    return np.eye(classes, dtype=dtype)[numbers].reshape(len(numbers), *shape[1:])


def _labels(data: Any, indices: Any, shape: Sequence[int], dtype: Any, classes: Any) -> Any:
    found = _at(data, indices)
    if classes is not None and classes > 1:
        return _one_hot(found, classes, shape, dtype)
    return found.astype(dtype).reshape(len(indices), *shape[1:])


def _stacked(examples: list[Any], shape: Any, dtype: Any, classes: Any) -> Any:
    """Examples that an iterator gave as a batch, or a dictionary of batches."""
    if isinstance(shape, Mapping):
        return {
            key: _stacked(
                [e[key] for e in examples], shape[key], dtype[key],
                classes.get(key) if isinstance(classes, Mapping) else classes,
            )
            for key in shape
        }  # fmt: skip
    if classes is not None and classes > 1:
        return _one_hot(examples, classes, shape, dtype)
    return np.asarray(examples, dtype).reshape(len(examples), *shape[1:])


def setup_train_data_feeder(
    x: Any, y: Any, n_classes: Any, batch_size: int | None = None, shuffle: bool = True,
    epochs: int | None = None,
) -> DataFeeder:  # fmt: skip
    """The feeder for these data: that of iterators, or that of arrays and frames.

    Raises:
        ValueError: `x` is an iterator and `y` none.
    """
    x, y = extract_pandas_data(x), extract_pandas_labels(y)
    if not _is_iterator(x):
        return DataFeeder(x, y, n_classes, batch_size, shuffle=shuffle, epochs=epochs)
    if y is not None and not _is_iterator(y):
        raise ValueError("Both x and y should be iterators for streaming learning to work.")
    return StreamingDataFeeder(x, y, n_classes, batch_size)


def setup_predict_data_feeder(x: Any, batch_size: int | None = None) -> Any:
    """The parts of an array or frame to predict from, or an iterator of those of an iterator.

    Args:
        x: an array or frame; or an iterator of examples, arrays or dictionaries of them.
        batch_size: how many examples a part has; all by default.

    Raises:
        ValueError: `batch_size` is not positive.
    """
    x = extract_pandas_data(x)
    if _is_iterator(x):
        return _parts(x, batch_size)
    _check_batch(batch_size)
    x = np.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    step = batch_size or max(len(x), 1)
    return [x[start : start + step] for start in range(0, max(len(x), 1), step)]


def _parts(x: Iterator[Any], batch_size: int | None) -> Iterator[Any]:
    _check_batch(batch_size)
    while examples := list(itertools.islice(x, batch_size)):
        if isinstance(examples[0], Mapping):
            yield {key: np.asarray([e[key] for e in examples]) for key in examples[0]}
        else:
            yield np.asarray(examples)


def setup_processor_data_feeder(x: Any) -> Any:
    """What a processor of texts goes through: the values of a frame, anything else as it is."""
    return extract_pandas_matrix(x)
