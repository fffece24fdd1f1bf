"""The straight line: a program's steps as one generated Python function.

It holds nothing but calls: no graph, no look-up by name. When a call raises, the function's frame
still has every value computed so far, so that the steps after it can go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from opdock import shapes
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import FEED, Value
from opdock.compiler.ir.state import is_state
from opdock.runtime.program.bind import Bound
from opdock.runtime.recover.located import LINE

__all__ = ["Line"]

_FREE_ABOVE: Final = 1 << 16


class Line:
    """The function of a bound schedule.

    Args:
        bound: the schedule with what its steps need.
        calls: what stands in for its calls, if anything does.

    Attributes:
        function: takes the feeds and returns a tuple of the fetches. An array, or None, may follow
            for each fetch: where it is written if its slot is placeable (`MemoryPlan`).
        names: for each slot what stands for it in the source: "v3" is a variable of the function,
            "b2" a planned buffer.
    """

    def __init__(self, bound: Bound, calls: Sequence[Callable[..., Any]] | None = None) -> None:
        self._bound = bound
        # A planned result is its buffer: no variable is needed for it.
        self.names = [f"v{s}" for s in range(bound.schedule.n_slots)]
        self._shared = {f"v{s}" for s in bound.presets}
        # Values of variables: an update may write where nobody holds what was read.
        self._read: set[int] = set()
        self._step_at: dict[int, int] = {}  # line number to index of the step
        # What is fetched twice goes where the caller wants it first.
        places = {s: f"p{i}" for i, s in reversed(list(enumerate(bound.schedule.fetches)))}
        self._places = {s: places[s] for s in bound.compiled.plan.placeable}
        # The source holds numbers of slots only, nothing from the graph.
        code = compile(self._source(), LINE, "exec")
        scope: dict[str, Any] = {f"v{s}": v for s, v in bound.presets.items()}
        scope.update({f"b{i}": b for i, b in enumerate(bound.buffers)})
        scope.update({f"k{i}": c for i, c in enumerate(calls or bound.calls)})
        exec(code, scope)  # noqa: S102 - see above
        # A function that its own globals held would live, with all of them, until a collection.
        self.function = scope.pop("step")

    def halted(self, error: BaseException) -> tuple[int, dict[int, Any]] | None:
        """The step that raised `error`, and the values by slot at that moment.

        None if the error did not come out of a step.
        """
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code is not self.function.__code__:
            tb = tb.tb_next
        if tb is None or tb.tb_lineno not in self._step_at:
            return None
        return self._step_at[tb.tb_lineno], self._values_in(tb.tb_frame)

    def _values_in(self, frame: FrameType) -> dict[int, Any]:
        held, values = frame.f_locals, dict(self._bound.presets)
        for slot, name in enumerate(self.names):
            number = int(name[1:])
            if name[0] == "b":
                values[slot] = self._bound.buffers[number]
            elif name in held:
                values[slot] = held[name]
            elif number in self._bound.presets:
                values[slot] = self._bound.presets[number]
        return values

    # ------------------------------------------------------------ source
    def _source(self) -> str:
        schedule, names = self._bound.schedule, self.names
        params = [names[s] for s in schedule.params]
        places = [f"p{i}=None" for i in range(len(schedule.fetches))]
        lines = [f"def step({', '.join([*params, *places])}):"]
        for i, step in enumerate(schedule.steps):
            if step.kind == "read":
                self._read.update(step.outputs)
            if step.kind == "alias":
                self._alias(step.inputs[0], step.outputs[0])
                continue
            lines.append(f"    {self._statement(i, step)}")
            self._step_at[len(lines)] = i
        fetches = "".join(f"{names[s]}, " for s in schedule.fetches)
        lines.append(f"    return ({fetches})")
        return "\n".join(lines)

    def _alias(self, source: int, slot: int) -> None:
        self.names[slot] = self.names[source]
        # Two slots under one name: neither's last use is the value's.
        self._shared.add(self.names[source])

    def _statement(self, i: int, step: Step) -> str:
        names = self.names
        args = [names[s] for s in self._bound.needed(step)]
        if step.out is not None:
            names[step.outputs[0]] = f"b{step.out}"
            return f"k{i}({', '.join([*args, f'b{step.out}'])}){self._freeing(step)}"
        if step.kind == "kernel" and step.node.kernel is not None and step.node.kernel.out:
            args.append(self._out(step))
        for slot, buffer in zip(step.outputs, step.outs, strict=False):
            if buffer is not None:
                names[slot] = f"b{buffer}"
        call = f"k{i}({', '.join(args)})"
        if not step.outputs:
            return f"{call}{self._freeing(step)}"
        left = ", ".join("_" if names[s][0] == "b" else names[s] for s in step.outputs)
        return f"{left} = {call}{self._freeing(step)}"

    def _out(self, step: Step) -> str:
        """Where the results go of a step that has not one planned buffer for its one result."""
        outs = [self._places.get(s, "None") for s in step.outputs]
        for i, buffer in enumerate(step.outs):
            outs[i] = outs[i] if buffer is None else f"b{buffer}"
        if all(o == "None" for o in outs):
            return "None"
        return outs[0] if len(outs) == 1 else f"({', '.join(outs)})"

    def _freeing(self, step: Step) -> str:
        """What lets go of large values that the step is the last to use."""
        if not step.frees or step.kind == "read":
            return ""
        frees = set(step.frees)
        large = [
            s for s, value in zip(step.inputs, step.node.inputs, strict=True)
            if s in frees and _is_large(value, s in self._read)
        ]  # fmt: skip
        dead = [n for s in large if (n := self.names[s])[0] == "v" and n not in self._shared]
        return f"; {' = '.join(dict.fromkeys(dead))} = None" if dead else ""


def _is_large(value: Value, read: bool) -> bool:
    node, index = value
    elements = shapes.num_elements(node.out_shapes[index])
    if elements is not None and elements * node.out_dtypes[index].size <= _FREE_ABOVE:
        return False
    # A slot that aliases another may share its memory; only what kernels made or was read goes.
    return read or not (node.traits.forwards or node.op == FEED or is_state(value))
