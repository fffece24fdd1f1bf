"""Staging areas: tensors that one step leaves, where they are, for a later one.

An area is known by its container and name, as are its capacity in elements and in bytes; each op
has all of them, and whichever runs first makes the area. Whoever gets waits until there is
something, whoever puts until there is room.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar, unknown
from opdock.shapes import Shape

__all__: list[str] = []

_AREA = "capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, dtypes: list(type)"
_PARTS = f"{_AREA} >= 1"
_SHARED = 'container: string = "", shared_name: string = ""'
_WAITS = Traits(cost=Cost.WAIT, blocks=True)


def _key_and_unknown(sig: ShapeSig) -> list[Shape]:
    return [(), *([None] * (sig.n_outputs - 1))]


def _check_index(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return unknown(sig)


for _name, _signature, _attrs, _traits, _shape in (
    ("Stage", "values: dtypes ->", _PARTS, _WAITS, no_outputs),
    ("Unstage", "-> values: dtypes", _PARTS, _WAITS, unknown),
    ("StagePeek", "index: int32 -> values: dtypes", _PARTS, _WAITS, _check_index),
    ("StageSize", "-> size: int32", _AREA, Traits(), scalar),
    ("StageClear", "->", _AREA, Traits(), no_outputs),
):
    _op = define_op(_name, _signature, f"{_attrs}, {_SHARED}", stateful=True)
    _op.declare(_traits).not_differentiable()
    _op.shape(_shape)

_PUT = "key: int64, indices: int32, values: fake_dtypes ->"
_PUT_ATTRS = f"{_AREA}, fake_dtypes: list(type) >= 1"
_TAKE = "key: int64, indices: int32 -> values: dtypes"
_TAKE_ANY = "indices: int32 -> key: int64, values: dtypes"
for _name, _signature, _attrs, _traits, _shape in (
    ("MapStage", _PUT, _PUT_ATTRS, _WAITS, no_outputs),
    ("MapPeek", _TAKE, _PARTS, _WAITS, unknown),
    ("MapUnstage", _TAKE, _PARTS, _WAITS, unknown),
    ("MapUnstageNoKey", _TAKE_ANY, _PARTS, _WAITS, _key_and_unknown),
    ("MapSize", "-> size: int32", _AREA, Traits(), scalar),
    ("MapIncompleteSize", "-> size: int32", _AREA, Traits(), scalar),
    ("MapClear", "->", _AREA, Traits(), no_outputs),
):
    for _order in ("", "Ordered"):
        _op = define_op(f"{_order}{_name}", _signature, f"{_attrs}, {_SHARED}", stateful=True)
        _op.declare(_traits).not_differentiable()
        _op.shape(_shape)
