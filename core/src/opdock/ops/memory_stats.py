"""How much memory a device has, and how much of it is taken."""

from __future__ import annotations

from opdock.ops.registry import Traits, define_op
from opdock.ops.support.common_shapes import scalar

__all__: list[str] = []

for _name in ("BytesInUse", "BytesLimit", "MaxBytesInUse"):
    _op = define_op(_name, "-> out: int64", stateful=True)
    _op.shape(scalar)
    # What it gives is another number each time.
    _op.declare(Traits(builtin=True, on_host=True, fold=False, merge=False)).not_differentiable()
