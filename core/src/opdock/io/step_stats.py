"""What a record of StepStats says in its label, for all who read traces."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_LABEL = re.compile(r"^(?P<name>.*?) = (?P<op>[^(\s]+)\((?P<inputs>.*?)\)(?P<rest>.*)$", re.DOTALL)


class Label(NamedTuple):
    """What ran: its name, its op type, the names of its inputs, and what follows them."""

    name: str
    op: str
    inputs: list[str]
    rest: str


def label(record: Any) -> Label:
    """Reads the label of a NodeExecStats; one of another form names what ran and no more."""
    match = _LABEL.match(record.timeline_label)
    if match is None:
        return Label(record.node_name, record.node_name, [], "")
    inputs = [i.strip() for i in match["inputs"].split(",") if i.strip()]
    return Label(match["name"], match["op"], inputs, match["rest"].strip())
