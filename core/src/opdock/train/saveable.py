"""What a Saver saves: each thing as tensors to write, and ops that take the values back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opdock.distribute.values import DistributedValues
from opdock.graph.nodes.devicespec import DeviceSpec, canonical_name
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.trackable import VARIABLE_VALUE_KEY
from opdock.ops.array import reshape
from opdock.ops.identity import identity
from opdock.ops.state import assign, assign_variable_op

__all__ = ["SaveSpec", "SaveableObject", "all_saveable_objects", "saveables_for"]

# The tensor of an object-based checkpoint that holds the graph of objects.
OBJECT_GRAPH_PROTO_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"

_REFS = ("Variable", "VariableV2", "AutoReloadVariable")
_HANDLES = ("VarHandleOp", "ReadVariableOp")


class SaveSpec:
    """One tensor of a saveable.

    Args:
        tensor: the tensor, or a function that makes it when the save ops are built.
        slice_spec: "full shape slice" of a partition, "" for a whole tensor.
        name: the key in the checkpoint.
        dtype: the type; the tensor's when None.
        device: the device; the tensor's when None.
    """

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: Any = None
    ) -> None:
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        made = callable(tensor) and not isinstance(tensor, Tensor) and not hasattr(tensor, "op")
        self._make: Callable[[], Any] | None = tensor if made else None
        if made and (dtype is None or device is None):
            raise AssertionError("a callable tensor needs dtype and device")
        self.dtype = (tensor.dtype if dtype is None else dtype).base_dtype
        self.device = tensor.device if device is None else device

    @property
    def tensor(self) -> Any:
        """The tensor to save."""
        return self._tensor if self._make is None else self._make()


class SaveableObject:
    """Something that a Saver can save; subclass it for state other than variables.

    Args:
        op: what is saved, or the op that owns it.
        specs: the `SaveSpec`s.
        name: the name it goes by.
    """

    def __init__(self, op: Any, specs: list[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = specs
        self.name = name

    @property
    def device(self) -> Any:
        """The device of the tensors."""
        return self.specs[0].device

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        """Makes the op that takes restored values.

        Args:
            restored_tensors: one value for each spec.
            restored_shapes: shapes to give the values, or None.

        Returns:
            An operation.
        """
        raise NotImplementedError("Calling an abstract method.")


class ReferenceVariableSaveable(SaveableObject):
    """A reference variable, or one partition of one."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        super().__init__(var, [SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        """Assigns the value."""
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        known = self.op.get_shape().is_fully_defined()
        return assign(self.op, value, validate_shape=restored_shapes is None and known)


class ResourceVariableSaveable(SaveableObject):
    """A resource variable, given as such or as a read of one."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        self._shape = var.shape
        if isinstance(var, Tensor):
            self._handle = var if var.op.type == "VarHandleOp" else var.op.inputs[0]
            tensor: Any = var
        else:
            self._handle = var.handle

            def tensor() -> Tensor:
                with device(var.device):
                    value = var.read_value()
                # A copy on the host of the task that has the variable.
                with device(set_cpu0(var.device)):
                    return identity(value)

        self._device = var.device
        spec = SaveSpec(tensor, slice_spec, name, dtype=var.dtype, device=var.device)
        super().__init__(var, [spec], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        """Assigns the value to the resource."""
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = reshape(value, restored_shapes[0])
        with device(self._device):
            value = identity(value)
            value.set_shape(self._shape)
            return assign_variable_op(self._handle, value)


# ---------------------------------------------------------------- finding them
def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """The global variables and the saveable objects of the default graph."""
    graph = get_default_graph()
    return [
        *graph.get_collection("variables", scope),
        *graph.get_collection("saveable_objects", scope),
    ]


def saveables_for(names_to_saveables: Any) -> list[SaveableObject]:
    """The saveables of a Saver's `var_list`, by name.

    Raises:
        TypeError: `var_list` is neither dict nor list, or an item cannot be saved.
        ValueError: two items have one name, or one item two.
    """
    if not isinstance(names_to_saveables, dict):
        names_to_saveables = names_of(names_to_saveables)
    out: list[SaveableObject] = []
    seen: set[int] = set()
    for name in sorted(names_to_saveables, key=str):
        for saveable in _saveables(names_to_saveables[name], name):
            key = id(getattr(saveable.op, "op", saveable.op))
            if key in seen:
                raise ValueError(
                    f"The same saveable will be restored with two names: {saveable.name}"
                )
            seen.add(key)
            out.append(saveable)
    return out


def names_of(var_list: Any) -> dict[str, Any]:
    """Checkpoint keys for a list of variables: their names, partitions under the whole's.

    Raises:
        TypeError: it is no list, or an item is no variable.
        ValueError: two variables have one name.
    """
    if not isinstance(var_list, (list, tuple, set, frozenset)):
        raise TypeError(f"Variables to save should be passed in a dict or a list: {var_list}")
    names: dict[str, Any] = {}
    parts_of = (part for item in _flat(var_list) for part in _made(item))
    for var in sorted(parts_of, key=lambda v: str(v.name)):
        if isinstance(var, SaveableObject) or _is_partitioned(var):
            _claim(names, var.name, var)
            continue
        info = getattr(var, "_save_slice_info", None)
        if info is not None:
            parts = names.setdefault(info.full_name, [])
            if not isinstance(parts, list):
                raise ValueError(
                    f"Mixing slices and non-slices with the same name: {info.full_name}"
                )
            parts.append(var)
            continue
        tensor = _variable_tensor(var)
        if tensor is None:
            raise TypeError(f"Variable to save is not a Variable: {var}")
        owner = tensor.op.inputs[0].op if tensor.op.type == "ReadVariableOp" else tensor.op
        _claim(names, owner.name, var)
    return names


def _made(item: Any) -> list[Any]:
    """The saveables that an object such as a table makes of itself, or the item as it is."""
    if not _gathers(item):
        return [item]
    parts = item._gather_saveables_for_checkpoint().values()
    return [part() if callable(part) else part for part in parts]


def _gathers(item: Any) -> bool:
    """Whether an object says itself what of it is saved: one that is not just a tensor."""
    if not hasattr(item, "_gather_saveables_for_checkpoint"):
        return False
    return isinstance(item, DistributedValues) or _variable_tensor(item) is None


def _flat(items: Any) -> Iterator[Any]:
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _flat(item)
        else:
            yield item


def _claim(names: dict[str, Any], name: str, var: Any) -> None:
    if name in names:
        raise ValueError(f"At least two variables have the same name: {name}")
    names[name] = var


def _is_partitioned(var: Any) -> bool:
    return hasattr(var, "_get_partitions") and hasattr(var, "__iter__")


def _is_resource(var: Any) -> bool:
    return getattr(var, "handle", None) is not None and not isinstance(var, Tensor)


def _variable_tensor(var: Any) -> Tensor | None:
    """The tensor that stands for a variable: its reference, or its handle's graph element."""
    if isinstance(var, Tensor):
        tensor: Any = var
    elif _is_resource(var):
        tensor = var.handle
    else:
        ref = getattr(var, "_ref", None)
        tensor = ref() if ref is not None else None
    if isinstance(tensor, Tensor) and tensor.op.type in _REFS + _HANDLES:
        return tensor
    return None


def _saveables(item: Any, name: Any) -> Iterator[SaveableObject]:
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to checkpointable operations."
            f" Name is not a string: {name}"
        )
    if isinstance(item, SaveableObject):
        yield item
    elif _gathers(item):
        for part, make in item._gather_saveables_for_checkpoint().items():
            # An object that stands for a variable goes by its own name.
            full = name if part == VARIABLE_VALUE_KEY else f"{name}_{part}"
            made = make(full) if callable(make) and not isinstance(make, Tensor) else make
            yield from _saveables(made, made.name)
    elif isinstance(item, (list, tuple)) or _is_partitioned(item):
        yield from _partitions(list(item), name)
    else:
        tensor = _variable_tensor(item)
        if tensor is None:
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to Tensors/Variables. Not"
                f" a variable: {item}"
            )
        if tensor.op.type in _REFS:
            yield ReferenceVariableSaveable(tensor, "", name)
        else:
            yield ResourceVariableSaveable(item, "", name)


