"""Stacks of tensors: where the loops of TF 1 keep what their gradients need.

A handle names a stack within one step. `tf.gradients` makes none here; graphs that TF 1 wrote, with
the gradients of their loops in them, do.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support.common_shapes import no_outputs, unknown
from opdock.shapes import Shape

__all__: list[str] = []

stack_op = define_op(
    "StackV2", "max_size: int32 -> handle: resource", 'elem_type: type, stack_name: string = ""',
    stateful=True,
)  # fmt: skip
stack_push_op = define_op(
    "StackPushV2", "handle: resource, elem: T -> output: T", "T: type, swap_memory: bool = false",
    stateful=True,
)  # fmt: skip
stack_pop_op = define_op(
    "StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", stateful=True
)
stack_close_op = define_op("StackCloseV2", "handle: resource ->", stateful=True)


@stack_op.shape
def _stack_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return ()


@stack_push_op.shape
def _push_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[1]


stack_pop_op.shape(unknown)
stack_close_op.shape(no_outputs)
for _op in (stack_op, stack_push_op, stack_pop_op, stack_close_op):
    _op.not_differentiable()
