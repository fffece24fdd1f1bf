"""Values of which each replica, or each device, has its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.distribute import device_util
from opdock.distribute.modes import get_update_device
from opdock.graph.nodes import replication
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor, register_tensor_conversion_function
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import control_dependencies, device
from opdock.ops.control import group
from opdock.ops.identity import identity
from opdock.util import nest

__all__ = [
    "DistributedValues", "Mirrored", "PerReplica", "regroup", "select_device_mirrored",
    "select_replica", "update_regroup",
]  # fmt: skip


class DistributedValues:
    """Values of replicas, in their order.

    Args:
        devices: the devices on which they are.
        values: one for each device.
    """

    def __init__(self, devices: Sequence[str], values: Sequence[Any]) -> None:
        self._devices = tuple(device_util.canonicalize(d) for d in devices)
        self._values = tuple(values)

    def get(self, device: str | None = None) -> Any:
        """The value of a device; by default of the replica or the update that the program is in.

        Raises:
            ValueError: there is none for the device, or the program is in neither.
        """
        if device is None:
            index = self._current()
            return self._get_cross_replica() if index is None else self._values[index]
        index = self._index(device_util.canonicalize(device))
        if index is None:
            raise ValueError(
                f"Device {device} not found in {self._devices} "
                f"(current device {device_util.current()})"
            )
        return self._values[index]

    def _current(self) -> int | None:
        """Whose turn it is: the replica's that is being built, or the device's being updated."""
        mode = replication.current()
        if mode is None or mode.replica is not None:
            number = 0 if mode is None else constant_value(mode.replica._replica_id_in_sync_group)
            return 0 if number is None or len(self._values) == 1 else int(number)
        updated = get_update_device()
        return None if updated is None else self._index(device_util.canonicalize(updated))

    def _index(self, device: str) -> int | None:
        return self._devices.index(device) if device in self._devices else None

    def _get_cross_replica(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no value across replicas")

    @property
    def primary(self) -> Any:
        """The value of the first replica."""
        return self._values[0]

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices on which the values are."""
        return self._devices

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, in the order of the replicas."""
        return self._values

    @property
    def is_tensor_like(self) -> bool:
        """Whether all values are tensors, or can be used as such."""
        return all(is_tensor(v) for v in self._values)

    def _listed(self, text: Callable[[Any], str]) -> str:
        lines = ",\n".join(
            f"  {i} {where}: {text(value)}"
            for i, (where, value) in enumerate(zip(self._devices, self._values, strict=True))
        )
        return f"{type(self).__name__}:{{\n{lines}\n}}"

    def __str__(self) -> str:
        return self._listed(str)

    def __repr__(self) -> str:
        return self._listed(repr)


class PerReplica(DistributedValues):
    """Values that differ from replica to replica."""


class Mirrored(DistributedValues):
    """One value, a copy on each device; used as a tensor it is the nearest copy."""

    def _get_cross_replica(self) -> Any:
        index = self._index(device_util.resolve(None))
        return self.primary if index is None else self._values[index]

    def _as_graph_element(self) -> Any:
        found = self.get()
        made = getattr(found, "_as_graph_element", None)
        return found if made is None else made()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get(), name)


def _operator(name: str) -> Callable[..., Any]:
    def run(self: Mirrored, *args: Any) -> Any:
        return getattr(self.get(), name)(*args)

    run.__name__ = run.__qualname__ = name
    return run


for _name in sorted(Tensor.OVERLOADABLE_OPERATORS):
    setattr(Mirrored, _name, _operator(_name))


def _to_tensor(
    value: Mirrored, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    return convert_to_tensor(value.get(), dtype, name)


register_tensor_conversion_function(Mirrored, _to_tensor, priority=20)


# ---------------------------------------------------------------- structures
def regroup(
    devices: Sequence[str], values: Sequence[Any],
    wrap: Callable[[Sequence[str], Sequence[Any]], Any] = PerReplica,
) -> Any:  # fmt: skip
    """Structures of the replicas as one structure, of values of each replica.

    Args:
        devices: those of the replicas.
        values: a structure of each replica; all have the same form.
        wrap: makes one of the values of all replicas.

    Returns:
        The structure. What all replicas have in common is itself, and copies of a variable are the
        variable.

    Raises:
        AssertionError: the forms differ.
    """
    first, others = values[0], values[1:]
    if isinstance(first, (list, tuple)):
        if not all(isinstance(v, type(first)) and len(v) == len(first) for v in others):
            raise AssertionError(f"the replicas' values differ in form: {list(values)}")
        parts = [regroup(devices, part, wrap) for part in zip(*values, strict=True)]
        if hasattr(first, "_make"):
            return first._make(parts)
        return parts if isinstance(first, list) else tuple(parts)
    if isinstance(first, dict):
        if not all(isinstance(v, dict) and v.keys() == first.keys() for v in others):
            raise AssertionError(f"the replicas' values differ in form: {list(values)}")
        return type(first)((key, regroup(devices, [v[key] for v in values], wrap)) for key in first)
    container = _container(first)
    if all(v is first for v in others) and (container is None or container is first):
        return first
    if container is not None:
        if not all(_container(v) is container for v in others):
            raise AssertionError(f"copies of several variables where one is meant: {list(values)}")
        return container
    return wrap(devices, values)


def _container(value: Any) -> Any:
    """The variable of which a variable is a copy; None for what is none."""
    reference = getattr(value, "_distributed_container", None)
    return None if reference is None else reference()


def select_replica(index: int, structure: Any) -> Any:
    """A structure with one replica's values."""

    def select(value: Any) -> Any:
        return value.values[index] if isinstance(value, DistributedValues) else value

    return nest.map_structure(select, structure)


def select_device_mirrored(device: str, structure: Any) -> Any:
    """A structure with the copies of one device.

    Raises:
        TypeError: a value differs from replica to replica.
    """

    def select(value: Any) -> Any:
        if not isinstance(value, DistributedValues):
            return value
        if isinstance(value, PerReplica):
            raise TypeError(
                f"Expected value to be mirrored across replicas: {value} in {structure}."
            )
        return value.get(device)

    return nest.map_structure(select, structure)


def update_regroup(
    extended: Any, devices: Sequence[str], updates: Sequence[Any], grouped: bool
) -> Any:
    """What a function gave on each device, as one: each copy waits for all, if grouped."""
    if not grouped:
        return nest.map_structure(extended._local_results, regroup(devices, updates, Mirrored))

    def together(devices: Sequence[str], values: Sequence[Any]) -> Any:
        if len(values) == 1:
            return Mirrored(devices, values)
        done = group(*values)
        if not all(is_tensor(v) for v in values):
            return done
        copies = []
        for where, value in zip(devices, values, strict=True):
            with device(where), control_dependencies([done]):
                copies.append(identity(value))
        return Mirrored(devices, copies)

    return regroup(devices, updates, together)
