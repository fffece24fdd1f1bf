"""What a function is traced for where operations run as they are made: each call is one operation.

A function is traced anew for tensors of other types and shapes and for other values of Python, as
TensorFlow does; an object counts as itself, and lives as long as what was traced for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["Traces", "as_tensors", "functions_run_eagerly", "run_functions_eagerly"]

_MOST: Final = 1024
_VALUES: Final = (int, float, complex, bool, str, bytes, type(None), dtypes.DType, TypeSpec)

_eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether calls of functions run the Python function itself, to look into it.

    Args:
        run_eagerly: whether they do from now on, where operations run as they are made.
    """
    global _eagerly
    _eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` was told last."""
    return _eagerly


@dataclass(frozen=True, slots=True)
class _Trace:
    """What was traced, and the objects for which it was, which nothing else may keep."""

    function: ConcreteFunction
    objects: Sequence[Any]


class Traces:
    """The traces of a function; those that were called longest ago go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Trace] = OrderedDict()
        self._lock = threading.RLock()

    def find(self, wanted: Any, trace: Callable[[Any], ConcreteFunction]) -> ConcreteFunction:
        """The function for arguments.

        Args:
            wanted: positional and named arguments, `as_tensors`, or with specs for those.
            trace: makes it of them, with a spec in the place of each tensor.
        """
        described = nest.map_structure(_described, wanted)
        objects: list[Any] = []
        key = _key(described, objects)
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = _Trace(trace(described), objects)
                if len(self._known) > _MOST:
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(key)
        return found.function

    def offer(self, wanted: Any, function: ConcreteFunction) -> None:
        """Has calls find a function that was traced for these arguments, unless they have one.

        Args:
            wanted: positional and named arguments, with a spec in the place of each tensor.
            function: what was traced for them.
        """
        objects: list[Any] = []
        key = _key(wanted, objects)
        with self._lock:
            self._known.setdefault(key, _Trace(function, objects))

    def forget(self, function: ConcreteFunction) -> None:
        """Has a function traced anew by the next call for which it was."""
        with self._lock:
            for key in [k for k, trace in self._known.items() if trace.function is function]:
                del self._known[key]


def as_tensors(arguments: Any) -> Any:
    """Arguments with tensors for the arrays among them."""
    return nest.map_structure(
        lambda v: convert_to_tensor(v) if isinstance(v, (np.ndarray, np.generic)) else v, arguments
    )


def _described(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return TensorSpec(leaf.shape, leaf.dtype.base_dtype)
    return leaf._type_spec if isinstance(leaf, CompositeTensor) else leaf


def _key(value: Any, objects: list[Any]) -> Hashable:
    if nest.is_sequence(value):
        names = tuple(sorted(value, key=str)) if isinstance(value, Mapping) else ()
        return type(value), names, tuple(_key(v, objects) for v in nest.items(value))
    if isinstance(value, TensorShape):
        return TensorShape, value.raw
    if type(value) is TensorSpec:  # whatever it is called
        return TensorSpec, value.shape.raw, value.dtype
    if isinstance(value, _VALUES):
        return type(value), repr(value) if isinstance(value, (float, complex)) else value
    objects.append(value)
    return type(value), id(value)
