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

# The ops whose names end with V2 take a handle, the older ones a reference; both are the stack to a
# kernel. All are stateful, unlike the older ones in TF's definitions: what is on top is state.
for _suffix, _handle in (("", "Ref(string)"), ("V2", "resource")):
    _stack = define_op(
        f"Stack{_suffix}", f"{'max_size: int32 ' if _suffix else ''}-> handle: {_handle}",
        'elem_type: type, stack_name: string = ""', stateful=True,
    ).not_differentiable()  # fmt: skip
    _push = define_op(
        f"StackPush{_suffix}", f"handle: {_handle}, elem: T -> output: T",
        "T: type, swap_memory: bool = false", stateful=True,
    ).not_differentiable()  # fmt: skip
    _pop = define_op(
        f"StackPop{_suffix}", f"handle: {_handle} -> elem: elem_type", "elem_type: type",
        stateful=True,
    ).not_differentiable()  # fmt: skip
    _close = define_op(
        f"StackClose{_suffix}", f"handle: {_handle} ->", stateful=True
    ).not_differentiable()
    _pop.shape(unknown)
    _close.shape(no_outputs)

    @_stack.shape
    def _stack_shape(sig: ShapeSig) -> Shape:
        if not sig.op.endswith("V2"):
            return (2,)
        shapes.with_rank(sig.shapes[0], 0)
        return ()

    @_push.shape
    def _push_shape(sig: ShapeSig) -> Shape:
        return sig.shapes[1]
