"""`EagerGraph`: the default graph while operations run as they are made."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

import numpy as np

from opdock import dtypes
from opdock.autodiff.split import watched
from opdock.dtypes import DType
from opdock.eager.calls import Calls, makes_a_resource
from opdock.eager.tensor import EagerOperation, EagerTensor
from opdock.graph.nodes.constant import const_op
from opdock.graph.nodes.constant_value import handle_of
from opdock.graph.nodes.contents import as_text
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.frames import capture_frames
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.composed.tensor_array_eager import EagerTensorArray
from opdock.runtime.engine import Engine
from opdock.runtime.resources import ResourceManager
from opdock.util.interrupts import finalizer

__all__ = ["EagerGraph", "Tape"]

_MAX_SEED: Final = 2**31 - 1

TensorArray._eager = EagerTensorArray


class Tape:
    """The operations that ran while it watched, with all that came in and out of them."""

    # Here for an object whose making is interrupted, which is finalized all the same.
    _kept: list[tuple[EagerOperation, list[Tensor]]] = []  # noqa: RUF012

    def __init__(self, local: _Local) -> None:
        self._local = local
        self._kept = []

    def begin(self) -> None:
        """Watches what this thread runs from now on."""
        self._local.tapes = [*self._local.tapes, self]

    def stop(self) -> None:
        """Watches no longer."""
        self._local.tapes = [t for t in self._local.tapes if t is not self]

    def add(self, op: EagerOperation, outputs: list[Tensor]) -> None:
        """Keeps an operation that has its inputs."""
        op.tapes += 1
        self._kept.append((op, outputs))

    def variables(self) -> list[Any]:
        """The trainable variables that were read, in the order in which they were first."""
        found: dict[int, Any] = {}
        for op, _ in self._kept:
            for tensor in op._inputs:
                held = tensor.__dict__.get("variable")
                variable = None if held is None else held()
                if variable is not None and variable.trainable:
                    found[id(variable)] = variable
        return list(found.values())

    def end(self) -> None:
        """Lets go of what no other tape keeps."""
        while self._kept:
            op = self._kept.pop()[0]
            op.tapes -= 1
            if not op.tapes:
                op._inputs = ()

    @finalizer
    def __del__(self) -> None:
        self.end()


class _Local(threading.local):
    """What a thread's program is in the middle of."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        # What ran last: nobody had the time to take its results, or to look at its inputs.
        self.latest: EagerOperation | None = None
        self.results: list[Tensor] = []
        self.telling = False


