"""Python generators as datasets."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.data import steps
from opdock.data.util import nest
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.script import numpy_function
from opdock.shapes import TensorShape, as_tensor_shape

__all__ = ["generator_function"]


class _Open:
    """An iterator in use.

    Attributes:
        iterator: None until it is asked for an element.
        turn: held while it makes one. A step may have left it behind in the middle of one.
    """

    def __init__(self) -> None:
        self.iterator: PythonIterator[Any] | None = None
        self.turn = threading.RLock()


class _Iterators:
    """The iterators of a generator function that are in use, by number."""

    def __init__(self, generator: Callable[..., Any]) -> None:
        self._generator = generator
        self._numbers = itertools.count()
        self._open: dict[int, _Open] = {}
        self._arguments: dict[int, tuple[Any, ...]] = {}
        self._lock = threading.RLock()

    def begin(self, *args: Any) -> Any:
        """A new iterator's number."""
        with self._lock:
            number = next(self._numbers)
            self._arguments[number] = args
        return np.array(number, np.int64)

    def next(self, number: Any) -> Any:
        """The next element of an iterator, which is made when it is first asked for one."""
        found = self._open.setdefault(int(number), _Open())
        with found.turn:
            if found.iterator is None:
                # If it fails to begin, it is over then, as a generator is that raises.
                found.iterator = iter(())
                arguments = self._arguments.pop(int(number), ())
                found.iterator = iter(self._generator(*arguments))
            return next(found.iterator)

    def end(self, number: Any) -> Any:
        """Forgets an iterator."""
        self._arguments.pop(int(number), None)
        self._open.pop(int(number), None)
        return np.array(0, np.int64)


def generator_function(
    generator: Callable[..., Any], output_types: Any, output_shapes: Any, args: Any
) -> Callable[[Any], steps.Made]:
    """What `Dataset.from_generator` maps one element to.

    Raises:
        TypeError: `generator` is not callable, or `args` no tuple.
    """
    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    types = nest.map_structure(dtypes.as_dtype, output_types)
    if output_shapes is None:
        shapes = nest.map_structure(lambda _: TensorShape(None), types)
    else:
        shapes = nest.map_structure_up_to(types, as_tensor_shape, output_shapes)
    flat_types, flat_shapes = nest.flatten(types), nest.flatten(shapes)
    arguments = () if args is None else tuple(convert_to_tensor(a, name="args") for a in args)
    iterators = _Iterators(generator)

    def begin(_: Any) -> Any:
        return numpy_function(iterators.begin, list(arguments), dtypes.int64)

    def take(number: Any) -> list[Any]:
        values = iterators.next(number)
        return _checked(values, types, flat_types, flat_shapes)

    def step(number: Any) -> Any:
        flat = numpy_function(take, [number], flat_types)
        for tensor, shape in zip(flat, flat_shapes, strict=True):
            tensor.set_shape(shape)
        return nest.pack_sequence_as(types, flat)

    def end(number: Any) -> Any:
        return numpy_function(iterators.end, [number], dtypes.int64)

    return lambda dummy: steps.generator(dummy, begin, step, end)


def _checked(values: Any, types: Any, flat_types: Any, flat_shapes: Any) -> list[Any]:
    try:
        flat = nest.flatten_up_to(types, values)
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. The "
            f"expected structure was {types}, but the yielded element was {values}."
        ) from None
    found = []
    for value, dtype, shape in zip(flat, flat_types, flat_shapes, strict=True):
        array = _array(value, dtype)
        if not shape.is_compatible_with(array.shape):
            raise ValueError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape "
                f"{shape} was expected."
            )
        found.append(array)
    return found


def _array(value: Any, dtype: dtypes.DType) -> Any:
    wanted = dtype.as_numpy_dtype
    try:
        if dtype is dtypes.string:
            array = np.asarray(value, object)
            if any(not isinstance(v, (str, bytes)) for v in array.reshape(-1)):
                raise TypeError
            return array
        return np.asarray(value, wanted)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {dtype.name}, but the yielded element was {value}."
        ) from None
