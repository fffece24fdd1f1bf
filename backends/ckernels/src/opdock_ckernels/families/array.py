"""Shape changes, which share memory, and repetitions, which move elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import NUMBERS, KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["HELD", "table"]

table = KernelTable()
HELD = NUMBERS | {dtypes.bool}
"""Every type whose elements can be moved."""


@table.binder("Reshape", T=HELD, host_inputs=("shape",), may_alias={0: 0})
def reshape(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The same memory under another shape."""
    ints, wanted = codegen.ints, codegen.wanted_shape
    return lambda x, shape: x.reshape(*wanted(x.shape, ints(shape)))


@table.binder("ExpandDims", T=HELD, host_inputs=("dim",), may_alias={0: 0})
def expand_dims(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """A dimension of size 1 inserted."""

    def run(x: Array, dim: Any) -> Array:
        axes, n = codegen.ints(dim), x.ndim
        if len(axes) != 1:
            raise codegen.invalid("'dim' must be a tensor with a single value")
        if not -n - 1 <= axes[0] <= n:
            raise codegen.invalid(
                f"Tried to expand dim index {axes[0]} for tensor with {n} dimensions."
            )
        at = axes[0] if axes[0] >= 0 else axes[0] + n + 1
        return x.reshape(*x.shape[:at], 1, *x.shape[at:])

    return run


@table.binder("Squeeze", T=HELD, may_alias={0: 0})
def squeeze(sig: NodeSig) -> Callable[[Array], Array]:
    """Dimensions of size 1 removed."""
    given = sig.attrs["squeeze_dims"]

    def run(x: Array) -> Array:
        n = x.ndim
        if any(not -n <= a < n for a in given):
            raise codegen.invalid(
                f"Tried to squeeze dim index {given} for tensor with {n} dimensions."
            )
        axes = {a % n for a in given} if given else {i for i, d in enumerate(x.shape) if d == 1}
        for a in sorted(axes):
            if x.shape[a] != 1:
                raise codegen.invalid(
                    f"Can not squeeze dim[{a}], expected a dimension of 1, got {x.shape[a]}"
                )
        return x.reshape(*(d for i, d in enumerate(x.shape) if i not in axes))

    return run


@table.binder("BroadcastTo", T=HELD, out=True, host_inputs=("shape",))
def broadcast_to(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated along new and size-1 dimensions."""
    device = sig.device

    def run(x: Array, shape: Any, out: Array | None) -> Array:
        wanted = codegen.ints(shape)
        lead = len(wanted) - x.ndim
        fits = lead >= 0 and all(n in (1, m) for n, m in zip(x.shape, wanted[lead:], strict=True))
        if not fits:
            raise codegen.invalid(
                f"Incompatible shapes: {codegen.dims(x.shape)} vs. {codegen.dims(wanted)}"
            )
        steps = [0 if n == 1 else s for n, s in zip(x.shape, strides_of(x.shape), strict=True)]
        return take(device, x, wanted, [0] * lead + steps, 0, out)

    return run


@table.binder("EnsureShape", T=HELD, may_alias={0: 0})
def ensure_shape(sig: NodeSig) -> Callable[[Array], Array]:
    """The input, if its shape is as expected."""
    check = codegen.check_shape

    def run(x: Array) -> Array:
        check(sig, x.shape)
        return x

    return run