class EagerGraph(Graph):
    """A graph that keeps no operation: each runs when it is made.

    Names need not be unique in it, and nothing waits for anything: the program's order counts.

    Args:
        config: a ConfigProto for what runs, or None.
        beside: another such graph, whose devices and resources it shares; None for its own.

    Attributes:
        callbacks: called after each operation with its type, inputs, attributes, results and name.
    """

    eager: ClassVar[bool] = True
    tensor_type = EagerTensor

    def __init__(self, config: Any = None, beside: EagerGraph | None = None) -> None:
        super().__init__()
        self.engine: Engine = Engine(config) if beside is None else beside.engine
        self._calls = Calls(self.engine)
        self._local = _Local()
        self._random = _seeds(None)
        self.callbacks: list[Callable[..., Any]] = []
        self._resources: Iterator[int] = itertools.count(1) if beside is None else beside._resources

    @property
    def _program_key(self) -> None:
        return None

    def _renewed(self) -> EagerGraph:
        found = EagerGraph(beside=self)
        # What TensorFlow keeps elsewhere than in graphs stays: scopes, tapes and seeds.
        found._thread, found._scopes, found._local = self._thread, self._scopes, self._local
        found._seed, found._random, found.callbacks = self._seed, self._random, self.callbacks
        return found

    # ------------------------------------------------------------ operations
    def _create_op(
        self, spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any],
        output_dtypes: list[DType],
    ) -> Operation:  # fmt: skip
        """Runs an operation; its results have their values."""
        for i, tensor in enumerate(inputs):
            if not tensor._op.graph.eager:
                inputs[i] = self._adopt(tensor, name)
        self._count[0] += 1
        op = EagerOperation(self, spec, name, attrs, self._last_id, capture_frames())
        self._apply_scopes(op)
        values: list[Any]
        if spec is const_op:
            values = [attrs["value"]]
        else:
            values = self._calls.run(spec, attrs, inputs, output_dtypes, op._device)
        outputs: list[Tensor] = []
        op._inputs = tuple(inputs)
        for i, (dtype, value) in enumerate(zip(output_dtypes, values, strict=True)):
            tensor = EagerTensor(op, i, dtype, ())
            if dtype._is_handle:
                tensor.hold(value, handle_of(tensor))
                if dtype is dtypes.resource:
                    tensor.pass_on([t for t in inputs if t._dtype is dtypes.resource])
            else:
                tensor.hold(np.asarray(value))
            outputs.append(tensor)
        if makes_a_resource(spec):
            self._keep_while(outputs[0])
        if self.callbacks:
            self._call_back(op, inputs, outputs)
        # After these: what they run is not what ran last.
        self._note(op, outputs)
        return op

    def _note(self, op: EagerOperation, outputs: list[Tensor]) -> None:
        """Keeps what came in and out of an operation: until the next one, or while tapes last."""
        local = self._local
        if local.latest is not None and not local.latest.tapes:
            local.latest._inputs = ()
        op.outputs = outputs
        local.latest, local.results = op, outputs
        if op._inputs:
            for tape in local.tapes:
                tape.add(op, outputs)

    def _call_back(self, op: EagerOperation, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        """Calls what is to be called after each operation; what these run is not told of."""
        if self._local.telling:
            return
        self._local.telling = True
        try:
            for callback in list(self.callbacks):
                attrs = tuple(itertools.chain.from_iterable(op.attrs.items()))
                callback(op.type, tuple(inputs), attrs, outputs, op.name)
        finally:
            self._local.telling = False

    def _keep_while(self, handle: Any) -> None:
        """Has a resource go when nobody has its handle any longer."""
        resources = self.engine.resources
        key = resources.key_of(handle.value)
        if key is not None:
            weakref.finalize(handle, _drop, resources, key).atexit = False

    def _may_capture(self, other: Graph) -> bool:
        return other.eager

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        return tensor if tensor._op.graph.eager else super()._adopt(tensor, user)

    def _record(self, tape: Any = None) -> Tape:
        """A tape that watches this thread, one that was stopped or a new one."""
        found: Tape = tape or Tape(self._local)
        found.begin()
        return found

    def _as_run(self, function: Any) -> Any:
        """A function; where a tape watches, as one that hands out what its gradient will need."""
        if not self._local.tapes:
            return function
        try:
            return watched(function)
        except LookupError:
            # Who asks for the gradient is told of what has none.
            return function

    # ------------------------------------------------------------ names and scopes
    def _node_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name under the current scope; others may have it, too."""
        name = as_text(name)
        return f"{self._name_stack}/{name}" if self._name_stack else name

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Nothing to wait for: what was made has run."""
        yield

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Puts operations made inside on the device of `op`."""
        at = getattr(op, "op", op)
        # Other values are on no device of a plugin's.
        device = at.device if isinstance(at, Operation) else ""
        with self.device(device or None) if ignore_existing or device else contextlib.nullcontext():
            yield

    def full_device(self, asked: str) -> str:
        """The whole name of the device on which an operation ran that asked for one."""
        found = DeviceSpec.from_string(asked or "")
        devices = [DeviceSpec.from_string(d.name) for d in self.engine.list_devices()]
        wanted = found.device_type or "CPU"
        index = found.device_index or 0
        for d in devices:
            if d.device_type == wanted and d.device_index == index:
                return d.to_string()
        return devices[0].to_string()

    def _names_of_bodies(self) -> dict[str, int]:
        return {}

    # ------------------------------------------------------------ random numbers
    @property
    def seed(self) -> int | None:
        """The seed of all operations, from which those without one of their own have theirs."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed
        self._random = _seeds(seed)
        self._calls.forget()

    def _operation_seed(self) -> int:
        return self._random.randint(0, _MAX_SEED)

    def _resource_name(self, name: str) -> str:
        return f"{name}_{next(self._resources)}"


@finalizer
def _drop(resources: ResourceManager, key: tuple[str, str, str]) -> None:
    """Ends a resource: threads of an iterator, say."""
    close = getattr(resources.get(*key), "close", None)
    if callable(close):
        close()
    resources.delete(*key)


def _seeds(seed: int | None) -> random.Random:
    """Python's generator, from which TensorFlow takes the seeds of operations, too."""
    return random.Random(seed)  # noqa: S311
