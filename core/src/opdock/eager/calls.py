"""`Calls`: the programs of single operations, by what an operation is but for its inputs' values.

An operation runs as a step of a graph of its own, which has a placeholder for each input: what a
device lacks, what fuses and what falls back is decided there as for any step.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.constant_value import handle_of
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import Handle, OpSpec, get
from opdock.kernels.rank_words import refusal
from opdock.runtime.cache.variants import Entry, Variants
from opdock.runtime.recover.lost import runs_again
from opdock.runtime.running import Runner
from opdock.shapes import Shape

__all__ = ["Calls"]

_MOST: Final = 4096
_ARRAY: Final = np.ndarray
_names: Final = itertools.count(1)
_Input = tuple[DType, int, Handle | None]


class _CallGraph(Graph):
    """The graph of an operation; `outside` says what its inputs stand for, as a function's does."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: dict[Tensor, Tensor] = {}


class _Call:
    """An operation with placeholders for its inputs, and its programs by the inputs' shapes.

    Args:
        engine: compiles and runs.
        spec, attrs, outputs, device: of the operation.
        inputs: the type and rank of each input, and what is known of it if it is a handle.
    """

    def __init__(
        self, engine: Runner, spec: OpSpec, attrs: dict[str, Any], inputs: Sequence[_Input],
        outputs: list[DType], device: str,
    ) -> None:  # fmt: skip
        self._engine = engine
        self._graph = _CallGraph()
        with self._graph.as_default():
            self.feeds = [self._feed(*given) for given in inputs]
            name = f"{spec.name}_{next(_names)}"
            self.op = self._graph._create_op(spec, name, self.feeds, attrs, outputs)
            self.op._set_device(device)
        self._variants = Variants()
        self._lock = threading.RLock()

    def _feed(self, kind: DType, rank: int, handle: Handle | None) -> Tensor:
        shape = None if kind._is_handle else (None,) * rank
        made: Tensor = get("Placeholder")(dtype=kind, shape=shape)
        if handle is not None:
            twin = get("VarHandleOp")(dtype=handle.dtype, shape=handle.shape, shared_name="")
            self._graph.outside[made] = twin
        return made

    def run(self, values: list[Any]) -> list[Any]:
        """The results of a run; again where the device was lost or full, placed elsewhere."""
        while True:
            try:
                return self._once(values)
            except errors.OpError as e:
                if not runs_again(e):
                    raise
            self._variants = Variants()

    def _once(self, values: list[Any]) -> list[Any]:
        key: list[Any] = []
        for feed, value in zip(self.feeds, values, strict=True):
            key += (feed, value.shape if type(value) is _ARRAY else ())
        entry = self._variants.get(tuple(key))
        if entry is None:
            with self._lock:
                entry = self._variants.find(tuple(key), self._compile)
        given = entry.own(values) if entry.keep else values
        raw = (
            entry.program.run(given)
            if entry.plain
            else self._engine.run(entry.program, given, None, None)
        )
        return [
            v.copy() if copy and type(v) is _ARRAY else v
            for v, copy in zip(raw, entry.copies, strict=True)
        ]

    def _compile(self, tensors: Sequence[Tensor], concrete: Sequence[Shape]) -> Entry:
        feeds = [(t, t._dtype.base_dtype, s) for t, s in zip(tensors, concrete, strict=True)]
        outputs = self.op.outputs
        program = self._engine.compile(self._graph, outputs, [] if outputs else [self.op], feeds)
        return Entry(program, self._engine.plain(program))


class Calls:
    """The calls of an engine; those that came earliest and not again go first.

    Args:
        engine: compiles and runs.
    """

    def __init__(self, engine: Runner) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self.forget()

    def forget(self) -> None:
        """Drops all: random streams begin anew."""
        self._calls: OrderedDict[Hashable, _Call] = OrderedDict()
        # A function's calls go with it.
        self._of_functions: weakref.WeakKeyDictionary[FuncGraph, dict[Hashable, _Call]] = (
            weakref.WeakKeyDictionary()
        )

    def run(
        self, spec: OpSpec, attrs: dict[str, Any], inputs: Sequence[Any], outputs: list[DType],
        device: str,
    ) -> list[Any]:  # fmt: skip
        """The values of an operation's outputs.

        Raises:
            OpError: what the operation raised; the message ends in its type.
        """
        try:
            call = self._call(spec, attrs, inputs, outputs, device)
            return call.run([t.value for t in inputs])
        except errors.OpError as e:
            # Which node of which graph failed is nothing that the program knows of.
            text = e.message.partition("\n\t [[node ")[0]
            raise type(e)(None, None, f"{text} [Op:{spec.name}]") from None
        except ValueError as e:
            words = refusal(spec, [t.raw_shape for t in inputs], attrs) or str(e)
            raise errors.InvalidArgumentError(None, None, f"{words} [Op:{spec.name}]") from None

    def _call(
        self, spec: OpSpec, attrs: dict[str, Any], inputs: Sequence[Tensor], outputs: list[DType],
        device: str,
    ) -> _Call:  # fmt: skip
        given = tuple(map(_input, inputs))
        if not device:
            # Who has a resource's handle goes to where the resource is.
            device = next((t._op._device for t in inputs if t._dtype._is_handle), "")
        own = {k: v for k, v in attrs.items() if k[0] != "_" or k == "_kernel"}
        if makes_a_resource(spec):
            return _Call(self._engine, spec, own, given, outputs, device)
        key = (spec, device, given, *map(_frozen, own.items()))
        function = next((f for v in own.values() for f in _functions(v)), None)
        with self._lock:
            calls: dict[Hashable, _Call] = self._calls
            if function is not None:
                calls = self._of_functions.setdefault(function, {})
            found = calls.get(key)
            if found is None:
                made = _Call(self._engine, spec, own, given, outputs, device)
                found = calls.setdefault(key, made)  # a signal handler may have made one meanwhile
                if len(self._calls) > _MOST:
                    self._calls.popitem(last=False)
            elif function is None:
                with contextlib.suppress(KeyError):  # or have dropped this one
                    self._calls.move_to_end(key)
        return found


@functools.lru_cache(1024)
def makes_a_resource(spec: OpSpec) -> bool:
    """Whether an operation makes a resource, another one each time."""
    made = any(a.dtype is dtypes.resource for a in spec.definition.outputs)
    return made and not any(a.dtype is dtypes.resource for a in spec.definition.inputs)


def _input(tensor: Tensor) -> _Input:
    kind = tensor._dtype.base_dtype
    if kind._is_handle:
        return kind, 0, handle_of(tensor)
    return kind, len(tensor._shape or ()), None


def _functions(value: Any) -> list[FuncGraph]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [v for v in items if isinstance(v, FuncGraph)]


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
