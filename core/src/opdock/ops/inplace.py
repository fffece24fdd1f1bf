"""Rows replaced, raised or lowered, and tensors whose elements nobody set.

TF's ops write to the memory of their input; here the result is a tensor of its own, as for every
op, and the memory plan takes the input's memory where nobody reads it again.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support.common_shapes import unchanged
from opdock.shapes import Shape

__all__: list[str] = []


def _on_rows(name: str) -> OpSpec:
    op = define_op(name, "x: T, i: int32, v: T -> y: T", "T: type").not_differentiable()
    op.shape(unchanged)
    return op


inplace_update_op = _on_rows("InplaceUpdate")
inplace_add_op = _on_rows("InplaceAdd")
inplace_sub_op = _on_rows("InplaceSub")
deep_copy_op = define_op("DeepCopy", "x: T -> y: T", "T: type", stateful=True).not_differentiable()
deep_copy_op.shape(unchanged)
empty_op = define_op(
    "Empty", "shape: int32 -> output: dtype", "dtype: type, init: bool = false", stateful=True
).not_differentiable()


@empty_op.shape
def _empty_shape(sig: ShapeSig) -> Shape:
    return sig.const_shape(0)


# ---------------------------------------------------------------- functions of TF's inplace_ops
def _on(op: OpSpec, x: Any, i: Any, v: Any) -> Tensor:
    x = convert_to_tensor(x)
    v = convert_to_tensor(v, x.dtype)
    if i is None:
        whole = op(reshape(x, [1, -1]), [0], reshape(v, [1, -1]))
        return reshape(whole, shape(x))
    i = cast(i, dtypes.int32)
    if i.shape.ndims == 0:
        i, v = reshape(i, [1]), expand_dims(v, 0)
    out: Tensor = op(x, i, v)
    return out


def alias_inplace_update(x: Any, i: Any, v: Any) -> Tensor:
    """The tensor with rows replaced.

    Args:
        x: a tensor, which stays as it is: go on with the result.
        i: a row, a vector of rows, or None for the whole tensor.
        v: what stands there.
    """
    return _on(inplace_update_op, x, i, v)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Tensor:
    """The tensor with something added to rows; see `alias_inplace_update`."""
    return _on(inplace_add_op, x, i, v)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Tensor:
    """The tensor with something taken from rows; see `alias_inplace_update`."""
    return _on(inplace_sub_op, x, i, v)


# In TF these leave their argument alone and the others do not; here they all do.
inplace_update, inplace_add, inplace_sub = (
    alias_inplace_update, alias_inplace_add, alias_inplace_sub,
)  # fmt: skip


def empty_like(x: Any, init: bool | None = None) -> Tensor:
    """A tensor of the shape and type of another, whose elements nobody set; zeros with `init`."""
    x = convert_to_tensor(x)
    out: Tensor = empty_op(shape(x), dtype=x.dtype.base_dtype, init=bool(init))
    return out
