"""Structural ops: they name, hold, pass on, move or tell of values, and compute nothing.

They run on every device without a kernel of its backend.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.compiler.ir.block import Node
from opdock.compiler.ir.state import variable_name
from opdock.dtypes import proto_name
from opdock.kernels.select.cells import Cell
from opdock.runtime.cluster.exchange import bind_receive, bind_send
from opdock.runtime.handles import delete_tensor, keep_tensor, kept_tensor
from opdock.runtime.memory_stats import bytes_of_device
from opdock.runtime.program.claims import strayed
from opdock.runtime.resources import Cell as Storage
from opdock.runtime.resources import ResourceManager

Bind = Callable[[Node, ResourceManager], Callable[..., Any]]


def _assign(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    static = node.inputs[0].shape
    if not node.attrs.get("validate_shape", True):
        return functools.partial(_store, static)

    def assign(cell: Any, value: Any) -> Any:
        held, given, expected = cell.held_shape, tuple(value.shape), static
        if held is not None and static is not None and None not in static:
            # Another graph, or an assignment that looked at no shape, may have given it another.
            expected = held
        if expected is not None and not shapes.is_compatible(expected, given):
            raise errors.InvalidArgumentError(
                None, None,
                "Assign requires shapes of both tensors to match. lhs shape= "
                f"{shapes.text(expected)} rhs shape= {shapes.text(given)}",
            )  # fmt: skip
        cell.write(value)
        return cell

    return assign


def _store(static: shapes.Shape, cell: Any, value: Any) -> Any:
    """Writes a value of any shape.

    Raises:
        ClaimError: what follows is compiled for another shape of the variable.
    """
    cell.write(value)
    if not shapes.is_compatible(static, tuple(value.shape)):
        raise strayed(cell, static, value.shape)
    return cell


def _assign_variable(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    holder = node.inputs[0].node
    # A handle itself is a scalar, and one that came as an argument tells of no variable.
    static: shapes.Shape = holder.attrs.get("shape") if holder.traits.holds else None

    def assign(cell: Any, value: Any) -> None:
        cell.write(value)
        if not shapes.is_compatible(static, tuple(value.shape)):
            error = strayed(cell, static, value.shape)
            error.results = ()
            raise error

    return assign


def read_variable(cell: Any) -> Any:
    """The value of a variable that is read for itself, not to be updated or gathered from.

    Raises:
        FailedPreconditionError: it has none.
    """
    try:
        return cell.read()
    except errors.NotFoundError as e:
        raise errors.FailedPreconditionError(
            None, None,
            f"Error while reading resource variable {cell.name} from Container: localhost. "
            f"This could mean that the variable was uninitialized. Not found: {e.message}",
        ) from None  # fmt: skip


def _read(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    return read_variable


def _initialized(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    return lambda cell: np.bool_(cell.initialized)


def _destroy(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    ignore = node.attrs.get("ignore_lookup_error", True)

    def destroy(cell: Any) -> None:
        if not ignore and not cell.initialized:
            raise errors.NotFoundError(None, None, f"Resource {cell.name} does not exist.")
        cell.clear()

    return destroy


def _temporary_name(node: Node) -> str:
    return node.attrs["var_name"] or node.name


def _temporary(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    shape, dtype = node.attrs["shape"], node.attrs["dtype"]
    if not shapes.is_fully_defined(shape):
        raise errors.InvalidArgumentError(
            None, None, f"TemporaryVariable needs a whole shape, got {shapes.text(shape)}"
        )
    zeros = np.zeros(shape, dtype.np)

    def make() -> Cell:
        cell = Storage(_temporary_name(node), dtype)
        cell.write(_kept(node, zeros))
        return cell

    return make


def _kept(node: Node, value: np.ndarray[Any, Any]) -> Any:
    """A buffer of the node's device with a copy of the value."""
    target = node.target
    return value.copy() if target is None or target.is_host else target.device.upload(value)


def _destroy_temporary(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    name = node.attrs["var_name"]

    def destroy(cell: Any) -> Any:
        if cell.name != name or not cell.initialized:
            raise errors.NotFoundError(
                None, None,
                f"Resource {name} does not exist: the temporary variable given is '{cell.name}'"
                + ("" if cell.initialized else ", which is destroyed already"),
            )  # fmt: skip
        value = cell.read()
        cell.clear()
        return value

    return destroy


def check_temporaries(nodes: Iterable[Node]) -> None:
    """Checks that no two temporary variables of a name are there at once.

    Args:
        nodes: in the order in which they run.

    Raises:
        AlreadyExistsError: two are.
    """
    there: set[str] = set()
    for node in nodes:
        if node.op == "TemporaryVariable":
            name = _temporary_name(node)
            if name in there:
                raise errors.AlreadyExistsError(
                    None, node.origin,
                    f"Resource {name} exists already: node '{node.name}' (TemporaryVariable) makes "
                    "a second temporary variable of that name in one step",
                )  # fmt: skip
            there.add(name)
        elif node.op == "DestroyTemporaryVariable":
            there.discard(node.attrs["var_name"])


def _variable_shape(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    dtype = node.out_dtypes[0].np
    return lambda cell: np.array(cell.read().shape, dtype)


def _sizes(node: Node) -> Callable[[Any, int], Any]:
    """What makes a vector, or a scalar, of sizes."""
    dtype = node.out_dtypes[0].np if node.out_dtypes else np.dtype(np.int32)
    most = np.iinfo(dtype).max

    def made(sizes: Any, largest: int) -> Any:
        if largest > most:
            raise errors.InvalidArgumentError(
                None, None, f"{node.op} has an output of {dtype.name}, which cannot hold {largest}"
            )
        return np.array(sizes, dtype)

    return made


def _shape(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    made = _sizes(node)

    def shape(x: Any) -> Any:
        sizes = np.shape(x)
        return made(sizes, max(sizes, default=0))

    return shape


def _shape_n(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    shape = _shape(node, resources)
    if len(node.out_dtypes) == 1:
        return shape
    return lambda *xs: tuple(map(shape, xs))


def _size(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    made = _sizes(node)

    def size(x: Any) -> Any:
        count = math.prod(np.shape(x))
        return made(count, count)

    return size


def _rank(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    dtype = node.out_dtypes[0].np
    return lambda x: np.array(len(np.shape(x)), dtype)


def _nothing(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    return lambda *inputs: None


def _pass_all(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    return (lambda x: x) if len(node.out_dtypes) == 1 else (lambda *inputs: inputs)


def _placeholder(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    dtype = proto_name(node.out_dtypes[0])
    shape = node.attrs.get("shape") or node.attrs.get("_shape")  # the latter of a parameter
    text = f"You must feed a value for placeholder tensor '{node.name}' with dtype {dtype}"
    if shape:
        text += f" and shape {shapes.text(shape)}"

    def missing() -> Any:
        raise errors.InvalidArgumentError(None, None, text)

    return missing


def _dead(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    text = (
        f"Retval[{node.attrs['index']}] does not have value: it is on the side of a Switch that is "
        "not taken"
    )

    def dead(_: Any) -> Any:
        raise errors.InvalidArgumentError(None, None, text)

    return dead


def _ref_select(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    def select(index: Any, *cells: Any) -> Any:
        if not 0 <= int(index) < len(cells):
            raise errors.InvalidArgumentError(
                None, None, f"RefSelect: index {int(index)} is not in [0, {len(cells)})"
            )
        return cells[int(index)]

    return select


BUILTINS: Final[dict[str, Bind]] = {
    "BytesInUse": functools.partial(bytes_of_device, "in_use"),
    "BytesLimit": functools.partial(bytes_of_device, "limit"),
    "MaxBytesInUse": functools.partial(bytes_of_device, "peak"),
    "DeleteSessionTensor": delete_tensor,
    "GetSessionHandle": keep_tensor,
    "GetSessionHandleV2": keep_tensor,
    "GetSessionTensor": kept_tensor,
    "Assign": _assign,
    "AssignVariableOp": _assign_variable,
    "ReadVariableOp": _read,
    "IsVariableInitialized": _initialized,
    "VarIsInitializedOp": _initialized,
    "DestroyResourceOp": _destroy,
    "DisableCopyOnRead": _nothing,
    "TemporaryVariable": _temporary,
    "DestroyTemporaryVariable": _destroy_temporary,
    "VariableShape": _variable_shape,
    "Shape": _shape,
    "ShapeN": _shape_n,
    "Size": _size,
    "Rank": _rank,
    "NoOp": _nothing,
    "ControlTrigger": _nothing,
    "IdentityN": _pass_all,
    "Placeholder": _placeholder,
    "_Arg": _placeholder,
    "PlaceholderV2": _placeholder,
    "RefSelect": _ref_select,
    "_DeadValue": _dead,
    "_ReceiveFromTask": bind_receive,
    "_SendToTask": bind_send,
}


def variable_cell(node: Node, resources: ResourceManager) -> Cell:
    """The storage that a variable node names."""
    dtype = node.attrs.get("dtype")
    container = node.attrs.get("container", "")
    resource = not node.out_dtypes[0]._is_ref_dtype
    cell = resources.cell(container, variable_name(node), dtype, resource=resource)
    if node.target is not None and not cell.initialized:
        cell.home = node.target.name
        # As in TensorFlow, nothing has to be written to a variable that has no elements; only a
        # handle leads to nothing before that.
        shape = node.attrs["shape"] or ()
        if not cell.resource and dtype is not None and 0 in shape and None not in shape:
            cell.write(_kept(node, np.empty(shape, dtype.np)))
    return cell
