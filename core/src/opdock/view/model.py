"""What the page shows of a program, as records, and as JSON whose form has a version."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

VERSION: Final = 1
"""Of the form of the JSON: a page draws what has its own version, and refuses the rest."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one node.

    Attributes:
        node: the node's name.
        op: the op type.
        requested: the device that was asked for, or empty.
        device: where it runs; empty for nodes that a pass removed.
        how: native, portable, decomposed, builtin, copy, feed, control, fused or removed; empty
            where nobody decided, as in a graph that was not compiled.
        kernel: where the kernel's code lives; for a copy the way it takes: upload, download, dlpack
            or a plugin's function.
        plugin: the plugin that brought the kernel, with whose code it took over, if it did:
            "mine (taken over from 'cpu')".
        why: the reason for the device; for a copy the whole route and its cost.
        rejections: each kernel or device that did not get the node, and why.
        line: the user's line that made the op.
        fusion: the pattern, or "cluster", by which the node was fused or stands for others.
        members: for a node that stands for others, their names.
        into: for a node that was fused, the op type that took it in.
        missed: each fusion that was found here and not applied, and why.
        means: what the kernel says of how it computes: by which library, on how many threads.
        us: the microseconds that it took in the traced step, all its calls together; None where
            none was traced, or the node did not run by itself.
        inputs: the values that it takes, as "node" or "node:1".
        control: the nodes that must run before it.
        outputs: the types and shapes of its results: "float32 [2,?]".
        within: for a node of a loop or a branch, the node that runs it, and in which of its
            functions: "while/body", "cond/then_branch"; empty for the step's own nodes.
    """

    node: str
    op: str
    requested: str
    device: str
    how: str
    kernel: str
    why: str
    rejections: tuple[str, ...] = ()
    line: str = ""
    fusion: str = ""
    members: tuple[str, ...] = ()
    into: str = ""
    missed: tuple[str, ...] = ()
    plugin: str = ""
    means: tuple[str, ...] = ()
    us: float | None = None
    inputs: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    within: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """A piece of memory, from the step that makes it to the last that needs it.

    Attributes:
        node: whose result lies there.
        output: which of its results.
        device: whose memory it is.
        nbytes: how much.
        begin: the step that writes it, counted from 0.
        end: the last step that reads it.
        kind: "planned", in a buffer that the program keeps; "made", by the kernel in each step; or
            "held", by constants and variables, all along.
        offset: the place in the device's block of planned memory, None if it is in none.
    """

    node: str
    output: int
    device: str
    nbytes: int
    begin: int
    end: int
    kind: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """One call in a traced step.

    Attributes:
        node: what ran.
        op: its op type.
        device: where.
        start: microseconds since the first began.
        us: how long it took.
        details: what the trace says besides, such as the bytes of a copy.
    """

    node: str
    op: str
    device: str
    start: float
    us: float
    details: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A program, as one looks at it.

    Attributes:
        title: what it is called.
        rows: one a node, in the order in which they run; then those that were fused, then those
            that were removed.
        steps: how many steps the lives of memory are counted in.
        lives: what lies in memory, and when.
        spans: the calls of a traced step.
        planned_bytes: the memory that the program keeps for its results.
        naive_bytes: what a buffer for each would take.
        notes: what else is to be said, each with a heading: devices, moves, what is missing.
    """

    title: str
    rows: Sequence[Row]
    steps: int = 0
    lives: Sequence[Life] = ()
    spans: Sequence[Span] = ()
    planned_bytes: int = 0
    naive_bytes: int = 0
    notes: Sequence[tuple[str, str]] = ()


def as_json(views: Sequence[View]) -> str:
    """Views as JSON in ASCII; fields of rows, lives and spans that say nothing are left out."""
    told = {"version": VERSION, "views": [_plain(view) for view in views]}
    return json.dumps(told, separators=(",", ":"), allow_nan=False)


def _plain(view: View) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(view)]
    told = {name: getattr(view, name) for name in names}
    for name in ("rows", "lives", "spans"):
        told[name] = [_said(record) for record in told[name]]
    return told


def _said(record: Any) -> dict[str, Any]:
    """The fields of a record that are not what they are by default."""
    return {
        field.name: value
        for field in dataclasses.fields(record)
        if (value := getattr(record, field.name)) not in ("", (), None)
    }