def _partitions(parts: list[Any], name: str) -> Iterator[SaveableObject]:
    full_name = None
    for part in parts:
        if isinstance(part, Tensor) or _variable_tensor(part) is None:
            raise ValueError(f"Slices must all be Variables: {part}")
        info = getattr(part, "_save_slice_info", None)
        if info is None:
            raise ValueError(f"Slices must all be slices: {part}")
        full_name = full_name or info.full_name
        if info.full_name != full_name:
            raise ValueError(
                f"Slices must all be from the same tensor: {full_name} != {info.full_name}"
            )
        kind = ResourceVariableSaveable if _is_resource(part) else ReferenceVariableSaveable
        yield kind(part, info.spec, name)


# ---------------------------------------------------------------- devices
def set_cpu0(device_string: str) -> str:
    """The first CPU of the task of a device."""
    spec = DeviceSpec.from_string(device_string or "")
    spec.device_type, spec.device_index = "CPU", 0
    return spec.to_string()


def group_by_device(saveables: list[SaveableObject]) -> list[tuple[str, list[SaveableObject]]]:
    """The saveables of each device, devices in order of their names.

    Raises:
        ValueError: a saveable's tensors are on several devices.
    """
    groups: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        found = {canonical_name(spec.device) for spec in saveable.specs}
        if len(found) != 1:
            raise ValueError(
                "All tensors of a saveable object must be on the same device:"
                f" {saveable.name} is on {sorted(found)}"
            )
        groups.setdefault(found.pop(), []).append(saveable)
    return sorted(groups.items())


def op_of(saveable: SaveableObject) -> Operation | None:
    """The operation behind a saveable, if it has one."""
    found = getattr(saveable.op, "op", saveable.op)
    return found if isinstance(found, Operation) else None
