"""RecordInput: records of many TFRecord files in random order, for ever."""

from __future__ import annotations

from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__: list[str] = []

record_input_op = define_op(
    "RecordInput", "-> records: string",
    "file_pattern: string, file_random_seed: int = 301, file_shuffle_shift_ratio: float = 0, "
    "file_buffer_size: int = 10000, file_parallelism: int = 16, batch_size: int = 32, "
    'compression_type: string = ""',
    stateful=True,
).not_differentiable()  # fmt: skip
record_input_op.declare(Traits(cost=Cost.WAIT))


@record_input_op.shape
def _record_input_shape(sig: ShapeSig) -> Shape:
    return None
