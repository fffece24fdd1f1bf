"""Rows replaced, raised or lowered, and tensors whose elements nobody set.

TF's ops write to the memory of their input; here the result is a tensor of its own, as for every
op, and the memory plan takes the input's memory where nobody reads it again.
"""

from __future__ import annotations

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
