"""Segments that are replayed from a recording, on devices that record what they queue.

A segment is recorded once it has run a few times. The recording reads its inputs from buffers of
its own and leaves its results in others, so they are copied in and out. Variables that it updates
stay in its buffers while nobody else writes them, and leave as copies.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from opdock import errors
from opdock.devices.segment import Executable, Loan, Refusal, Segment, SegmentNode
from opdock.failures import failures
from opdock.late import record

__all__ = ["record_segment"]

_WARM: Final = 2
"""Runs that go op by op first: they compile kernels and fill the memory pool."""


def record_segment(segment: Segment) -> Executable | Refusal:
    """A `SegmentCompiler` for devices with `record` and `assign`; see `RecordingDevice`."""
    refused = {node: why for node in segment.nodes if (why := _refused(node))}
    refused |= {n: "it keeps its state on the host" for n in segment.nodes if _draws(segment, n)}
    if refused:
        return Refusal(nodes=refused)
    if not segment.is_static:
        return Refusal("shapes that come in are only known when it runs")
    return _Recorded(segment)


def _refused(node: SegmentNode) -> str:
    if node.call is None:
        return "the host decides what runs"
    if not all(r.is_static for r in node.results):
        return "the shape of its result is only known when it runs"
    return ""


def _draws(segment: Segment, node: SegmentNode) -> bool:
    return any(stream.name == node.name for stream in segment.streams)


@record(slots=True)
class _Tape:
    """A recording with the buffers through which values come and go.

    Attributes:
        recording: the device's.
        inputs: the buffers that it reads.
        homes: for each variable whose value it reads the buffer that is its value inside, or None.
        seen: what each of these variables held when it was last copied in.
    """

    recording: Any
    inputs: list[Any]
    homes: list[Any]
    seen: list[Any]


class _Recorded:
    """Runs op by op, then records, then replays.

    Attributes:
        why: why it is not recorded; empty while it may be.
        replays: how many runs were replays.
    """

    def __init__(self, segment: Segment) -> None:
        self._segment, self._device = segment, segment.device
        self._tape: _Tape | None = None
        self._warm = 0
        self._busy = threading.Lock()
        self.why = ""
        self.replays = 0

    @property
    def state(self) -> str:
        """One line for `explain`."""
        if self.why:
            return f"not recorded: {self.why}"
        if self._tape is None:
            return f"to be recorded after {_WARM} runs"
        return f"recorded; {self.replays} runs replayed"

    def __call__(self, inputs: Sequence[Any], state: Sequence[Any], places: Any) -> Any:
        """See `Executable`."""
        # The recording's buffers belong to one run at a time; another beside it has its own.
        if self._busy.acquire(blocking=False):
            try:
                if not self.why and self._ready(inputs, state):
                    return self._replay(inputs, state)
            finally:
                self._busy.release()
        own = [x.settle() if isinstance(x, Loan) else x for x in state]
        return self._segment.run(inputs, own)

    def _ready(self, inputs: Sequence[Any], state: Sequence[Any]) -> bool:
        if self._tape is not None:
            return self._fits(self._tape, inputs, state)
        if self._warm < _WARM:
            self._warm += 1
            return False
        self._record(inputs, state)
        return self._tape is not None

    # ------------------------------------------------------------ recording
    def _record(self, inputs: Sequence[Any], state: Sequence[Any]) -> None:
        duplicate = self._device.duplicate
        taken = [duplicate(x) for x in inputs]
        homes = [None if x is None else duplicate(x) for x in state]
        try:
            recording = self._device.record(lambda: self._recorded(taken, homes))
        except failures(
            Exception
        ) as e:  # the run op by op that follows raises what is the user's to know
            recording = f"recording fails: {e}"
        if isinstance(recording, str):
            self.why = " ".join(recording.split())
            return
        self._tape = _Tape(recording, taken, homes, list(state))

    def _recorded(self, taken: list[Any], homes: list[Any]) -> tuple[list[Any], list[Any]]:
        """The work of a run: the results, and the new values of variables without a buffer."""
        device, segment = self._device, self._segment
        results, fresh = segment.run(taken, homes)
        out = [device.duplicate(x) for x in results]
        # What is stored as it is may be a buffer that is written just below.
        held = {id(x) for x in (*taken, *homes)}
        fresh = tuple(device.duplicate(x) if id(x) in held else x for x in fresh)
        rest = []
        for home, value, variable in zip(self._written(homes), fresh, self._changed, strict=True):
            if home is None:
                rest.append(value)
            elif not _alike(value, home):
                raise errors.FailedPreconditionError(
                    None, None, f"variable {variable.name} changes its shape"
                )
            else:
                device.assign(home, value)
        return out, rest

    @property
    def _changed(self) -> list[Any]:
        return [v for v in self._segment.variables if v.written]

    def _written(self, values: Sequence[Any]) -> list[Any]:
        """Of one value for each variable those of the variables that are written."""
        both = zip(self._segment.variables, values, strict=True)
        return [x for v, x in both if v.written]

    # ------------------------------------------------------------ replaying
    def _fits(self, tape: _Tape, inputs: Sequence[Any], state: Sequence[Any]) -> bool:
        pairs = [*zip(inputs, tape.inputs, strict=True)]
        pairs += [
            (x, home) for x, home in zip(state, tape.homes, strict=True)
            if home is not None and not isinstance(x, Loan)
        ]  # fmt: skip
        return all(_alike(x, buffer) for x, buffer in pairs)

    def _replay(self, inputs: Sequence[Any], state: Sequence[Any]) -> tuple[Any, Any]:
        tape, device = self._tape, self._device
        assert tape is not None
        for i, (value, home) in enumerate(zip(state, tape.homes, strict=True)):
            if home is None or isinstance(value, Loan):
                continue
            if value is not tape.seen[i] or self._segment.variables[i].written:
                device.assign(home, value)
                tape.seen[i] = value
        for value, buffer in zip(inputs, tape.inputs, strict=True):
            device.assign(buffer, value)
        tape.recording.replay()
        self.replays += 1
        results, rest = tape.recording.result
        unbuffered = iter([device.duplicate(x) for x in rest])
        fresh = [
            next(unbuffered) if home is None else Loan(home, device.duplicate, self)
            for home in self._written(tape.homes)
        ]
        return [device.duplicate(x) for x in results], fresh


def _alike(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype
