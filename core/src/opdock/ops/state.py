"""Ops on variables: creation, assignment, reads, and updates of parts.

A reference variable is a `VariableV2` node whose output refers to its storage; a resource variable
is a handle. Kernels get either as a `Cell`.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with
from opdock.ops.registry import ShapeSig, Traits, define_op, get, keeps_slices
from opdock.ops.support.common_shapes import check_scatter_nd, no_outputs, scalar, unchanged
from opdock.shapes import Shape

__all__ = ["assign", "assign_add", "assign_sub", "count_up_to", "is_variable_initialized"]

_NUMBERS = "{numbertype}"

# ---------------------------------------------------------------- holders
variable_v2_op = define_op(
    "VariableV2", "-> ref: Ref(dtype)",
    'shape: shape, dtype: type, container: string = "", shared_name: string = ""', stateful=True,
)  # fmt: skip
variable_op = define_op(
    "Variable", "-> ref: Ref(dtype)",
    'shape: shape, dtype: type, container: string = "", shared_name: string = ""', stateful=True,
)  # fmt: skip
temporary_variable_op = define_op(
    "TemporaryVariable", "-> ref: Ref(dtype)", 'shape: shape, dtype: type, var_name: string = ""',
    stateful=True,
)  # fmt: skip
var_handle_op = define_op(
    "VarHandleOp", "-> resource: resource",
    'container: string = "", shared_name: string = "", dtype: type, shape: shape', stateful=True,
)  # fmt: skip
destroy_temporary_variable_op = define_op(
    "DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type, var_name: string"
)
for _op in (variable_v2_op, variable_op, var_handle_op):
    _op.declare(Traits(builtin=True, holds=True))
# A step makes its own, so that nothing holds it between steps.
temporary_variable_op.declare(Traits(builtin=True, effect=False, merge=False, fold=False))
destroy_temporary_variable_op.declare(Traits(builtin=True))
destroy_temporary_variable_op.shape(unchanged)
destroy_temporary_variable_op.not_differentiable()


@variable_v2_op.shape
@variable_op.shape
@temporary_variable_op.shape
def _declared_shape(sig: ShapeSig) -> Shape:
    shape: Shape = sig.attrs["shape"]
    # TF cannot tell "scalar" from "unknown" in Variable, but can in VariableV2.
    return None if sig.op == "Variable" and shape == () else shape


for _op in (variable_v2_op, variable_op, temporary_variable_op, var_handle_op):
    _op.not_differentiable()
var_handle_op.shape(scalar)

# ---------------------------------------------------------------- whole values, by reference
assign_op = define_op(
    "Assign", "ref: Ref(T), value: T -> output_ref: Ref(T)",
    "T: type, validate_shape: bool = true, use_locking: bool = true",
    allows_uninitialized_input=True,
)  # fmt: skip
assign_op.declare(Traits(builtin=True, keeps=("value",), validates="validate_shape"))
assign_add_op = define_op(
    "AssignAdd", "ref: Ref(T), value: T -> output_ref: Ref(T)",
    f"T: {_NUMBERS}, use_locking: bool = false",
)  # fmt: skip
assign_sub_op = define_op(
    "AssignSub", "ref: Ref(T), value: T -> output_ref: Ref(T)",
    f"T: {_NUMBERS}, use_locking: bool = false",
)  # fmt: skip
is_variable_initialized_op = define_op(
    "IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type",
    allows_uninitialized_input=True,
)  # fmt: skip
is_variable_initialized_op.declare(Traits(builtin=True, reads=("ref",), keeps=(), on_host=True))
count_up_to_op = define_op("CountUpTo", "ref: Ref(T) -> output: T", "limit: int, T: {int32, int64}")


@assign_op.shape
def _assign_shape(sig: ShapeSig) -> Shape:
    if sig.attrs["validate_shape"]:
        return shapes.merge(sig.shapes[0], sig.shapes[1])
    return sig.shapes[1]


@assign_add_op.shape
@assign_sub_op.shape
def _update_shape(sig: ShapeSig) -> Shape:
    return shapes.merge(sig.shapes[0], sig.shapes[1])


is_variable_initialized_op.shape(scalar)
count_up_to_op.shape(unchanged)
for _op in (assign_op, assign_add_op, assign_sub_op, is_variable_initialized_op, count_up_to_op):
    _op.not_differentiable()


@assign_add_op.decomposition
def _assign_add_parts(sig: ShapeSig, ref: Tensor, value: Tensor) -> Any:
    return assign_op(ref, get("AddV2")(get("Identity")(ref), value), validate_shape=False)


@assign_sub_op.decomposition
def _assign_sub_parts(sig: ShapeSig, ref: Tensor, value: Tensor) -> Any:
    return assign_op(ref, get("Sub")(get("Identity")(ref), value), validate_shape=False)


# ---------------------------------------------------------------- whole values, by handle
read_variable_op = define_op(
    "ReadVariableOp", "resource: resource -> value: dtype", "dtype: type", stateful=True
)
read_variable_op.declare(Traits(builtin=True, reads=("resource",), keeps=("value",)))
assign_variable_op = define_op(
    "AssignVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True
)
assign_variable_op.declare(Traits(builtin=True, keeps=("value",)))
assign_add_variable_op = define_op(
    "AssignAddVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True
)
assign_sub_variable_op = define_op(
    "AssignSubVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True
)
var_is_initialized_op = define_op(
    "VarIsInitializedOp", "resource: resource -> is_initialized: bool", stateful=True
)
var_is_initialized_op.declare(Traits(builtin=True, reads=("resource",), keeps=(), on_host=True))
variable_shape_op = define_op(
    "VariableShape", "input: resource -> output: out_type", "out_type: {int32, int64} = int32",
    stateful=True,
)  # fmt: skip
variable_shape_op.declare(Traits(builtin=True, reads=("input",), keeps=(), on_host=True))
destroy_resource_op = define_op(
    "DestroyResourceOp", "resource: resource ->", "ignore_lookup_error: bool = true", stateful=True
)
destroy_resource_op.declare(Traits(builtin=True, keeps=()))
# Programs of TensorFlow 2 write it. A read never copies here: there is nothing to end.
disable_copy_on_read_op = define_op("DisableCopyOnRead", "resource: resource ->", stateful=True)
disable_copy_on_read_op.declare(Traits(builtin=True, reads=("resource",), keeps=(), on_host=True))
resource_count_up_to_op = define_op(
    "ResourceCountUpTo", "resource: resource -> output: T", "limit: int, T: {int32, int64}",
    stateful=True,
)  # fmt: skip
resource_gather_op = define_op(
    "ResourceGather", "resource: resource, indices: Tindices -> output: dtype",
    "batch_dims: int = 0, validate_indices: bool = true, dtype: type, Tindices: {int32, int64}",
    stateful=True,
)  # fmt: skip
resource_gather_nd_op = define_op(
    "ResourceGatherNd", "resource: resource, indices: Tindices -> output: dtype",
    "dtype: type, Tindices: {int32, int64}", stateful=True,
)  # fmt: skip
for _op in (resource_gather_op, resource_gather_nd_op):
    _op.declare(Traits(reads=("resource",)))


def _behind(sig: ShapeSig, attr: str = "dtype") -> Shape:
    """The shape of the variable behind the handle, None where it is not known.

    That is asked when a node is made. A step may assign values of other shapes, as in TF.

    Raises:
        ValueError: it holds another type than the op takes for granted.
    """
    handle, dtype = sig.handle(0), sig.attrs[attr]
    if handle is None:
        return None
    if handle.dtype.base_dtype is not dtype.base_dtype:
        doing = "read" if sig.n_outputs else "assign"
        raise ValueError(
            f"Trying to {doing} variable with wrong dtype. Expected {handle.dtype.name} got "
            f"{dtype.name}"
        )
    return handle.shape


@read_variable_op.shape
def _read_shape(sig: ShapeSig) -> Shape:
    return _behind(sig)


@resource_count_up_to_op.shape
def _resource_count_shape(sig: ShapeSig) -> Shape:
    return _behind(sig, "T")


@resource_gather_op.shape
def _resource_gather_shape(sig: ShapeSig) -> Shape:
    params, indices, batch = _behind(sig), sig.shapes[1], sig.attrs["batch_dims"]
    if params is None or indices is None:
        return None
    if batch < 0:
        batch += len(indices)
    return (*indices[:batch], *indices[batch:], *params[batch + 1 :])


@resource_gather_nd_op.shape
def _resource_gather_nd_shape(sig: ShapeSig) -> Shape:
    params, indices = _behind(sig), sig.shapes[1]
    if params is None or not indices or indices[-1] is None:
        return None
    if indices[-1] > len(params):
        raise ValueError(
            f"indices.shape[-1] must be <= params.rank, but saw indices.shape: "
            f"{shapes.text(indices)} and params.shape: {shapes.text(params)}"
        )
    return (*indices[:-1], *params[indices[-1] :])


@variable_shape_op.shape
def _variable_shape_shape(sig: ShapeSig) -> Shape:
    handle = sig.handle(0)
    return (None,) if handle is None or handle.shape is None else (len(handle.shape),)


def _assigned(sig: ShapeSig) -> list[Shape]:
    """Of an op that writes a whole variable: the value has to fit what the handle says."""
    shapes.merge(_behind(sig), sig.shapes[1])
    return []


var_is_initialized_op.shape(scalar)
for _op in (assign_variable_op, assign_add_variable_op, assign_sub_variable_op):
    _op.shape(_assigned)
    _op.not_differentiable()
for _op in (destroy_resource_op, disable_copy_on_read_op):
    _op.shape(no_outputs)
    _op.not_differentiable()
for _op in (resource_count_up_to_op, var_is_initialized_op, variable_shape_op):
    _op.not_differentiable()


@read_variable_op.gradient
@keeps_slices
def _read_gradient(op: Operation, grad: Any) -> Any:
    return grad


@resource_gather_op.gradient
def _resource_gather_gradient(op: Operation, grad: Any) -> list[Any]:
    handle, indices = op.inputs
    with colocate_with(handle.op):
        shape = get("VariableShape")(handle)
    size = get("ExpandDims")(get("Size")(indices), 0)
    tail = get("StridedSlice")(shape, [1], [0], [1], end_mask=1)
    values = get("Reshape")(grad, get("ConcatV2")([size, tail], 0))
    return [IndexedSlices(values, get("Reshape")(indices, size), shape), None]


@resource_gather_op.decomposition
def _resource_gather_parts(sig: ShapeSig, handle: Tensor, indices: Tensor) -> Any:
    value = read_variable_op(handle, dtype=sig.attrs["dtype"])
    batch_dims = sig.attrs["batch_dims"]
    return get("GatherV2")(value, indices, batch_dims, batch_dims=batch_dims)


@resource_gather_nd_op.gradient
def _resource_gather_nd_gradient(op: Operation, grad: Any) -> list[Any]:
    handle, indices = op.inputs
    with colocate_with(handle.op):
        shape = get("VariableShape")(handle, out_type=indices.dtype)
    known = indices.raw_shape
    if known is not None and len(known) == 2 and known[1] == 1:
        return [IndexedSlices(grad, get("Squeeze")(indices, squeeze_dims=[1]), shape), None]
    return [get("ScatterNd")(indices, grad, shape), None]


@resource_gather_nd_op.decomposition
def _resource_gather_nd_parts(sig: ShapeSig, handle: Tensor, indices: Tensor) -> Any:
    return get("GatherNd")(read_variable_op(handle, dtype=sig.attrs["dtype"]), indices)


def _handle_update(op: str) -> Any:
    def parts(sig: ShapeSig, handle: Tensor, value: Tensor) -> Any:
        current = read_variable_op(handle, dtype=sig.attrs["dtype"])
        return assign_variable_op(handle, get(op)(current, value))

    return parts


assign_add_variable_op.decomposition(_handle_update("AddV2"))
assign_sub_variable_op.decomposition(_handle_update("Sub"))


# ---------------------------------------------------------------- parts of values
def _handle_scatter_shape(sig: ShapeSig) -> list[Shape]:
    _merged_updates(_behind(sig), *sig.shapes[1:])
    return []


def _scatter_shape(sig: ShapeSig) -> Shape:
    _merged_updates(*sig.shapes)
    return sig.shapes[0]


def _merged_updates(ref: Shape, indices: Shape, updates: Shape) -> None:
    """Checks that updates have the shape of the indices and then of a row."""
    if indices is not None and ref is not None and updates is not None and updates != ():
        shapes.merge(updates, shapes.concat(indices, ref[1:]))


def _scatter_nd_shape(sig: ShapeSig) -> Shape:
    ref, indices, updates = sig.shapes
    check_scatter_nd(ref, indices, updates, called="input")
    return ref


def _handle_scatter_nd_shape(sig: ShapeSig) -> list[Shape]:
    _, indices, updates = sig.shapes
    check_scatter_nd(_behind(sig, "T"), indices, updates, called="input")
    return []


_ORDERED = "{half, bfloat16, float, double, int32, int64}"
_SCATTER = ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
for _name in _SCATTER:
    _types = "type" if _name == "Update" else _NUMBERS
    _ref_types = _ORDERED if _name in ("Min", "Max") else _types
    _locking = "true" if _name == "Update" else "false"
    _ref_op = define_op(
        f"Scatter{_name}", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"T: {_ref_types}, Tindices: {{int32, int64}}, use_locking: bool = {_locking}",
    )  # fmt: skip
    _ref_op.shape(_scatter_shape)
    _ref_op.not_differentiable()
    _handle_op = define_op(
        f"ResourceScatter{_name}", "resource: resource, indices: Tindices, updates: dtype ->",
        f"dtype: {_types}, Tindices: {{int32, int64}}", stateful=True,
    )  # fmt: skip
    _handle_op.shape(_handle_scatter_shape)
    _handle_op.not_differentiable()
for _name in ("Update", "Add", "Sub"):
    _types = "type" if _name == "Update" else _NUMBERS
    _locking = "true" if _name == "Update" else "false"
    _ref_op = define_op(
        f"ScatterNd{_name}", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"T: {_types}, Tindices: {{int32, int64}}, use_locking: bool = {_locking}",
    )  # fmt: skip
    _ref_op.shape(_scatter_nd_shape)
    _ref_op.not_differentiable()
    _handle_op = define_op(
        f"ResourceScatterNd{_name}", "ref: resource, indices: Tindices, updates: T ->",
        "T: type, Tindices: {int32, int64}, use_locking: bool = true", stateful=True,
    )  # fmt: skip
    _handle_op.shape(_handle_scatter_nd_shape)
    _handle_op.not_differentiable()


# ---------------------------------------------------------------- public functions
def is_resource(ref: Any) -> bool:
    return not ref.dtype._is_ref_dtype


UPDATING = {
    "ref": "a variable.",
    "value": "a tensor of the variable's type and shape.",
    "use_locking": "whether concurrent updates exclude each other.",
    "name": "a name for the operation.",
    "returns": "The variable afterwards, to be read when the update has been made.",
    "raises": "TypeError: the types differ.\nValueError: the shapes do.",
}


def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Assigns `value` to a variable; the result is the variable after the assignment.

    Args:
        ref: a variable.
        value: the new value, of the variable's type.
        validate_shape: whether the shape must stay the same (True by default).
        use_locking: whether concurrent assignments exclude each other.
        name: the node's name.

    Raises:
        ValueError: the shapes differ. TypeError: the types differ.
    """
    if is_resource(ref):
        return ref.assign(value, name=name)
    return assign_op(
        ref, value, name=name, validate_shape=True if validate_shape is None else validate_shape,
        use_locking=True if use_locking is None else use_locking,
    )  # fmt: skip


@explained(UPDATING)
def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Adds `value` to a variable; the result is the variable after the addition."""
    if is_resource(ref):
        return ref.assign_add(value, name=name)
    return assign_add_op(ref, value, use_locking=bool(use_locking), name=name)


@explained(UPDATING)
def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Subtracts `value` from a variable; the result is the variable after the subtraction."""
    if is_resource(ref):
        return ref.assign_sub(value, name=name)
    return assign_sub_op(ref, value, use_locking=bool(use_locking), name=name)


def is_variable_initialized(variable: Any) -> Any:
    """A bool tensor: whether the variable has a value."""
    if is_resource(variable):
        return variable.is_initialized()
    return is_variable_initialized_op(variable)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Any:
    """Returns the variable's value and increments it; OutOfRangeError at `limit`.

    Args:
        ref: a scalar variable of integers.
        limit: the value that it does not pass.
        name: a name for the operation.
    """
    if is_resource(ref):
        return resource_count_up_to_op(ref.handle, limit=limit, T=ref.dtype, name=name)
    return count_up_to_op(ref, limit=limit, name=name)
