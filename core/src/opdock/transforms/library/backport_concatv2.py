"""`backport_concatv2`: ConcatV2 as the older Concat."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def backport_concatv2(graph_def: Any, context: Context) -> Any:
    """Makes Concat of ConcatV2, for versions before 1.0: the axis comes first."""
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        if node.op == "ConcatV2":
            data = [text for text in node.input if not text.startswith("^")]
            control = node.input[len(data) :]
            node.op = "Concat"
            node.input[:] = [data[-1], *data[:-1], *control]
            node.attr.pop("Tidx", None)
    return out
