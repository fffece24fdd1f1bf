"""The optimizers' update ops: ApplyAdam, ResourceApplyAdam, SparseApplyMomentum, ...

Generated from the table of rules. Where a device has no kernel the op is its rule in graph ops:
read, compute, assign.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.nodes.traits import Traits
from opdock.ops.registry import OpSpec, ShapeSig, define_op, get
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape
from opdock.util.update_rules import BY_OP, Update, op_name

__all__: list[str] = []


def _signature(update: Update, resource: bool, sparse: bool) -> str:
    holder = "resource" if resource else "Ref(T)"
    parts = [f"{name}: {holder}" for name in ("var", *update.state)]
    for name in update.inputs:
        if sparse and name == update.gradient:
            # TF calls it "delta" in two dense ops only.
            parts.append("grad: T, indices: Tindices")
        else:
            parts.append(f"{name}: {'int64' if name in update.integers else 'T'}")
    return ", ".join(parts) + (" ->" if resource else " -> out: Ref(T)")


def _attrs(update: Update, sparse: bool) -> str:
    attrs = ["T: numbertype"]
    if sparse:
        attrs.append("Tindices: {int32, int64}")
    attrs.append("use_locking: bool = false")
    attrs += [f"{name}: bool = {str(default).lower()}" for name, default in update.flags]
    return ", ".join(attrs)


def _same_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[0]


def _dense_shape(sig: ShapeSig) -> Shape:
    update = BY_OP[sig.op]
    shape = sig.shapes[0]
    for i in range(len(update.state) + 1):
        shape = shapes.merge(shape, sig.shapes[i])
    gradient = len(update.state) + 1 + update.inputs.index(update.gradient)
    return shapes.merge(shape, sig.shapes[gradient])


class GraphNamespace:
    """The rules' namespace over graph tensors."""

    @staticmethod
    def sqrt(x: Any) -> Any:
        """Square root."""
        return get("Sqrt")(x)

    @staticmethod
    def abs(x: Any) -> Any:
        """Absolute value."""
        return get("Abs")(x)

    @staticmethod
    def exp(x: Any) -> Any:
        """Exponential."""
        return get("Exp")(x)

    @staticmethod
    def sign(x: Any) -> Any:
        """Sign."""
        return get("Sign")(x)

    @staticmethod
    def maximum(x: Any, y: Any) -> Any:
        """Maximum."""
        return get("Maximum")(x, y)

    @staticmethod
    def pow(x: Any, y: Any) -> Any:
        """Power."""
        return get("Pow")(x, y)

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        """Selection."""
        return get("Select")(condition, x, y)


def _decompose(update: Update, resource: bool, sparse: bool) -> Any:
    def parts(sig: ShapeSig, *inputs: Tensor) -> Any:
        count = len(update.state) + 1
        holders, rest = list(inputs[:count]), list(inputs[count:])
        dtype = sig.attrs["T"]
        indices = None
        if sparse:
            indices = rest.pop(update.inputs.index(update.gradient) + 1)
        given = dict(zip(update.inputs, rest, strict=True))
        for name in update.integers:
            given[name] = get("Cast")(given[name], DstT=dtype)
        flags = {name: sig.attrs[name] for name, _ in update.flags}
        state = [_read(h, dtype, resource) for h in holders]
        if indices is not None:
            state = [get("GatherV2")(s, indices, 0) for s in state]
        fresh = update.rule(GraphNamespace, flags, state, **given)
        var, *slots = zip(holders, fresh, strict=True)
        # Whoever takes the variable as the result takes the whole update.
        with control_dependencies([_write(h, v, indices, resource) for h, v in slots]):
            return _write(*var, indices, resource)

    return parts


def _read(holder: Tensor, dtype: dtypes.DType, resource: bool) -> Tensor:
    if resource:
        return get("ReadVariableOp")(holder, dtype=dtype)  # type: ignore[no-any-return]
    return get("Identity")(holder)  # type: ignore[no-any-return]


def _write(holder: Tensor, value: Any, indices: Tensor | None, resource: bool) -> Any:
    if indices is not None:
        return get("ResourceScatterUpdate" if resource else "ScatterUpdate")(holder, indices, value)
    if resource:
        return get("AssignVariableOp")(holder, value)
    return get("Assign")(holder, value, validate_shape=False)


def _define(update: Update, resource: bool, sparse: bool) -> OpSpec:
    name = op_name(update, resource, sparse)
    spec = define_op(
        name, _signature(update, resource, sparse), _attrs(update, sparse), stateful=resource
    )
    spec.shape(no_outputs if resource else _same_shape if sparse else _dense_shape)
    spec.not_differentiable()
    if not sparse:
        spec.declare(Traits(own=("var", *update.state, update.gradient)))
    spec.decomposition(_decompose(update, resource, sparse))
    return spec


for _name, _update in BY_OP.items():
    _define(_update, _name.startswith("Resource"), "SparseApply" in _name)
