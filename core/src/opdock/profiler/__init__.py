"""`tf.profiler`: parameters, floating-point operations, times and memory of a graph's nodes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opdock.profiler import flops as flops  # registers what TF's ops take
from opdock.profiler.model_analyzer import Profiler, advise, profile
from opdock.profiler.op_log import write_op_log
from opdock.profiler.options import ProfileOptionBuilder

if TYPE_CHECKING:
    from opdock.io.protos import AdviceProto, GraphNodeProto, MultiGraphNodeProto, OpLogProto

__all__ = [
    "AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto", "ProfileOptionBuilder",
    "Profiler", "advise", "profile", "write_op_log",
]  # fmt: skip

_MESSAGES = ("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto")


def __getattr__(name: str) -> Any:
    if name not in _MESSAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("opdock.io.protos"), name)
    return value
