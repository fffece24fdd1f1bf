"""`Calls`: the programs of single operations, by what an operation is but for its inputs' values.

An operation runs as a step of a graph of its own, which has a placeholder for each input: what a
device lacks, what fuses and what falls back is decided there as for any step.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import OpSpec, get
from opdock.runtime.cache.variants import Entry, Variants
from opdock.runtime.engine import Engine
from opdock.shapes import Shape

__all__ = ["Calls"]

_MOST: Final = 4096
_ARRAY: Final = np.ndarray
_names: Final = itertools.count(1)


class _Call:
    """An operation with placeholders for its inputs, and its programs by the inputs' shapes."""

    def __init__(
        self, engine: Engine, spec: OpSpec, attrs: dict[str, Any], kinds: Sequence[DType],
        inputs: Sequence[Tensor], outputs: list[DType], device: str, name: str,
    ) -> None:  # fmt: skip
        self._engine = engine
        self._graph = Graph()
        with self._graph.as_default():
            self.feeds = [_placeholder(kind, t) for kind, t in zip(kinds, inputs, strict=True)]
            self.op = self._graph._create_op(spec, name, self.feeds, attrs, outputs)
            self.op._set_device(device)
        self._variants = Variants()
        self._lock = threading.Lock()

    def run(self, values: list[Any]) -> list[Any]:
        """The results of a run."""
        key: list[Any] = []
        for feed, value in zip(self.feeds, values, strict=True):
            key += (feed, value.shape if type(value) is _ARRAY else ())
        entry = self._variants.get(tuple(key))
        if entry is None:
            with self._lock:
                entry = self._variants.find(tuple(key), self._compile)
        given = entry.own(values) if entry.keep else values
        raw = entry.program.run(given) if entry.plain else self._engine.run(entry.program, given, None, None)
        return [
            v.copy() if copy and type(v) is _ARRAY else v
            for v, copy in zip(raw, entry.copies, strict=True)
        ]

    def _compile(self, tensors: Sequence[Tensor], concrete: Sequence[Shape]) -> Entry:
        feeds = [(t, t._dtype.base_dtype, s) for t, s in zip(tensors, concrete, strict=True)]
        outputs = self.op.outputs
        program = self._engine.compile(self._graph, outputs, [] if outputs else [self.op], feeds)
        return Entry(program, self._engine.plain(program))


def _placeholder(kind: DType, tensor: Tensor) -> Tensor:
    """What stands for an input of that type; a handle tells what it is the handle of."""
    rank = None if kind._is_handle else (None,) * len(tensor._shape or ())
    made: Tensor = get("Placeholder")(dtype=kind, shape=rank)
    return made


class Calls:
    """The calls of an engine; those that came earliest and not again go first.

    Args:
        engine: compiles and runs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Drops all: random streams begin anew."""
        self._calls: OrderedDict[Hashable, _Call] = OrderedDict()
        # A function's calls go with it.
        self._of_functions: weakref.WeakKeyDictionary[FuncGraph, dict[Hashable, _Call]] = (
            weakref.WeakKeyDictionary()
        )

    def run(
        self, spec: OpSpec, attrs: dict[str, Any], inputs: Sequence[Tensor], outputs: list[DType],
        device: str,
    ) -> list[Any]:  # fmt: skip
        """The values of an operation's outputs.

        Raises:
            OpError: what the operation raised; the message ends in its type.
        """
        try:
            call = self._call(spec, attrs, inputs, outputs, device)
            return call.run([t.value for t in inputs])  # type: ignore[attr-defined]
        except errors.OpError as e:
            # Which node of which graph failed is nothing that the program knows of.
            text = e.message.partition("\n\t [[node ")[0]
            raise type(e)(None, None, f"{text} [Op:{spec.name}]") from None
        except ValueError as e:
            raise errors.InvalidArgumentError(None, None, f"{e} [Op:{spec.name}]") from None

    def _call(
        self, spec: OpSpec, attrs: dict[str, Any], inputs: Sequence[Tensor], outputs: list[DType],
        device: str,
    ) -> _Call:  # fmt: skip
        kinds = [t._dtype.base_dtype for t in inputs]
        handles = [t._op for t in inputs if t._dtype._is_handle]
        ranks = tuple(len(t._shape or ()) for t in inputs)
        make = functools.partial(
            _Call, self._engine, spec, {k: v for k, v in attrs.items() if k[0] != "_" or k == "_kernel"},
            kinds, inputs, outputs, device or next((op._device for op in handles if op._device), ""),
        )  # fmt: skip
        name = f"{spec.name}_{next(_names)}"
        if _makes_a_resource(outputs, kinds):
            return make(name)
        key = (spec, device, ranks, *kinds, *map(_frozen, attrs.items()))
        function = next((v for v in attrs.values() if isinstance(v, FuncGraph)), None)
        with self._lock:
            calls = self._calls if function is None else self._of_functions.setdefault(function, {})
            found = calls.get(key)
            if found is None:
                found = calls[key] = make(name)
                if len(self._calls) > _MOST:
                    self._calls.popitem(last=False)
            elif function is None:
                self._calls.move_to_end(key)
        return found


def _makes_a_resource(outputs: list[DType], kinds: Sequence[DType]) -> bool:
    """Whether an operation makes a resource, another one each time."""
    return any(d.name == "resource" for d in outputs) and not any(d.name == "resource" for d in kinds)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, (list, tuple)):
        return (type(value), *map(_frozen, value))
    if isinstance(value, dict):
        return tuple(map(_frozen, value.items()))
    if isinstance(value, _ARRAY):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, Hashable):
        return value if not isinstance(value, float) else (float, repr(value))
    return value.SerializeToString() if hasattr(value, "SerializeToString") else id(value)
