"""A run of a graph on one device with every value kept, by which devices are compared."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import errors, shapes
from opdock.compiler.clean.prune import prune
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import FEED, HOST
from opdock.compiler.place.target import Target, memory_of
from opdock.dtypes import DType
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.kernels.select.streams import RandomStream
from opdock.nearest import meant
from opdock.runtime.engine import Engine
from opdock.runtime.fetch import FetchPlan
from opdock.runtime.inspect.cases import device_scope, plain_config
from opdock.shapes import Shape

__all__ = [
    "Walk",
    "cell_key",
    "check_value",
    "found_device",
    "largest",
    "order_of",
    "pairs",
    "variable_of",
]

Array = npt.NDArray[Any]


# ---------------------------------------------------------------- the graph as it stands
def order_of(plan: FetchPlan, feeds: dict[Tensor, Any]) -> list[Operation]:
    """The operations that the fetches need, in the order in which they run."""
    block = prune(plan.tensors, plan.targets, _typed(feeds))
    return [n.origin for n in block.nodes if n.op != FEED and n.origin is not None]


def _typed(feeds: dict[Tensor, Any]) -> list[tuple[Tensor, DType, Shape]]:
    return [(t, t.dtype.base_dtype, np.shape(v)) for t, v in feeds.items()]


def variable_of(tensor: Tensor) -> Operation | None:
    """The variable that a reference or a handle leads to."""
    op = tensor.op
    while not op.spec.traits.holds:
        behind = [t for t in op.inputs if not t.dtype._is_data]
        if not behind:
            return None
        op = behind[0].op
    return op


def cell_key(op: Operation) -> tuple[str, str]:
    """Where the state is that an operation names: container and name."""
    return op.attrs.get("container") or "localhost", op.attrs.get("shared_name") or op.name


# ---------------------------------------------------------------- one run of everything
class Walk:
    """The graph on one device, step by step, with every value kept.

    Args:
        scope: the device.
        order: the operations that are looked at.
        plan: what is fetched and run.
        feeds: what is fed.
        state: the values that variables begin with, by container and name.
        streams: the random streams that ops begin with, by the ops' names.

    Raises:
        ValueError: a value is none that its variable can have.

    Attributes:
        values: data tensor to its value.
        taken, left: operation to the values of the variables it takes, by input.
    """

    def __init__(
        self,
        scope: str,
        order: Sequence[Operation],
        plan: FetchPlan,
        feeds: dict[Tensor, Array],
        state: dict[tuple[str, str], Array],
        streams: Mapping[str, RandomStream] = MappingProxyType({}),
    ) -> None:
        self.values: dict[Tensor, Any] = dict(feeds)
        self.taken: dict[Operation, dict[int, Array | None]] = {}
        self.left: dict[Operation, dict[int, Array | None]] = {}
        self._engine = Engine(plain_config(soft=True))
        found_device(self._engine, scope)
        for name, stream in streams.items():
            self._engine.resources.node_state(name, functools.partial(_same, stream))
        self._feeds = list(feeds.values())
        fetched = {t for t in plan.tensors if t.dtype._is_ref_dtype}  # which give their values
        self._tensors = [
            t for op in order for t in op.outputs
            if (t.dtype._is_data or t in fetched) and t not in feeds
        ]  # fmt: skip
        block = prune(self._tensors, [*plan.targets, *order], _typed(feeds))
        for node in block.nodes:
            node.requested = scope
        self._program = self._engine.bind(self._engine.compiler.lower(block))
        self._restore(state)

    def _restore(self, state: dict[tuple[str, str], Array]) -> None:
        for slot, node in self._program.schedule.presets.items():
            if node.traits.holds:
                value = state.get(_key_of(node.attrs, node.name))
                if value is not None:
                    check_value(f"variable '{node.name}'", value, *_declared(node.attrs))
                    cell = self._program.bound.presets[slot]
                    cell.write(self._engine.between(HOST, memory_of(node.target))(value))

    def run(self) -> None:
        """Runs every step."""
        fetched = self._program.interpret(self._feeds, self, planned=False)
        self.values.update(
            (t, np.array(v, copy=True)) for t, v in zip(self._tensors, fetched, strict=True)
        )

    def before(self, step: Step, inputs: Sequence[Any]) -> None:
        """Keeps the variables that an op is about to take."""
        op = _with_variables(step)
        if op is not None and op not in self.taken:
            self.taken[op] = self._cells(op)

    def after(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """Keeps what an op has left in its variables."""
        op = _with_variables(step)
        if op is not None:
            self.left[op] = self._cells(op)

    def _cells(self, op: Operation) -> dict[int, Array | None]:
        found: dict[int, Array | None] = {}
        for i, tensor in enumerate(op.inputs):
            variable = None if tensor.dtype._is_data else variable_of(tensor)
            if variable is None:
                continue
            cell = self._engine.resources.get("variable", *cell_key(variable))
            held = cell is not None and cell.initialized
            found[i] = self._engine.to_host(cell.read(), cell.home) if held else None
        return found


def _with_variables(step: Step) -> Operation | None:
    """The operation of a step, if it takes variables."""
    op = step.node.origin
    if op is None or step.kind in ("read", "copy"):
        return None
    return None if all(t.dtype._is_data for t in op.inputs) else op


def _key_of(attrs: dict[str, Any], name: str) -> tuple[str, str]:
    return attrs.get("container") or "localhost", attrs.get("shared_name") or name


def _declared(attrs: dict[str, Any]) -> tuple[DType | None, Shape]:
    return attrs.get("dtype"), attrs.get("shape")


def check_value(what: str, value: Any, dtype: DType | None, shape: Shape) -> None:
    """ValueError unless a value from a file has the type and the shape that the graph has for it.

    None, for either, is whatever the value has.
    """
    array = np.asarray(value)
    wrong_type = dtype is not None and dtype._is_data and array.dtype != dtype.base_dtype.np
    if wrong_type or not shapes.is_compatible(shape, array.shape):
        kind = "a value" if dtype is None else dtype.base_dtype.name
        raise ValueError(
            f"{what} is {kind} of shape {shapes.text(shape)}, but what was kept is {array.dtype} "
            f"of shape {shapes.text(array.shape)}"
        )


def _same(stream: RandomStream) -> RandomStream:
    return stream


def found_device(engine: Engine, name: str) -> Target:
    """The device of a name, "cpu:0" or "/device:CPU:0".

    Raises:
        InvalidArgumentError: there is none.
        ValueError: the name is no device's.
    """
    scope = device_scope(name)
    spec = DeviceSpec.from_string(scope)
    found = next((t for t in engine.devices.targets if t.matches(spec)), None)
    if found is None:
        known = ", ".join(t.name for t in engine.devices.targets)
        own = [t.name[t.name.index("/device:") :] for t in engine.devices.targets]
        raise errors.InvalidArgumentError(
            None, None, f"There is no device {scope}; devices are {known}{meant(scope, own)}"
        )
    return found


def pairs(
    order: Sequence[Operation], truth: Walk, walk: Walk
) -> Iterator[tuple[Operation, Array, Array, str]]:
    """What two runs gave for the same: operation, both values, and what it is, in words."""
    for op in order:
        for tensor in op.outputs:
            if tensor in truth.values and tensor in walk.values:
                yield op, truth.values[tensor], walk.values[tensor], tensor.name
        for i, wanted in truth.left.get(op, {}).items():
            got = walk.left.get(op, {}).get(i)
            if wanted is not None and got is not None:
                yield op, wanted, got, f"variable of input {i}"


def largest(wanted: Sequence[Array], got: Sequence[Array]) -> tuple[float, float]:
    """The largest absolute and relative difference over several arrays."""
    absolute = relative = 0.0
    for w, g in zip(wanted, got, strict=False):
        if w.shape != g.shape or w.dtype.kind in "OSU" or not w.size:
            continue
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            gap = np.abs(g.astype(wide) - w.astype(wide))
            gap = np.where(np.isnan(gap), 0.0 if (w == g).all() else np.inf, gap)
            absolute = max(absolute, float(gap.max()))
            relative = max(relative, float((gap / np.maximum(np.abs(w.astype(wide)), 1e-30)).max()))
    return absolute, relative
