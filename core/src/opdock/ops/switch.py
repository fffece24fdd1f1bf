"""TF 1's first control flow: nodes that decide what of the graph after them runs.

`tf.cond` and `tf.while_loop` make functional nodes here. These are for graphs built by hand, as
`tf.raw_ops` allows. No program has them: what a step needs of them is read into functions first
(`graph/control`), with TF's meaning wherever a Merge, an Exit or a fetch says what is wanted.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation
from opdock.ops.registry import Control, ShapeSig, Traits, define_op, get
from opdock.ops.support.common_shapes import unchanged
from opdock.shapes import Shape

# ---------------------------------------------------------------- branches
switch_op = define_op("Switch", "data: T, pred: bool -> output_false: T, output_true: T", "T: type")
ref_switch_op = define_op(
    "RefSwitch", "data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)",
    "T: type", allows_uninitialized_input=True,
)  # fmt: skip
merge_op = define_op(
    "Merge", "inputs: N * T -> output: T, value_index: int32", "T: type, N: int >= 1"
)
ref_merge_op = define_op(
    "RefMerge", "inputs: N * Ref(T) -> output: Ref(T), value_index: int32", "T: type, N: int >= 1"
)
ref_select_op = define_op(
    "RefSelect", "index: int32, inputs: N * Ref(T) -> output: Ref(T)", "T: type, N: int >= 1"
)
ref_select_op.declare(Traits(builtin=True, reads=("inputs",)))
dead_value_op = define_op("_DeadValue", "input: S -> output: T", "S: type, T: type, index: int")
dead_value_op.declare(Traits(builtin=True, merge=False))


@switch_op.shape
@ref_switch_op.shape
def _switch_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[1], 0)
    return [sig.shapes[0]] * 2


@merge_op.shape
@ref_merge_op.shape
def _merge_shape(sig: ShapeSig) -> list[Shape]:
    return [_common(sig.shapes), ()]


def _common(given: list[Shape]) -> Shape:
    first = given[0]
    if first is None or any(s is None or len(s) != len(first) for s in given):
        return None
    return tuple(sizes[0] if len({*sizes}) == 1 else None for sizes in zip(*given, strict=True))


@ref_select_op.shape
def _ref_select_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    first = sig.shapes[1]
    known = first is not None and None not in first
    return first if known and all(s == first for s in sig.shapes[1:]) else None


@dead_value_op.shape
def _dead_shape(sig: ShapeSig) -> Shape:
    return None


@switch_op.gradient
def _switch_grad(op: Operation, *grads: Any) -> list[Any]:
    pred = op.inputs[1]
    alive = []
    for side, grad in enumerate(grads):
        if isinstance(grad, IndexedSlices):
            grad = convert_to_tensor(grad)
        grad = get("ZerosLike")(op.inputs[0]) if grad is None else grad
        alive.append(switch_op(grad, pred)[side])
    return [merge_op(alive).output, None]


@merge_op.gradient
def _merge_grad(op: Operation, grad: Any, _: Any) -> list[Any]:
    """For each input the gradient, or zeros where it was not the one alive.

    TF's are dead in place of zeros; here they can be used on either side of a Switch.
    """
    grad, zeros = convert_to_tensor(grad), get("ZerosLike")(grad)
    taken = op.outputs[1]
    found = []
    for i in range(len(op.inputs)):
        is_this = get("Fill")(get("Shape")(grad), get("Equal")(taken, i))
        found.append(get("Select")(is_this, grad, zeros))
    return found


for _op in (ref_switch_op, ref_merge_op, ref_select_op, dead_value_op):
    _op.not_differentiable()

# ---------------------------------------------------------------- loops
_FRAME = "T: type, frame_name: string, is_constant: bool = false, parallel_iterations: int = 10"
enter_op = define_op("Enter", "data: T -> output: T", _FRAME)
ref_enter_op = define_op("RefEnter", "data: Ref(T) -> output: Ref(T)", _FRAME)
exit_op = define_op("Exit", "data: T -> output: T", "T: type")
ref_exit_op = define_op("RefExit", "data: Ref(T) -> output: Ref(T)", "T: type")
next_op = define_op("NextIteration", "data: T -> output: T", "T: type")
ref_next_op = define_op("RefNextIteration", "data: Ref(T) -> output: Ref(T)", "T: type")
loop_cond_op = define_op("LoopCond", "input: bool -> output: bool", "")


@enter_op.shape
def _enter_shape(sig: ShapeSig) -> Shape:
    # Of a loop variable the shape may change from turn to turn.
    return sig.shapes[0] if sig.attrs["is_constant"] else None


for _op in (ref_enter_op, exit_op, ref_exit_op, next_op, ref_next_op):
    _op.shape(unchanged)


@loop_cond_op.shape
def _loop_cond_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 0)
    return ()


def _no_gradient(op: Operation, *grads: Any) -> Any:
    raise LookupError(
        f"No gradient defined for operation '{op.name}' (op type: {op.type}): gradients go through "
        f"the loops of tf.while_loop. It was created at {op.user_line}"
    )


for _op in (enter_op, exit_op, next_op, ref_enter_op, ref_exit_op, ref_next_op):
    _op.gradient(_no_gradient)
loop_cond_op.not_differentiable()

for _op in (
    switch_op, ref_switch_op, merge_op, ref_merge_op, enter_op, ref_enter_op, exit_op, ref_exit_op,
    loop_cond_op,
):  # fmt: skip
    _op.declare(Traits(builtin=True, control=Control.SWITCH))
for _op in (next_op, ref_next_op):
    _op.declare(Traits(builtin=True, control=Control.TURN))
