"""Locks that steps hold: a mutex, its taking, and its release."""

from __future__ import annotations

from opdock.ops.registry import Cost, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar

__all__: list[str] = []

mutex_op = define_op(
    "MutexV2", "-> resource: resource", 'container: string = "", shared_name: string = ""',
    stateful=True,
)  # fmt: skip
mutex_lock_op = define_op("MutexLock", "mutex: resource -> mutex_lock: variant", stateful=True)
consume_mutex_lock_op = define_op("ConsumeMutexLock", "mutex_lock: variant ->", stateful=True)
for _op in (mutex_op, mutex_lock_op):
    _op.shape(scalar)
consume_mutex_lock_op.shape(no_outputs)
# A lock and what follows run after all that does not need it: another step may hold it.
mutex_lock_op.declare(Traits(effect=True, cost=Cost.WAIT, blocks=True))
consume_mutex_lock_op.declare(Traits(effect=True))
for _op in (mutex_op, mutex_lock_op, consume_mutex_lock_op):
    _op.not_differentiable()
