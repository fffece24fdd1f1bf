"""Segments: the parts of a program that a backend may compile as a whole.

A segment is what one device does between two copies or steps of the host. A backend names its
compiler in `BackendSpec.compiler`; it is called with a `Segment` when a program is compiled, and
returns an executable, or a `Refusal`: as a whole, or of some nodes, and then the segment is split
there. What nobody compiles runs op by op.

`Segment.run` is the meaning of a segment: it calls the device's own kernels one after the other, on
whatever stands for buffers. A tracer passes its own values in and gets the whole program.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from opdock.dtypes import DType
from opdock.fields import check_fields
from opdock.late import record
from opdock.shapes import Shape

__all__ = [
    "Executable", "HeldVariable", "Loan", "Refusal", "Segment", "SegmentCompiler", "SegmentNode",
    "SegmentStream", "SegmentStreams", "SegmentValue", "SegmentVariable",
]  # fmt: skip


@record(frozen=True, slots=True)
class SegmentValue:
    """What is known of a value before anything runs.

    Attributes:
        slot: its number; every value of a segment has one of its own.
        dtype: the element type.
        shape: the static shape, None where unknown.
        name: the node that makes it.
    """

    slot: int
    dtype: DType
    shape: Shape
    name: str = ""

    @property
    def is_static(self) -> bool:
        """Whether the whole shape is known."""
        return self.shape is not None and None not in self.shape


@record(frozen=True, slots=True)
class SegmentVariable:
    """A variable that nodes of the segment read or write.

    Attributes:
        slot: the number that nodes have among their inputs for the variable itself.
        name: the variable's.
        dtype: the element type.
        shape: the static shape.
        read: whether its value is needed; without that, None may stand for it.
        written: whether the segment gives it a new value.
    """

    slot: int
    name: str
    dtype: DType
    shape: Shape
    read: bool
    written: bool


@record(eq=False, slots=True)
class SegmentNode:
    """One op of a segment.

    Attributes:
        name: the node's name in the graph.
        op: TF's op type; "read" for reading a variable of the first kind.
        attrs: TF's attributes.
        inputs, outputs: numbers of values.
        results: what is known of the outputs.
        call: computes the outputs with the kernel that the device has for the op: one value, or a
            tuple of as many as there are outputs. None for control flow.
        bodies: of control flow the functions: "cond" and "body", or "then_branch" and
            "else_branch".
        line: the user's line that made the op, "file.py:12", or empty.
        frees: numbers of values that nobody needs after it.
        host: called without arguments, gives what computes the outputs from NumPy arrays by the
            CPU's kernel, or None if it has none for the node. Numbers that decide what a program
            is, such as how often a loop turns, cost less there than on the device.
    """

    name: str
    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    results: tuple[SegmentValue, ...]
    call: Callable[..., Any] | None
    bodies: Mapping[str, Segment] = field(default_factory=dict)
    line: str = ""
    frees: tuple[int, ...] = ()
    host: Callable[[], Callable[..., Any] | None] | None = None

    def __repr__(self) -> str:
        return f"<{self.op} {self.name}>"


class SegmentStream:
    """The random stream of a node while its segment runs or is traced.

    Kernels take it for a `RandomStream`. Where in the stream it stands is given with each run, as
    words of 32 bits that may be arrays.

    Attributes:
        name: the node's name.
        start: makes the stream that a session keeps for the node.
        blocks: how many blocks of 128 bits a run takes; None until a run or a trace has told.
    """

    def __init__(self, name: str, start: Callable[[], Any]) -> None:
        self.name = name
        self.start = start
        self.blocks: int | None = None
        self._here = threading.local()

    def stand(self, words: Any) -> None:
        """Sets the place for this thread's run: two words of the key, four of the counter."""
        self._here.words = tuple(words[i] for i in range(6))
        self._here.taken = 0

    def reserve(self, blocks: int) -> tuple[Any, Any]:
        """The words of key and counter; a node draws once a run."""
        if self._here.taken:
            raise NotImplementedError(f"{self.name} draws more than once")
        self._here.taken = self.blocks = blocks
        words = self._here.words
        return words[:2], words[2:]


class SegmentStreams:
    """What kernels that are bound for a segment see of a session: streams, and nothing else."""

    def __init__(self) -> None:
        self.found: dict[str, SegmentStream] = {}

    def node_state(self, name: str, start: Callable[[], Any]) -> SegmentStream:
        """The stream of a node."""
        return self.found.setdefault(name, SegmentStream(name, start))


class HeldVariable:
    """A variable while its segment runs or is traced: what kernels take for its cell."""

    def __init__(self, variable: SegmentVariable, value: Any) -> None:
        self.name = variable.name
        self.dtype = variable.dtype
        self.value = value
        self.lock = contextlib.nullcontext()

    @property
    def initialized(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def held_shape(self) -> tuple[int, ...] | None:
        """None: what is compiled relies on the static shape."""
        return None

    def read(self) -> Any:
        """The value as it is by now."""
        return self.value

    def write(self, value: Any) -> None:
        """Gives a new value."""
        self.value = value


class Loan:
    """A variable's value in a buffer that an executable goes on writing.

    An executable may return one as a new value. Whoever else reads the variable gets a copy, which
    from then on is its value; the executable gets its own back as it is.
    """

    __slots__ = ("_duplicate", "buffer", "owner")

    def __init__(self, buffer: Any, duplicate: Callable[[Any], Any], owner: Any) -> None:
        self.buffer = buffer
        self.owner = owner
        self._duplicate = duplicate

    def settle(self) -> Any:
        """A buffer of its own."""
        return self._duplicate(self.buffer)


@record(eq=False, slots=True)
class Segment:
    """Nodes of one device that may be compiled as a whole.

    Attributes:
        name: of the node that stands for it in traces and in `explain`.
        device: the device.
        nodes: in executable order; variables are read and written in this order.
        params: the slots of what comes in, in order: of a part of a program `inputs`, then
            `variables`; of a body its arguments.
        inputs: values that come from outside, buffers of the device.
        outputs: values that are needed outside, in the device's memory.
        variables: what it reads and writes; each run gets and gives values by this order.
        constants: slots of constants to their values: NumPy arrays where a node's kernel wants them
            on the host, else buffers of the device.
        streams: the random streams, whose places each run gets by this order.
    """

    name: str
    device: Any
    nodes: tuple[SegmentNode, ...]
    params: tuple[int, ...]
    inputs: tuple[SegmentValue, ...]
    outputs: tuple[SegmentValue, ...]
    variables: tuple[SegmentVariable, ...]
    constants: Mapping[int, Any]
    streams: tuple[SegmentStream, ...]

    @property
    def is_static(self) -> bool:
        """Whether all shapes that come in are known, so that it can be compiled at once."""
        return all(v.is_static for v in self.inputs) and all(
            v.shape is not None and None not in v.shape for v in self.variables if v.read
        )

    @property
    def key(self) -> str:
        """The same for the same computation in any process: a name for a cache on disk.

        Raises:
            UnimplementedError: an attribute of a node is of a kind that cannot be written down.
        """
        from opdock.devices.segment_key import content_key  # loads OpenSSL

        return content_key(self)

    def run(
        self,
        inputs: Sequence[Any],
        state: Sequence[Any] = (),
        places: Sequence[Any] = (),
        call: Callable[[SegmentNode, list[Any]], Any] | None = None,
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Runs the nodes in order, on buffers or on what stands for them.

        Args:
            inputs: a value for each of `inputs`.
            state: a value for each of `variables`; None where its value is not read.
            places: six words of 32 bits for each of `streams`: an array with rows will do.
            call: computes a node's outputs from its inputs in place of its own `call`.

        Returns:
            The outputs, and the new value of each variable that is written, in order.
        """
        for stream, words in zip(self.streams, places, strict=True):
            stream.stand(words)
        cells = [HeldVariable(v, x) for v, x in zip(self.variables, state, strict=True)]
        results = self.walk([*inputs, *cells], call or _plain)
        written = zip(self.variables, cells, strict=True)
        return results, tuple(cell.value for v, cell in written if v.written)

    def walk(
        self, arguments: Sequence[Any], call: Callable[[SegmentNode, list[Any]], Any]
    ) -> tuple[Any, ...]:
        """As `run`, for the bodies of control flow: variables come as their node has them."""
        values: dict[int, Any] = dict(self.constants)
        values.update(zip(self.params, arguments, strict=True))
        for node in self.nodes:
            result = call(node, [values[slot] for slot in node.inputs])
            if len(node.outputs) == 1:
                values[node.outputs[0]] = result
            elif node.outputs:
                values.update(zip(node.outputs, result, strict=True))
            for slot in node.frees:
                del values[slot]
        return tuple(values[v.slot] for v in self.outputs)

    def __repr__(self) -> str:
        return f"<segment {self.name} of {len(self.nodes)} nodes>"


def _plain(node: SegmentNode, inputs: list[Any]) -> Any:
    if node.call is None:
        raise NotImplementedError(f"{node.name} ({node.op}) is control flow")
    return node.call(*inputs)


@record(frozen=True, slots=True)
class Refusal:
    """Why a segment is not compiled.

    Attributes:
        reason: in words, for `explain`; of the segment as a whole.
        nodes: the nodes that cannot be part of a program, to their reasons. The rest is offered
            again, in the pieces that are left; without any the segment runs op by op.
    """

    reason: str = ""
    nodes: Mapping[SegmentNode, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, "Refusal.")


class Executable(Protocol):
    """A compiled segment.

    `NotImplementedError`, `UnimplementedError` and `ResourceExhaustedError` have the same step run
    op by op. So nothing that comes in is written over: a variable has its value until the
    executable has returned another, and new values are returned when they are computed. Results may
    be unfinished. To save memory, an executable may keep a value that it has replaced, or an input,
    and compute into that buffer next time, if nobody else refers to it.

    Results are in memory of their own: neither an input's nor a variable's.

    Attributes that it may have: what `state` says, `explain` shows. Where `takes_host` is true,
    what the user feeds comes as the user's own NumPy arrays: when it returns, it has read them.
    Where `uses_numpy` is false, NumPy computes nothing in it, and a step saves the time that it
    takes to switch NumPy's warnings off.
    """

    def __call__(
        self, inputs: Sequence[Any], state: Sequence[Any], places: Any
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Runs once; arguments and results are those of `Segment.run`.

        Args:
            inputs: buffers of the device, or NumPy arrays.
            state: the variables' values, None for those that are only written; a `Loan` where it
                returned one itself and nobody has touched the variable since.
            places: a uint32 array of shape [streams, 6]: where the random streams stand.
        """


class SegmentCompiler(Protocol):
    """What `BackendSpec.compiler` names."""

    def __call__(self, segment: Segment) -> Executable | Refusal:
        """Compiles a segment, or says why not."""
