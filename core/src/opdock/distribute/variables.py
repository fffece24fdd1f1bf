"""Variables of which each device has a copy."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from opdock.distribute import context, device_util
from opdock.distribute.modes import (
    get_update_device,
    has_strategy,
    in_cross_replica_context,
)
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.values import DistributedValues, Mirrored
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.trackable import VARIABLE_VALUE_KEY
from opdock.graph.variables.variable import Variable
from opdock.ops.compare import logical_and
from opdock.ops.control import group
from opdock.ops.identity import identity
from opdock.shapes import TensorShape
from opdock.train.saveable import ResourceVariableSaveable, SaveableObject, SaveSpec

__all__ = [
    "DistributedVariable", "MirroredVariable", "SyncOnReadVariable", "in_scope_of",
    "make_mirrored", "reduced_by", "updated",
]  # fmt: skip

_KINDS: Final = {
    VariableSynchronization.AUTO: False,
    VariableSynchronization.ON_WRITE: False,
    VariableSynchronization.ON_READ: True,
}


@contextlib.contextmanager
def in_scope_of(strategy: Any) -> Iterator[None]:
    """Enters the scope of a strategy, unless the program is in it.

    Raises:
        RuntimeError: it is in another's.
    """
    if not has_strategy():
        with strategy.scope():
            yield
        return
    current = context.get_strategy()
    if current is not strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: {current} is not {strategy}"
        )
    yield


def reduced_by(strategy: Any, value: Any, aggregation: Any, destinations: Any) -> Any:
    """What replicas want a variable to become, as one value."""
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        first = strategy.experimental_local_results(value)[0]
        return strategy.extended.broadcast_to(first, destinations=destinations)
    op = ReduceOp.from_variable_aggregation(aggregation)
    return strategy.extended.reduce_to(op, value, destinations)


def updated(variable: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Assigns to all copies of a variable, in a replica what those of all replicas want.

    Raises:
        ValueError: the program is in a replica, and the variable does not say what is to become
            of several values.
    """
    strategy = variable._distribute_strategy

    def assign(copy: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(copy, method)(*args, **kwargs)

    with in_scope_of(strategy):
        if in_cross_replica_context():
            where = get_update_device()
            if where is not None:
                return assign(variable._copy_on(where), *args, **kwargs)
            return strategy.extended.update(variable, assign, args=args, kwargs=kwargs)
        if variable.aggregation is VariableAggregation.NONE:
            kind = type(variable).__name__
            raise ValueError(
                f"You must specify an aggregation method to update a {kind} in Replica Context. "
                "You can do so by passing an explicit value for argument `aggregation` to "
                "tf.Variable(..), such as tf.VariableAggregation.SUM; or update it across "
                "replicas, in tf.distribute.get_replica_context().merge_call(merge_fn, ..)"
            )

        def merge(strategy: Any, value: Any, *others: Any, **kwargs: Any) -> Any:
            one = reduced_by(strategy, value, variable.aggregation, variable)
            return strategy.extended.update(variable, assign, args=(one, *others), kwargs=kwargs)

        # Each replica's call has a name of its own; what is made of all of them is another's.
        kwargs = {key: value for key, value in kwargs.items() if key != "name"}
        return context.get_replica_context().merge_call(merge, args=args, kwargs=kwargs)


class DistributedVariable(DistributedValues, Variable):
    """A variable with a copy on each device. In a replica it is that replica's copy.

    Args:
        strategy: whose it is.
        devices: the devices.
        values: the copies.
        aggregation: how what replicas assign becomes one value.
    """

    # What `tf.train.init_from_checkpoint` puts in the place of the copies' own.
    _initializer_op: Any = None
    _initial_value: Any = None

    def __init__(
        self, strategy: Any, devices: Sequence[str], values: Sequence[Any], aggregation: Any
    ) -> None:
        super().__init__(devices, values)
        self._distribute_strategy = strategy
        self._aggregation = aggregation
        for copy in values:
            copy._distributed_container = weakref.ref(self)

    # ------------------------------------------------------------ facts
    def _closest(self) -> Any:
        """The copy of the replica or update that the program is in, or of the current device."""
        index = self._current()
        if index is None:
            index = self._index(device_util.resolve(None))
        return self._values[index or 0]

    def _copy_on(self, device: str) -> Any:
        return self.get(device=device)

    @property
    def name(self) -> str:
        """The name of the first copy."""
        return str(self.primary.name)

    @property
    def _shared_name(self) -> str:
        return self.name.partition(":")[0]

    @property
    def op(self) -> Operation:
        """The operation that holds the replica's copy; across replicas, the first one."""
        found: Operation = (self.primary if in_cross_replica_context() else self.get()).op
        return found

    @property
    def graph(self) -> Graph:
        """The graph of the variable."""
        found: Graph = self.primary.graph
        return found

    @property
    def device(self) -> str:
        """The device of the nearest copy."""
        return str(self._closest().device)

    @property
    def dtype(self) -> DType:
        """The element type."""
        found: DType = self.primary.dtype
        return found

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        found: TensorShape = self.primary.shape
        return found

    @property
    def initializer(self) -> Any:
        """Initializes all copies."""
        if self._initializer_op is not None:
            return self._initializer_op
        return group(*(v.initializer for v in self._values))

    @property
    def initial_value(self) -> Any:
        """The tensor of the initial value."""
        return self._closest().initial_value if self._initial_value is None else self._initial_value

    def numpy(self) -> Any:
        """The value of the nearest copy, where operations run as they are made."""
        return self._closest().numpy()

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it by default."""
        return bool(self.primary.trainable)

    @property
    def constraint(self) -> Any:
        """The function applied after updates, or None."""
        return self.primary.constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """How copies agree."""
        found: VariableSynchronization = self.primary.synchronization
        return found

    @property
    def distribute_strategy(self) -> Any:
        """The strategy whose variable it is."""
        return self._distribute_strategy

    @property
    def handle(self) -> Tensor:
        """The handle of the replica's copy, or of the one that is being updated.

        Raises:
            ValueError: the program is neither in a replica nor in an update.
        """
        if self._current() is None:
            raise ValueError(
                "`handle` is not available outside the replica context or a "
                "`tf.distribute.Strategy.update()` call."
            )
        found: Tensor = self.get().handle
        return found

    @property
    def _handle(self) -> Tensor:  # type: ignore[override]
        found: Tensor = self._closest().handle
        return found

    @property
    def _snapshot(self) -> Tensor:  # type: ignore[override]
        found: Tensor = self._closest()._snapshot
        return found

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape."""
        for copy in self._values:
            copy.set_shape(shape)

    def _set_save_slice_info(self, info: Any) -> None:
        for copy in self._values:
            copy._set_save_slice_info(info)

    def _gradient_source(self) -> Tensor:
        found: Tensor = self._closest()._gradient_source()
        return found

    # ------------------------------------------------------------ values
    def value(self) -> Tensor:
        """The value of the nearest copy."""
        found: Tensor = self.get().value() if self._current() is not None else self._whole()
        return found

    def _whole(self) -> Tensor:
        """The value across replicas."""
        raise NotImplementedError

    def _get_cross_replica(self) -> Any:
        return self._whole()

    def read_value(self) -> Tensor:
        """A read of its own."""
        with in_scope_of(self._distribute_strategy):
            return identity(self.get())

    def eval(self, session: Any = None) -> Any:
        """The value of the nearest copy."""
        return self._closest().eval(session)

    def load(self, value: Any, session: Any = None) -> None:
        """Stores a value in all copies."""
        for copy in self._values:
            copy.load(value, session)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the nearest copy."""
        found: Tensor = self._closest().sparse_read(indices, name)
        return found

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Slices of the nearest copy."""
        found: Tensor = self._closest().gather_nd(indices, name)
        return found

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether all copies have a value."""
        found: Tensor = self.primary.is_initialized()
        for copy in self._values[1:]:
            found = logical_and(found, copy.is_initialized(), name=name)
        return found

    _initialized = is_initialized

    def _as_graph_element(self) -> Tensor:
        found: Tensor = self._closest()._as_graph_element()
        return found

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The first copy as a VariableDef."""
        return self.primary.to_proto(export_scope)

    # What a value's copies have, a variable has by itself or not at all.
    __getattr__ = Variable.__getattr__

    def __str__(self) -> str:
        return self._listed(str)

    def __repr__(self) -> str:
        return self._listed(repr)


class MirroredVariable(DistributedVariable, Mirrored):
    """A variable whose copies are the same: what is assigned to one is assigned to all."""

    def _whole(self) -> Tensor:
        return identity(self._closest())

    def assign(self, *args: Any, **kwargs: Any) -> Any:
        """Assigns to all copies."""
        return updated(self, "assign", args, kwargs)

    def assign_add(self, *args: Any, **kwargs: Any) -> Any:
        """Adds to all copies."""
        return updated(self, "assign_add", args, kwargs)

    def assign_sub(self, *args: Any, **kwargs: Any) -> Any:
        """Subtracts from all copies."""
        return updated(self, "assign_sub", args, kwargs)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        return {VARIABLE_VALUE_KEY: lambda name=self._shared_name: _MirroredSaveable(self, name)}


class _MirroredSaveable(ResourceVariableSaveable):
    """The first copy is saved, and all are restored."""

    def __init__(self, variable: MirroredVariable, name: str) -> None:
        super().__init__(variable.primary, "", name)
        self._variable = variable

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        """Assigns to all copies."""
        return group(*_assigned(self._variable.values, "assign", restored_tensors[0]))


def _assigned(copies: Sequence[Any], method: str, value: Any) -> list[Any]:
    found = []
    for copy in copies:
        with device(copy.device):
            found.append(getattr(copy, method)(value))
    return found


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies differ; read across replicas it is what they make together."""

    def _whole(self) -> Tensor:
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            first: Tensor = self.primary.value()
            return first
        strategy = self._distribute_strategy
        with in_scope_of(strategy):
            op = ReduceOp.from_variable_aggregation(self._aggregation)
            return convert_to_tensor(strategy.reduce(op, self, axis=None))

    def _as_graph_element(self) -> Tensor:
        return self._whole() if in_cross_replica_context() else super()._as_graph_element()

    def _update_copies(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with in_scope_of(self._distribute_strategy):
            if not in_cross_replica_context():
                return getattr(self.get(), method)(*args, **kwargs)
            value = args[0]
            if self._aggregation is VariableAggregation.SUM:
                if method != "assign":
                    raise ValueError(
                        f"SyncOnReadVariable does not support `{method}` in cross-replica context "
                        "when aggregation is set to `tf.VariableAggregation.SUM`."
                    )
                value = value * (1.0 / len(self._devices))
            return group(*_assigned(self._values, method, value))

    def assign(self, *args: Any, **kwargs: Any) -> Any:
        """Assigns to the replica's copy; across replicas, a share of the sum to each."""
        return self._update_copies("assign", args, kwargs)

    def assign_add(self, *args: Any, **kwargs: Any) -> Any:
        """Adds to the replica's copy.

        Raises:
            ValueError: the program is across replicas, whose copies are summed.
        """
        return self._update_copies("assign_add", args, kwargs)

    def assign_sub(self, *args: Any, **kwargs: Any) -> Any:
        """Subtracts from the replica's copy.

        Raises:
            ValueError: the program is across replicas, whose copies are summed.
        """
        return self._update_copies("assign_sub", args, kwargs)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        return {VARIABLE_VALUE_KEY: lambda name=self._shared_name: _SyncOnReadSaveable(self, name)}


class _SyncOnReadSaveable(SaveableObject):
    """What the copies make together is saved."""

    def __init__(self, variable: SyncOnReadVariable, name: str) -> None:
        self._variable = variable
        strategy, first = variable.distribute_strategy, variable.primary
        spec = SaveSpec(
            lambda: strategy.extended.read_var(variable), "", name, first.dtype, first.device
        )
        super().__init__(first, [spec], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        """Shares the value out among the copies."""
        return self._variable.assign(restored_tensors[0])


# ---------------------------------------------------------------- making
def make_mirrored(
    strategy: Any, devices: Sequence[str], make: Callable[..., list[Any]], **kwargs: Any
) -> DistributedVariable:
    """A variable with a copy on each device.

    Args:
        strategy: whose it is.
        devices: the devices.
        make: makes the copies, given the devices and the arguments of `tf.Variable`.
        kwargs: the arguments of `tf.Variable`.

    Raises:
        ValueError: the synchronization or the aggregation is none that copies can have.
    """
    collections = kwargs.pop("collections", None)
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
    on_read = _on_read(kwargs)
    aggregation = kwargs.pop("aggregation", VariableAggregation.NONE)
    if not isinstance(aggregation, VariableAggregation):
        raise ValueError(
            f"Invalid variable aggregation mode: {aggregation} for variable: {kwargs['name']}"
        )
    kwargs.pop("caching_device", None)  # each device has its copy
    trainable = kwargs.pop("trainable", True)
    copies = make(devices, collections=[], trainable=trainable, **kwargs)
    kind = SyncOnReadVariable if on_read else MirroredVariable
    found = kind(strategy, devices, copies, aggregation)
    graph = get_default_graph()
    if trainable:
        # The copies are in the collection by themselves; programs are to find the variable.
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
        known = graph.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        known[:] = [v for v in known if not any(v is copy for copy in copies)]
    graph.add_to_collections(list(dict.fromkeys(keys)), found)
    return found


def _on_read(kwargs: dict[str, Any]) -> bool:
    wanted = kwargs.get("synchronization", VariableSynchronization.ON_WRITE)
    if wanted is VariableSynchronization.NONE:
        raise ValueError(
            "`NONE` variable synchronization mode is not supported with `Mirrored` distribution "
            f"strategy. Please change the `synchronization` for variable: {kwargs['name']}"
        )
    if wanted not in _KINDS:
        raise ValueError(
            f"Invalid variable synchronization mode: {wanted} for variable: {kwargs['name']}"
        )
    return _KINDS[wanted]
