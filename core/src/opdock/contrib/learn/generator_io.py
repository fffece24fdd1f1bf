"""An input function of a Python generator, whose examples go through a queue."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Container, Iterable
from types import FunctionType, GeneratorType
from typing import Any, cast

__all__ = ["generator_input_fn"]

_tf: Any = importlib.import_module("opdock")


def generator_input_fn(
    x: Any, target_key: Any = None, batch_size: int = 128, num_epochs: int | None = 1,
    shuffle: bool = True, queue_capacity: int = 1000, num_threads: int = 1, pad_value: Any = None,
) -> Callable[[], Any]:  # fmt: skip
    """A function that builds features, and labels if there are any, of what a generator yields.

    Args:
        x: a generator function; each dictionary of arrays that it yields is an example, and one
            walk through it an epoch.
        target_key: the key of the labels, or several, which are a dictionary then.
        batch_size: how many examples a step has.
        num_epochs: how many epochs there are; None is without end.
        shuffle: whether the queue hands examples out in random order.
        queue_capacity: how many examples wait in the queue.
        num_threads: how many threads fill it, one where `num_epochs` is to be exact.
        pad_value: what shorter examples of a batch are filled up with.

    Raises:
        TypeError: `x` is no generator function of dictionaries, or `target_key` no string or
            container of strings.
        KeyError: an example has no such key.
    """
    names = _names(x)
    targets = _targets(target_key, names)

    def input_fn() -> Any:
        queue = _feeding_functions()._enqueue_data(
            x, queue_capacity, shuffle=shuffle, num_threads=num_threads, enqueue_size=batch_size,
            num_epochs=num_epochs, pad_value=pad_value,
        )  # fmt: skip
        endless = num_epochs is None
        found = queue.dequeue_many(batch_size) if endless else queue.dequeue_up_to(batch_size)
        tensors = found if isinstance(found, list) else [found]
        features = dict(zip(names, tensors, strict=False))
        if targets is None:
            return features
        if len(targets) == 1:
            return features, features.pop(targets[0])
        return features, {key: features.pop(key) for key in targets}

    return input_fn


def _feeding_functions() -> Any:
    """The queues of `tf.estimator.inputs`, which are the library's."""
    _ = _tf.estimator  # the library finds TensorFlow once this is there
    return importlib.import_module(
        "tensorflow_estimator.python.estimator.inputs.queues.feeding_functions"
    )


def _names(x: Any) -> list[str]:
    """The keys of a generator's first example, in the order in which the queue has them."""
    if not isinstance(x, FunctionType):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    generator = x()
    if not isinstance(generator, GeneratorType):
        raise TypeError(f"x() must be generator; got {type(generator).__name__}")
    example = next(generator)
    generator.close()
    if not isinstance(example, dict):
        raise TypeError(f"x() must yield dict; got {type(example).__name__}")
    return sorted(example)


def _targets(given: Any, names: list[str]) -> list[str] | None:
    if given is None:
        return None
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, Container):
        raise TypeError(f"target_key must be str or Container of str; got {type(keys).__name__}")
    found: list[str] = []
    for key in iter(cast("Iterable[Any]", keys)):
        if not isinstance(key, str):
            raise TypeError(f"target_key must be str or Container of str; got {type(key).__name__}")
        if key not in names:
            raise KeyError(f"target_key not in yielded dict. Expected {names} keys; got {key}")
        found.append(key)
    return found
