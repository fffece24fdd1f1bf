"""When what lies in memory while a program runs: its planned buffers, and what they are not for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from opdock.compiler.emit.memory import MemoryPlan, aliases, group_ends, last_uses
from opdock.compiler.emit.schedule import Schedule
from opdock.compiler.ir.block import HOST, Node
from opdock.dtypes import DType
from opdock.shapes import Shape
from opdock.view.model import Life

_MAKES: Final = frozenset({"kernel", "builtin", "copy", "control", "segment"})


def lives_of(schedule: Schedule, plan: MemoryPlan) -> list[Life]:
    """The memory of a program, as far as static shapes say its size.

    Constants and variables come first, which are there all along, then results by the step that
    makes them. A result that lies where another does, such as a reshaped one, is not listed.
    """
    end = max(len(schedule.steps) - 1, 0)
    found = []
    for node in schedule.presets.values():
        size = _held(node)
        if size:
            found.append(Life(node.name, 0, _place(node), size, 0, end, "held"))
    root = aliases(schedule)
    ends = group_ends(last_uses(schedule), root)
    holder: dict[int, int] = {}  # planned buffer -> the place in `found` of what lies there
    seen = {root[slot] for slot in (*schedule.presets, *schedule.params)}
    for i, step in enumerate(schedule.steps):
        buffers = step.outs or (step.out,) * len(step.outputs)
        for output, slot in enumerate(step.outputs):
            if step.kind not in _MAKES or root[slot] in seen:
                continue
            seen.add(root[slot])
            until = min(ends[root[slot]], end)
            name, place, buffer = step.node.name, _place(step.node), buffers[output]
            if buffer is not None:
                planned = plan.buffers[buffer]
                size, offset = planned.form.nbytes, planned.offset
                before = holder.get(buffer)
                if before is not None and found[before].end >= i:
                    # This step writes over what it reads: the place holds one of them at a time.
                    found[before] = replace(found[before], end=i - 1)
                holder[buffer] = len(found)
                found.append(Life(name, output, place, size, i, until, "planned", offset))
            elif made := _size(step.node.out_dtypes[output], step.node.out_shapes[output]):
                found.append(Life(name, output, place, made, i, until, "made"))
    return found


def _place(node: Node) -> str:
    return node.target.name if node.target is not None else HOST


def _held(node: Node) -> int:
    """The bytes of a constant or variable; 0 where nobody knows."""
    value = node.const()
    if value is not None:
        return int(value.nbytes)
    known = node.attrs.get("shape")
    shape = known if isinstance(known, tuple) else node.out_shapes[0]
    dtype = node.attrs.get("dtype", node.out_dtypes[0])
    return _size(dtype, shape) if isinstance(dtype, DType) else 0


def _size(dtype: DType, shape: Shape) -> int:
    if shape is None or None in shape or not dtype.base_dtype.is_numpy_compatible:
        return 0
    return math.prod(n for n in shape if n is not None) * dtype.base_dtype.size
