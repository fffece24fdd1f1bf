"""Whole steps replayed from a recording, on devices that can record (`RecordingDevice`).

A program is recorded once it has run a few times. Uploads of feeds stay in front of the recording
and downloads of results behind it; in between nothing may need the host. Variables live in buffers
of the recording while it is the only one that writes them, and leave it as copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from opdock import errors
from opdock.compiler.emit.schedule import Schedule, Step
from opdock.compiler.ir.block import HOST, Node
from opdock.compiler.ir.state import cell_inputs, written
from opdock.devices.protocols import records
from opdock.runtime.program.bind import Bound
from opdock.runtime.program.executor import Executor
from opdock.runtime.recover.located import as_op_error
from opdock.runtime.resources import Cell, Loan

if TYPE_CHECKING:
    from opdock.compiler.place.target import Target

__all__ = ["Replayer", "Split", "split"]

_WARM: Final = 2
"""Steps that run plainly first: they compile kernels and fill the memory pool."""


@dataclass(slots=True)
class Split:
    """A schedule in three parts, by index into its steps.

    Attributes:
        before: uploads of feeds.
        inside: what is recorded.
        after: downloads of results.
        target: the device of the recording.
        stored: variables that are given a value as it is, which may be that of another variable.
    """

    before: list[int] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    target: Target | None = None
    stored: set[int] = field(default_factory=set)


def split(schedule: Schedule) -> Split | str:
    """What of a program can be recorded, or the reason why it cannot."""
    return _Splitter(schedule).run()


class _RefusedError(Exception):
    """Why a program cannot be recorded."""


class _Splitter:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.found = Split()
        self.varying: set[int] = set(schedule.params)
        self.late: set[int] = set()

    def run(self) -> Split | str:
        try:
            for i, step in enumerate(self.schedule.steps):
                self.add(i, step)
            self.check_variables()
        except _RefusedError as e:
            return str(e)
        return self.found if self.found.target is not None else "nothing runs on the device"

    def add(self, i: int, step: Step) -> None:
        if step.kind == "control":
            raise _RefusedError(f"the host decides in {_called(step.node)} what runs")
        if step.kind == "copy":
            self.copy(i, step)
            return
        if self.late.intersection(step.inputs):
            if step.kind != "alias":
                raise _RefusedError(f"{_called(step.node)} needs a value that was read back")
            self.late.update(step.outputs)
            self.found.after.append(i)
            return
        if step.kind == "alias" and self.varying.intersection(step.inputs):
            self.varying.update(step.outputs)
            self.found.before.append(i)
            return
        if self.varying.intersection(step.inputs):
            raise _RefusedError(f"{_called(step.node)} takes a value from the host each step")
        if step.kind == "builtin":
            self.builtin(step)
        elif step.kind == "kernel":
            self.kernel(step)
        self.found.inside.append(i)

    def copy(self, i: int, step: Step) -> None:
        source, to = step.node.attrs["from"], step.node.attrs["to"]
        if self.late.intersection(step.inputs):
            raise _RefusedError(f"{_called(step.node)} sends a value on that was read back")
        if to == HOST and not self.varying.intersection(step.inputs):
            self.late.update(step.outputs)
            self.found.after.append(i)
        elif source != HOST:
            raise _RefusedError(f"{_called(step.node)} copies between devices")
        elif self.varying.issuperset(step.inputs):
            self.found.before.append(i)
        else:
            self.found.inside.append(i)

    def builtin(self, step: Step) -> None:
        traits, cells = step.node.traits, cell_inputs(step.node)
        if traits.placeholder or (cells and traits.keeps != ("value",)):
            raise _RefusedError(f"{_called(step.node)} depends on what happened before")
        if written(step.node, cells):
            self.found.stored.add(step.inputs[0])

    def kernel(self, step: Step) -> None:
        node = step.node
        if node.spec is not None and node.spec.stateful and not cell_inputs(node):
            raise _RefusedError(f"{_called(node)} keeps its state on the host")
        if node.target is None or node.target.is_host:
            if cell_inputs(node):
                raise _RefusedError(f"{_called(node)} runs on the host")
            return
        self.claim(node)
        for shape in node.out_shapes:
            if shape is None or None in shape:
                raise _RefusedError(f"the shape of {_called(node)} is only known when it runs")

    def claim(self, node: Node) -> None:
        target, known = node.target, self.found.target
        assert target is not None
        if known is not None and known.name != target.name:
            raise _RefusedError(f"it runs on several devices: {known.name} and {target.name}")
        if not records(target.device):
            raise _RefusedError(f"{target.name} does not record")
        self.found.target = target

    def check_variables(self) -> None:
        here = self.found.target
        for node in self.schedule.presets.values():
            elsewhere = node.target is None or here is None or node.target.name != here.name
            if not node.is_const and elsewhere:
                raise _RefusedError(f"variable {node.name} lives on another device")


def _called(node: Node) -> str:
    return f"{node.name} ({node.op})"


@dataclass(slots=True)
class _Tape:
    """A recording with the buffers through which values come and go.

    Attributes:
        recording: the device's.
        inputs: slot of an uploaded feed -> the buffer that the recording reads.
        homes: a variable -> the buffer that is its value inside.
        writes: the variables that the recording changes.
        seen: what each variable held when it was last copied in.
        fixed: results that are the same every step: references to variables, shapes.
    """

    recording: Any
    inputs: dict[int, Any]
    homes: dict[Cell, Any]
    writes: list[Cell]
    seen: dict[Cell, Any]
    fixed: dict[int, Any]


class Replayer:
    """Decides, records and replays, for one program.

    Attributes:
        why: why the program is not recorded; empty while it may be.
        replays: how many steps were replayed.
    """

    def __init__(self, bound: Bound) -> None:
        found = split(bound.schedule)
        self._bound = bound
        self._executor = Executor(bound, self._failed)
        self._split: Split = found if isinstance(found, Split) else Split()
        self._tape: _Tape | None = None
        self._warm = 0
        self.why = found if isinstance(found, str) else ""
        self.replays = 0

    @classmethod
    def of(cls, bound: Bound) -> Replayer | None:
        """One for a program that has a step on a device that records, else None."""
        for step in bound.schedule.steps:
            target = step.node.target
            if target is not None and records(target.device):
                return cls(bound)
        return None

    @property
    def state(self) -> str:
        """One line for `explain`."""
        if self.why:
            return f"not recorded: {self.why}"
        if self._tape is None:
            return f"to be recorded after {_WARM} steps"
        return f"recorded; {self.replays} steps replayed"

    def run(self, feeds: Sequence[Any]) -> Sequence[Any] | None:
        """The fetched buffers of one step, or None where the program must run plainly.

        The caller holds the program's planned buffers.
        """
        if self.why:
            return None
        if self._tape is None:
            if self._warm < _WARM:
                self._warm += 1
                return None
            self._record(feeds)
        return None if self._tape is None else self._replay(self._tape, feeds)

    # ------------------------------------------------------------ recording
    @property
    def _device(self) -> Any:
        assert self._split.target is not None
        return self._split.target.device

    def _values(self, feeds: Sequence[Any]) -> dict[int, Any]:
        """Slots before the recorded part: presets, feeds, and the uploads."""
        values = self._bound.initial(feeds)
        self._executor.walk(self._split.before, values)
        return values

    def _failed(self, error: Exception, i: int, inputs: list[Any]) -> NoReturn:
        """Nothing stands in for a call: what is recorded is the program as it was compiled."""
        raise as_op_error(error, self._bound.schedule.steps[i].node) from error

    def _cells(self) -> list[Cell]:
        presets = self._bound.presets.values()
        return list(dict.fromkeys(v for v in presets if isinstance(v, Cell)))

    def _record(self, feeds: Sequence[Any]) -> None:
        cells = self._cells()
        if not all(c.initialized for c in cells):
            return
        device, values = self._device, self._values(feeds)
        steps = self._bound.schedule.steps
        inputs = {s: values[s] for i in self._split.before for s in steps[i].outputs
                  if steps[i].kind == "copy"}  # fmt: skip
        before = {c: c.read() for c in cells}
        homes = {c: device.duplicate(v) for c, v in before.items()}
        writes: list[Cell] = []

        wanted = self._wanted()

        def work() -> dict[int, Any]:
            self._executor.walk(self._split.inside, values)
            results = {s: device.duplicate(values[s]) for s in wanted - self._hosted(values)}
            fresh = {c: c.read() for c in cells if c.value is not homes[c]}
            stored = {values[s] for s in self._split.stored}
            for cell, value in fresh.items():
                if not _alike(value, homes[cell]):
                    raise errors.FailedPreconditionError(
                        None, None, f"variable {cell.name} changes its shape"
                    )
                # What was stored as it is may be another variable's buffer, written just below.
                fresh[cell] = device.duplicate(value) if cell in stored else value
            for cell, value in fresh.items():
                device.assign(homes[cell], value)
            writes.extend(fresh)
            return results

        try:
            for cell, home in homes.items():
                cell.value = home
            recording = device.record(work)
        except Exception as e:  # the plain run that follows raises what is the user's to know
            recording = f"recording fails: {e}"
        finally:
            for cell, value in before.items():
                cell.value = value
        if isinstance(recording, str):
            self.why = " ".join(recording.split())
            return
        fixed = {s: values[s] for s in wanted & self._hosted(values)}
        self._tape = _Tape(recording, inputs, homes, writes, dict(before), fixed)

    def _wanted(self) -> set[int]:
        """The slots that the recorded part makes, and that are fetched or downloaded."""
        schedule = self._bound.schedule
        made = {s for i in self._split.inside for s in schedule.steps[i].outputs}
        taken = {s for i in self._split.after for s in schedule.steps[i].inputs}
        return made & (taken | set(schedule.fetches))

    def _hosted(self, values: Mapping[int, Any]) -> set[int]:
        """The slots whose values are no device buffers."""
        steps = [self._bound.schedule.steps[i] for i in self._split.inside]
        found = {s for step in steps if _on_host(step) for s in step.outputs}
        return found | {s for s, v in values.items() if v is None or isinstance(v, Cell)}

    # ------------------------------------------------------------ replaying
    def _replay(self, tape: _Tape, feeds: Sequence[Any]) -> Sequence[Any] | None:
        device, values = self._device, self._values(feeds)
        for slot, buffer in tape.inputs.items():
            if not _alike(values[slot], buffer):
                return None
        if not self._bring_in(tape):
            return None
        for slot, buffer in tape.inputs.items():
            if values[slot] is not buffer:
                device.assign(buffer, values[slot])
        tape.recording.replay()
        self.replays += 1
        for cell in tape.writes:
            cell.value = Loan(tape.homes[cell], device.duplicate)
        for slot, buffer in tape.recording.result.items():
            values[slot] = device.duplicate(buffer)
        values.update(tape.fixed)
        self._executor.walk(self._split.after, values)
        return self._bound.fetched(values)

    def _bring_in(self, tape: _Tape) -> bool:
        """Copies variables that others have written; False where one no longer fits."""
        for cell, home in tape.homes.items():
            held = cell.value
            if isinstance(held, Loan) and held.buffer is home:
                continue
            if held is None:
                return False
            value = cell.read()
            if value is tape.seen[cell] and cell not in tape.writes:
                continue
            if not _alike(value, home):
                return False
            self._device.assign(home, value)
            tape.seen[cell] = value
        return True


def _on_host(step: Step) -> bool:
    if step.kind == "builtin":
        return step.node.traits.on_host
    target = step.node.target
    return step.kind == "kernel" and (target is None or target.is_host)


def _alike(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype
