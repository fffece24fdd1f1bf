"""`tf.summary`: summary ops, and the writers that put their values into event files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opdock.ops.summary import (
    audio,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)

if TYPE_CHECKING:
    from opdock.summary.recording import all_v2_summary_ops, initialize
    from opdock.summary.writer import FileWriter
    from opdock.summary.writer_cache import FileWriterCache

__all__ = [
    "FileWriter", "FileWriterCache", "all_v2_summary_ops", "audio", "get_summary_description",
    "histogram", "image", "initialize", "merge", "merge_all", "scalar", "tensor_summary", "text",
]  # fmt: skip

_LAZY = {
    "FileWriter": "opdock.summary.writer",
    "FileWriterCache": "opdock.summary.writer_cache",
    "all_v2_summary_ops": "opdock.summary.recording",
    "initialize": "opdock.summary.recording",
    **dict.fromkeys(
        ("Event", "SessionLog", "Summary", "SummaryDescription", "SummaryMetadata",
         "TaggedRunMetadata"),
        "opdock.io.protos",
    ),
}  # fmt: skip


def get_summary_description(node_def: Any) -> Any:
    """The `SummaryDescription` of a TensorSummary node.

    Args:
        node_def: a NodeDef of op TensorSummary.

    Raises:
        ValueError: it is a node of another op.
    """
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    import json

    from opdock.io import protos

    description = protos.SummaryDescription()
    text = node_def.attr["description"].s.decode()
    description.type_hint = json.loads(text).get("typeHint", "") if text else ""
    return description


def __getattr__(name: str) -> Any:
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value
