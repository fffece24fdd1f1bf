"""Barriers: tuples that come component by component, and leave when they are complete.

A barrier is a resource of the host. The class that programs use is in `composed/`.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import unknown
from opdock.ops.support.handles import check_handle, handle_shape
from opdock.shapes import Shape

__all__: list[str] = []

barrier_op = define_op(
    "Barrier", "-> handle: Ref(string)",
    "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, "
    'container: string = "", shared_name: string = ""',
    stateful=True,
)  # fmt: skip
insert_many_op = define_op(
    "BarrierInsertMany", "handle: Ref(string), keys: string, values: T ->",
    "T: type, component_index: int",
)  # fmt: skip
take_many_op = define_op(
    "BarrierTakeMany",
    "handle: Ref(string), num_elements: int32 -> "
    "indices: int64, keys: string, values: component_types",
    "component_types: list(type) >= 1, allow_small_batch: bool = false, "
    "wait_for_incomplete: bool = false, timeout_ms: int = -1",
)
close_op = define_op(
    "BarrierClose", "handle: Ref(string) ->", "cancel_pending_enqueues: bool = false"
)
ready_size_op = define_op("BarrierReadySize", "handle: Ref(string) -> size: int32")
incomplete_size_op = define_op("BarrierIncompleteSize", "handle: Ref(string) -> size: int32")

# A kernel finds the barrier, or makes it: that is no effect, and nothing holds a variable.
barrier_op.declare(Traits(effect=False, merge=False, fold=False))
take_many_op.declare(Traits(effect=True, blocks=True, cost=Cost.WAIT))
for _op in (insert_many_op, close_op):
    _op.declare(Traits(effect=True))
for _op in (ready_size_op, incomplete_size_op):
    _op.declare(Traits(reads=("handle",), fold=False, merge=False))
for _op in (barrier_op, insert_many_op, take_many_op, close_op, ready_size_op, incomplete_size_op):
    _op.not_differentiable()


barrier_op.shape(handle_shape)


@insert_many_op.shape
def _insert_many_shape(sig: ShapeSig) -> list[Shape]:
    check_handle(sig)
    (count,) = shapes.with_rank(sig.shapes[1], 1)
    values = shapes.with_rank_at_least(sig.shapes[2], 1)
    if values is not None:
        shapes.merge_dim(count, values[0])
    return []


take_many_op.shape(unknown)


@close_op.shape
@ready_size_op.shape
@incomplete_size_op.shape
def _scalars_shape(sig: ShapeSig) -> list[Shape]:
    check_handle(sig)
    return [()] * sig.n_outputs
