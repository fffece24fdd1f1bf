"""Conditional accumulators: gradients of many steps, taken together when there are enough.

An accumulator has a step of its own. What was computed for an earlier one is dropped, and each
taking counts it up. Whoever takes waits until as many gradients as he asks for are there.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar, unknown
from opdock.shapes import Shape

__all__: list[str] = []

_KINDS = (
    "dtype: numbertype, shape: shape, container: string = '', shared_name: string = '', "
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"
)
_DTYPE = "dtype: numbertype"

accumulator_op = define_op(
    "ConditionalAccumulator", "-> handle: Ref(string)", _KINDS, stateful=True
)
resource_accumulator_op = define_op(
    "ResourceConditionalAccumulator", "-> handle: resource", _KINDS, stateful=True
)
sparse_accumulator_op = define_op(
    "SparseConditionalAccumulator", "-> handle: Ref(string)", _KINDS, stateful=True
)
num_accumulated_op = define_op(
    "AccumulatorNumAccumulated", "handle: Ref(string) -> num_accumulated: int32"
)
resource_num_accumulated_op = define_op(
    "ResourceAccumulatorNumAccumulated", "handle: resource -> num_accumulated: int32"
)
set_global_step_op = define_op(
    "AccumulatorSetGlobalStep", "handle: Ref(string), new_global_step: int64 ->"
)
resource_set_global_step_op = define_op(
    "ResourceAccumulatorSetGlobalStep", "handle: resource, new_global_step: int64 ->"
)
apply_gradient_op = define_op(
    "AccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient: dtype ->", _DTYPE,
)  # fmt: skip
resource_apply_gradient_op = define_op(
    "ResourceAccumulatorApplyGradient",
    "handle: resource, local_step: int64, gradient: dtype ->", _DTYPE,
)  # fmt: skip
sparse_apply_gradient_op = define_op(
    "SparseAccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
    "gradient_shape: int64 ->", _DTYPE + ", has_known_shape: bool",
)  # fmt: skip
take_gradient_op = define_op(
    "AccumulatorTakeGradient", "handle: Ref(string), num_required: int32 -> average: dtype", _DTYPE
)
resource_take_gradient_op = define_op(
    "ResourceAccumulatorTakeGradient",
    "handle: resource, num_required: int32 -> average: dtype", _DTYPE,
)  # fmt: skip
sparse_take_gradient_op = define_op(
    "SparseAccumulatorTakeGradient",
    "handle: Ref(string), num_required: int32 -> indices: int64, values: dtype, shape: int64",
    _DTYPE,
)  # fmt: skip

_CREATORS = (accumulator_op, resource_accumulator_op, sparse_accumulator_op)
_COUNTS = (num_accumulated_op, resource_num_accumulated_op)
_SETTERS = (set_global_step_op, resource_set_global_step_op)
_GIVERS = (apply_gradient_op, resource_apply_gradient_op, sparse_apply_gradient_op)
_TAKERS = (take_gradient_op, resource_take_gradient_op, sparse_take_gradient_op)
for _op in (*_CREATORS, *_COUNTS):
    _op.shape(scalar)
for _op in _COUNTS:
    _op.declare(Traits(reads=("handle",), fold=False, merge=False))
for _op in (*_SETTERS, *_GIVERS):
    _op.shape(no_outputs)
    _op.declare(Traits(effect=True, fold=False, merge=False))
for _op in _TAKERS:
    _op.shape(unknown)
    _op.declare(Traits(effect=True, fold=False, merge=False, cost=Cost.WAIT, blocks=True))
for _op in (*_CREATORS, *_COUNTS, *_SETTERS, *_GIVERS, *_TAKERS):
    _op.not_differentiable()


@sparse_take_gradient_op.shape
def _slices_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[1], 0)
    return [(None,), None, (None,)]
