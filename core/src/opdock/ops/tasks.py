"""What brings values from one task of a cluster to another: sends and receives.

Nobody builds these: where a step spans tasks, `compiler/tasks` puts them between its parts. Both
get the number of the step, which is fed to every part, so that what steps that run at the same
time send each other stays apart.
"""

from __future__ import annotations

from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape

__all__: list[str] = []

# The host sends and receives: `on_host`, and whoever makes a node asks for its CPU. What arrives
# may be nothing but that something has run; a receive has a result all the same, as it takes.
send_to_task_op = define_op(
    "_SendToTask", "step: int64, values: T ->", "T: list(type) >= 0, task: string, key: string",
    stateful=True,
)  # fmt: skip
receive_from_task_op = define_op(
    "_ReceiveFromTask", "step: int64 -> arrived: int64, values: T",
    "T: list(type) >= 0, shapes: list(shape), task: string, key: string",
    stateful=True,
)  # fmt: skip
send_to_task_op.declare(Traits(builtin=True, on_host=True, effect=True))
receive_from_task_op.declare(
    Traits(builtin=True, on_host=True, effect=True, blocks=True, cost=Cost.WAIT)
)
send_to_task_op.shape(no_outputs)
send_to_task_op.not_differentiable()


@receive_from_task_op.shape
def _as_sent(sig: ShapeSig) -> list[Shape]:
    return [(), *sig.attrs["shapes"]]


receive_from_task_op.not_differentiable()
